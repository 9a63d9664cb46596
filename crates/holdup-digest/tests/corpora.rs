//! Logs that nobody here wrote, beside what others read in them. Needs the shared data folder: from `HOLDUP_DATA`, else
//! beside the project; without it the tests say so and pass.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use holdup_digest::attribute::Unit;
use holdup_digest::block::Block;
use holdup_digest::format::{Format, Reader};
use holdup_digest::input::open;
use holdup_digest::postgres::entry::tie;
use holdup_digest::report::{Order, Report};
use holdup_digest::run::{Options, run};
use holdup_digest::select::Select;
use holdup_digest::tally::{Identity, Tally, Watch};
use serde_json::Value;

fn folder() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    std::env::var_os("HOLDUP_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from).join("statements")
}

fn cases(file: &str) -> Vec<Value> {
    let path = folder().join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is not there; set HOLDUP_DATA", path.display());
        return Vec::new();
    };
    let all: Value = serde_json::from_str(&text).expect("the corpus is JSON");
    all["cases"].as_array().cloned().unwrap_or_default()
}

/// An execution as the corpora have it: names and values as text, times in seconds.
type Fields = Vec<(String, String)>;

/// What our reader sees in a file.
fn read(file: &str, format: Format) -> (Vec<Fields>, Tally) {
    let mut input = open(&folder().join(file)).unwrap();
    let mut data = input.head;
    std::io::Read::read_to_end(&mut input.reader, &mut data).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut tally = Tally::new(format.dialect(), Identity::Holdup, Select::default());
    let keep = Arc::clone(&seen);
    tally.watch = Some(Watch(Box::new(move |event, attributes| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut fields = vec![
            ("arg".to_owned(), text(event.sql)),
            ("user".to_owned(), text(event.user)),
            ("host".to_owned(), text(event.host)),
            ("db".to_owned(), text(event.database)),
        ];
        for (number, value) in event.measures {
            let attribute = attributes.get(*number).unwrap();
            let is_time = attribute.unit == Unit::Time;
            let shown =
                if is_time { format!("{}.{:06}", value / 1_000_000, value % 1_000_000) } else { value.to_string() };
            fields.push((attribute.name.clone(), shown));
        }
        for (number, value) in event.flags {
            fields.push((attributes.get(*number).unwrap().name.clone(), if *value { "Yes" } else { "No" }.to_owned()));
        }
        keep.lock().unwrap().push(fields);
    })));
    let mut reader = Reader::new(format, &data, None);
    reader.read(&Block { data, ..Block::default() }, &mut tally);
    reader.finish(&mut tally);
    tie(&mut tally);
    tally.watch = None;
    let seen = seen.lock().unwrap().clone();
    (seen, tally)
}

