//! Logs that nobody here wrote, beside what others read in them. Needs the shared data folder: from `HOLDUP_DATA`, else
//! beside the project; without it the tests say so and pass.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use holdup_logs::digest::attribute::Unit;
use holdup_logs::digest::block::Block;
use holdup_logs::digest::format::{Format, Reader};
use holdup_logs::digest::input::open;
use holdup_logs::digest::postgres::entry::tie;
use holdup_logs::digest::report::{Order, Report};
use holdup_logs::digest::run::{Options, run};
use holdup_logs::digest::select::Select;
use holdup_logs::digest::tally::{Identity, Tally, Watch};
use holdup_protocol::packets::Protocol;
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
        let report = Report::from_outcome(&outcome, &Order::TotalTime, 0);
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

/// What `tcpdump -x` printed, as a capture file of IP packets.
fn capture_of(text: &str) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_ne_bytes().to_vec();
    file.extend([2_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat());
    file.extend([0, 0, 262_144, 101].iter().flat_map(|number: &u32| number.to_ne_bytes()));
    let mut packets: Vec<(i64, Vec<u8>)> = Vec::new();
    let mut ends = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches('#').trim_start();
        if let Some((at, _)) = holdup_logs::digest::time::date_time(line.as_bytes()) {
            packets.push((at, Vec::new()));
            let words: Vec<&str> = line.split(' ').collect();
            let end = |at: usize| words.get(at).and_then(|word| address(word.trim_end_matches(':')));
            ends.push(end(3).zip(end(5)));
        } else if let (Some((_, bytes)), Some((_, packet))) = (line.split_once(": "), packets.last_mut()) {
            // Behind two blanks some have the letters.
            let digits: String = bytes.trim_start().split("  ").next().unwrap_or_default().split(' ').collect();
            packet.extend(
                (0..digits.len() / 2).filter_map(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()),
            );
        }
    }
    for ((at, mut packet), ends) in packets.into_iter().zip(ends) {
        // Whoever published them made other addresses of some, in the text only.
        if let Some(((from, from_port), (to, to_port))) = ends {
            let behind = usize::from(packet[0] & 15) * 4;
            packet[12..16].copy_from_slice(&from);
            packet[16..20].copy_from_slice(&to);
            packet[behind..behind + 2].copy_from_slice(&from_port.to_be_bytes());
            packet[behind + 2..behind + 4].copy_from_slice(&to_port.to_be_bytes());
        }
        // Behind what was printed it goes on, where it was cut.
        let length = packet.get(2..4).map_or(0, |two| u32::from(u16::from_be_bytes([two[0], two[1]])));
        let stored = packet.len().min(length as usize);
        let head = [(at / 1_000_000) as u32, (at % 1_000_000) as u32, stored as u32, length];
        file.extend(head.iter().flat_map(|number| number.to_ne_bytes()));
        file.extend(&packet[..stored]);
    }
    file
}

/// `127.0.0.1.3306`
fn address(text: &str) -> Option<([u8; 4], u16)> {
    let (host, port) = text.rsplit_once('.')?;
    let host: std::net::Ipv4Addr = host.parse().ok()?;
    Some((host.octets(), if port == "mysql" { 3306 } else { port.parse().ok()? }))
}

/// The statement with its values, as pt-query-digest has it.
fn filled(sql: &str, parameters: &str) -> String {
    let mut values: Vec<String> = Vec::new();
    let mut rest = parameters;
    while let Some((_, behind)) = rest.split_once(" = ") {
        let next = behind.find(&format!(", ${} = ", values.len() + 2)).unwrap_or(behind.len());
        values.push(behind[..next].replace('\'', "\""));
        rest = &behind[next..];
    }
    let mut values = values.into_iter();
    sql.split('?').enumerate().fold(String::new(), |text, (index, part)| {
        let value = if index > 0 { values.next().unwrap_or("?".to_owned()) } else { String::new() };
        format!("{text}{value}{part}")
    })
}

/// What our reader sees in packets that were printed as text, as the corpora have it.
fn read_packets(file: &str) -> Vec<Fields> {
    let text = String::from_utf8_lossy(&std::fs::read(folder().join(file)).unwrap()).into_owned();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut tally = Tally::new(Format::Packets.dialect(), Identity::Holdup, Select::default());
    let keep = Arc::clone(&seen);
    tally.watch = Some(Watch(Box::new(move |event, attributes| {
        use holdup_logs::digest::event::Kind;
        let sql = String::from_utf8_lossy(event.sql).into_owned();
        let parameters = String::from_utf8_lossy(event.parameters).into_owned();
        let arg = match (event.kind, sql.as_str()) {
            (Kind::Command, "Close stmt") => "DEALLOCATE PREPARE".to_owned(),
            (Kind::Command, "Reset stmt") => "RESET".to_owned(),
            (Kind::Command, name) => format!("administrator command: {name}"),
            (Kind::Parse, sql) => format!("PREPARE {sql}"),
            (_, sql) if event.flags.is_empty() || parameters.is_empty() => sql.to_owned(),
            (_, sql) => format!("EXECUTE {}", filled(sql, &parameters)),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut fields = vec![
            ("arg".to_owned(), arg),
            ("user".to_owned(), text(event.user)),
            ("host".to_owned(), text(event.host)),
            ("db".to_owned(), text(event.database)),
        ];
        for (number, value) in event.measures {
            let attribute = attributes.get(*number).unwrap();
            if attribute.name == "Query_time" {
                fields.push((attribute.name.clone(), format!("{}.{:06}", value / 1_000_000, value % 1_000_000)));
            } else if attribute.name != "Rows_sent" {
                fields.push((attribute.name.clone(), value.to_string()));
            }
        }
        for (number, value) in event.flags {
            fields.push((attributes.get(*number).unwrap().name.clone(), if *value { "Yes" } else { "No" }.to_owned()));
        }
        keep.lock().unwrap().push(fields);
    })));
    let mut reader = holdup_logs::digest::wire::Wire::new(&[
        (12_345, Protocol::Mysql),
        (12_346, Protocol::Mysql),
        (12_348, Protocol::Mysql),
    ]);
    reader.read(&Block { data: capture_of(&text), ..Block::default() }, &mut tally);
    reader.finish(&mut tally);
    tally.watch = None;
    std::mem::take(&mut seen.lock().unwrap())
}

#[test]
fn packets_of_mysql_hold_what_pt_query_digest_reads() {
    let waived = [
        // Compressed: timed, not read.
        "mysqlprotocolparser-12-tcpdump015",
        // Its reader was told to watch one of two servers.
        "mysqlprotocolparser-15-tcpdump018",
        // Put together by hand: numbers of bytes that leave holes, and that say a request was sent twice.
        "mysqlprotocolparser-28-tcpdump032",
        "mysqlprotocolparser-29-tcpdump031",
        "mysqlprotocolparser-32-tcpdump037",
    ];
    let all = cases("mysql_protocol_events.json");
    let mut report = Vec::new();
    for case in &all {
        let id = case["id"].as_str().unwrap();
        let expected = case["expected"].as_array().unwrap();
        let ours = read_packets(case["file"].as_str().unwrap());
        let mut wrong = Vec::new();
        let args = |all: Vec<String>| all.join(" | ");
        if ours.len() != expected.len() {
            wrong.push(format!(
                "{} events, not {}: {}\n    theirs {}",
                ours.len(),
                expected.len(),
                args(ours.iter().map(|event| event[0].1.chars().take(60).collect()).collect()),
                args(
                    expected
                        .iter()
                        .map(|event| event["arg"].as_str().unwrap_or("?").chars().take(60).collect())
                        .collect()
                )
            ));
        } else {
            for (index, (ours, theirs)) in ours.iter().zip(expected).enumerate() {
                for (name, value) in ours {
                    let Some(theirs) = theirs[name.as_str()].as_str() else { continue };
                    // Numbers of statements are a connection's own.
                    let numbered = ["DEALLOCATE PREPARE", "RESET"].iter().any(|verb| theirs.starts_with(verb));
                    let theirs = if numbered {
                        theirs.trim_end_matches(|end: char| end.is_ascii_digit() || end == ' ')
                    } else {
                        theirs
                    };
                    if !same(name, value, theirs) {
                        wrong.push(format!("event {index}, {name}: {value:?}, not {theirs:?}"));
                    }
                }
            }
        }
        if !wrong.is_empty() && !waived.contains(&id) {
            report.push(format!("{id} ({}):\n    {}", case["file"].as_str().unwrap(), wrong.join("\n    ")));
        }
    }
    assert!(report.is_empty(), "{} of {} differ:\n{}", report.len(), all.len(), report.join("\n"));
}

/// What that tool itself makes of all its samples, in whatever order: it takes a statement down when the first packet of the response
/// comes, we when the last one did.
#[test]
fn packets_of_mysql_hold_nearly_all_that_the_tool_makes_of_them() {
    let (mut missing, mut count) = (Vec::new(), 0);
    for case in cases("tcpdump_tool_events.json") {
        let mut ours: Vec<String> =
            read_packets(case["file"].as_str().unwrap()).into_iter().map(|event| event[0].1.clone()).collect();
        for event in case["expected"].as_array().unwrap() {
            let theirs = event["arg"].as_str().unwrap_or_default().replace("Init_db", "Init DB");
            count += 1;
            match ours.iter().position(|ours| same("arg", ours, &theirs)) {
                Some(at) => drop(ours.swap_remove(at)),
                None => missing.push(format!("{}: {}", case["id"], theirs.chars().take(100).collect::<String>())),
            }
        }
    }
    eprintln!("{} of {count} missing:\n{}", missing.len(), missing.join("\n"));
    assert!(missing.len() * 20 <= count, "{} of {count} missing:\n{}", missing.len(), missing.join("\n"));
}