/// Attributes whose values are the same in whatever way they are written.
fn same(name: &str, ours: &str, theirs: &str) -> bool {
    match (ours.parse::<f64>(), theirs.parse::<f64>()) {
        (Ok(ours), Ok(theirs)) => (ours - theirs).abs() < 1e-6,
        // A name is the same with its quotes.
        _ if name == "db" => ours == theirs.trim_matches('`'),
        _ if name == "arg" => {
            let plain = |text: &str| {
                text.trim_start_matches("administrator command: ")
                    .trim_end_matches(';')
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            plain(ours) == plain(theirs)
        }
        _ => ours == theirs,
    }
}

/// Differences of a file's events from what is expected, in words.
fn differences(case: &Value, format: Format) -> Vec<String> {
    let expected = case["expected"].as_array().unwrap();
    let (ours, _) = read(case["file"].as_str().unwrap(), format);
    let mut wrong = Vec::new();
    if ours.len() != expected.len() {
        wrong.push(format!("{} events, not {}", ours.len(), expected.len()));
    }
    for (index, (ours, theirs)) in ours.iter().zip(expected).enumerate() {
        for (name, value) in ours {
            let Some(theirs) = theirs[name.as_str()].as_str() else { continue };
            if !same(name, value, theirs) {
                wrong.push(format!("event {index}, {name}: {value:?}, not {theirs:?}"));
            }
        }
        for (name, value) in theirs.as_object().unwrap() {
            let is_figure = name.contains("_time") || name.starts_with("Rows_");
            if is_figure
                && !ours.iter().any(|(ours, _)| ours == name)
                && value.as_str().is_some_and(|value| value != "0")
            {
                wrong.push(format!("event {index}: no {name}"));
            }
        }
    }
    wrong
}

fn check(file: &str, format: Format, waived: &[&str]) {
    let all = cases(file);
    let mut report = Vec::new();
    for case in &all {
        let id = case["id"].as_str().unwrap();
        let wrong = differences(case, format);
        if !wrong.is_empty() && !waived.contains(&id) {
            report.push(format!("{id} ({}):\n    {}", case["file"].as_str().unwrap(), wrong.join("\n    ")));
        }
    }
    assert!(report.is_empty(), "{} of {} differ:\n{}", report.len(), all.len(), report.join("\n"));
}

#[test]
fn slow_logs_hold_what_their_readers_expect() {
    check("slowlog_events.json", Format::SlowLog, &[]);
}

#[test]
fn slow_logs_hold_what_pt_query_digest_reads() {
    let waived = [
        // Statements without any head: no slow log.
        "ptall-slow-slow006-session-1",
        "ptall-slow-slow006-session-2",
        "ptall-slow-slow006-session-3",
        // A time of two numbers run together, which is none.
        "ptall-slow-slow017",
    ];
    check("slowlog_tool_events.json", Format::SlowLog, &waived);
}

#[test]
fn general_logs_hold_what_their_readers_expect() {
    let all = cases("other_log_events.json");
    for case in all.iter().filter(|case| case["parser"] == "GeneralLogParser") {
        let wrong = differences(case, Format::GeneralLog);
        assert!(wrong.is_empty(), "{}: {}", case["id"], wrong.join("\n"));
    }
}

#[test]
fn logs_of_postgresql_hold_the_statements_others_read() {
    let mut report = Vec::new();
    for mut case in cases("pt_pglog_events.json") {
        let file = case["file"].as_str().unwrap().to_owned();
        let format = if file.contains("syslog") { Format::PostgresSyslog } else { Format::PostgresStderr };
        // Connections are counted and are no executions, nor is what only an error tells of.
        let is_execution = |event: &Value| event["cmd"] == "Query" && event["arg"] != "show foobar;";
        case["expected"].as_array_mut().unwrap().retain(is_execution);
        let wrong = differences(&case, format);
        if !wrong.is_empty() {
            report.push(format!("{file}:\n    {}", wrong.join("\n    ")));
        }
    }
    assert!(report.is_empty(), "{}", report.join("\n"));
}

/// Executions, their time, and what servers did beside, as pgBadger counts them; not its errors, which it counts by words.
#[test]
fn logs_of_postgresql_hold_what_pgbadger_counts() {
    let path = folder().join("pgbadger_cases.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is not there; set HOLDUP_DATA", path.display());
        return;
    };
    let all: Value = serde_json::from_str(&text).expect("the corpus is JSON");
    let mut compared = 0;
    for case in all["totals_by_pgbadger_13_2"].as_array().unwrap() {
        let file = case["fixture"].as_str().unwrap();
        // What it could not read itself, and the log of another program.
        if case["queries"].is_null() || file.contains("pgbouncer") {
            continue;
        }
        let path = folder().join("pgbadger").join(file);
        let outcome = run(&[path], &Options { threads: 2, ..Options::default() }).unwrap();
        let report = Report::of(&outcome, &Order::TotalTime, 0);
        let sum = |name: &str| report.attributes.get(name).map_or(0.0, |figures| figures.sum as f64 / 1e3);
        for (name, ours) in [("execute", sum("Query_time")), ("prepare", sum("Parse_time")), ("bind", sum("Bind_time"))]
        {
            let theirs = case["duration"][name].as_f64().unwrap();
            assert!((ours - theirs).abs() < 0.01, "{file}: {name} {ours} ms, not {theirs}");
        }
        // One of its queries is a line of Cloud SQL's that no server wrote.
        let queries = case["queries"].as_u64().unwrap();
        assert!(
            report.calls == queries || file.starts_with("cloudsql"),
            "{file}: {} queries, not {queries}",
            report.calls
        );
        if report.calls > 0 && !file.starts_with("cloudsql") && !file.starts_with("cnpg") {
            let distinct = report.queries.iter().filter(|query| query.fingerprint != "(empty)").count();
            assert_eq!(distinct as u64, case["normalised"].as_u64().unwrap(), "{file}: distinct queries");
        }
        let server = report.server.as_ref();
        let count = |name: &str| server.and_then(|server| server.counts.get(name)).copied();
        let figure = |name: &str| server.and_then(|server| server.figures.get(name)).map(|figures| figures.count);
        assert_eq!(
            count("connections_authorized").or(Some(0)),
            case["connections"].as_u64().or(Some(0)),
            "{file}: connections"
        );
        assert_eq!(figure("temporary_file_bytes"), case["tempfiles"].as_u64(), "{file}: temporary files");
        compared += 1;
    }
    assert!(compared >= 14, "only {compared} compared");
}
