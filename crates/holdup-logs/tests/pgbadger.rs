//! What pgBadger's own tests say of its sample logs, held against what we read in them. Needs the shared data folder, as `corpora.rs`.
//! Its totals of the same logs are compared there.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use holdup_logs::digest::block::Block;
use holdup_logs::digest::event::Kind;
use holdup_logs::digest::format::{Format, Reader};
use holdup_logs::digest::report::{Order, Report};
use holdup_logs::digest::run::{Options, run};
use holdup_logs::digest::select::Select;
use holdup_logs::digest::tally::{Identity, Tally, Watch};
use holdup_logs::digest::time::date_time;
use serde_json::Value;

/// What has no counterpart in `holdup digest`; `docs/digest.md` has the same list.
const WAIVED: &[(&str, &str)] = &[
    ("pgb-03", "peaks by the second"),
    ("pgb-04", "PgBouncer's log"),
    ("pgb-16", "times shifted to another time zone"),
    ("pgb-29", "a calendar with numbers of weeks"),
    ("pgb-30", "pgBadger 13.2 itself counts other totals of these logs"),
    ("pgb-31", "how many samples a page shows"),
];

fn folder() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    std::env::var_os("HOLDUP_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from).join("statements")
}

fn read(file: &str, select: Select) -> Report {
    let options = Options { threads: 2, select, ..Options::default() };
    Report::from_outcome(&run(&[folder().join("pgbadger").join(file)], &options).unwrap(), &Order::TotalTime, 0)
}

fn us(time: &str) -> i64 {
    date_time(time.as_bytes()).unwrap().0
}

/// Sessions that ended in one of these stretches of time; from the beginning, and to the end, where one is empty.
fn sessions(stretches: &[(&str, &str)]) -> u64 {
    let moment = |time: &str| (!time.is_empty()).then(|| us(time));
    let ended = |(since, until): &(&str, &str)| {
        let select = Select { since_us: moment(since), until_us: moment(until), ..Select::default() };
        let server = read("begin_end.log", select).server;
        server.and_then(|server| server.counts.get("disconnections").copied()).unwrap_or(0)
    };
    stretches.iter().map(ended).sum()
}

/// Executions with what was filled in.
fn parameters(file: &str) -> Vec<String> {
    let data = std::fs::read(folder().join("pgbadger").join(file)).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut tally = Tally::new(Format::PostgresStderr.dialect(), Identity::Holdup, Select::default());
    let keep = Arc::clone(&seen);
    tally.watch = Some(Watch(Box::new(move |event, _| {
        if event.kind == Kind::Statement && !event.parameters.is_empty() {
            keep.lock().unwrap().push(String::from_utf8_lossy(event.parameters).into_owned());
        }
    })));
    let mut reader = Reader::new(Format::PostgresStderr, &data, None);
    reader.read(&Block { data, ..Block::default() }, &mut tally);
    reader.finish(&mut tally);
    tally.watch = None;
    std::mem::take(&mut seen.lock().unwrap())
}

/// Whether ours is what it expects; none if this test knows nothing of it.
fn agrees(id: &str, expected: &Value) -> Option<bool> {
    Some(match id {
        // The other two logs of these are PgBouncer's, which have no statements.
        "pgb-01" | "pgb-02" => read("light.postgres.log.bz2", Select::default()).calls == expected.as_u64()?,
        "pgb-06" => {
            let filters = vec!["host!=192.168.1.201".parse().unwrap()];
            let report = read("rds.log.bz2", Select { filters, ..Select::default() });
            let text = "SELECT datname FROM pg_database WHERE NOT datistemplate AND datallowconn";
            let query = report.queries.iter().find(|query| query.fingerprint == text)?;
            format!("{:.3}", query.total_us as f64 / 1e3) == expected.as_str()?
        }
        "pgb-09" => {
            let days = [("2021-02-14 09:00:00", "2021-02-15 00:00:00"), ("2021-02-15 09:00:00", "2021-02-16 00:00:00")];
            sessions(&days) == expected.as_u64()?
        }
        "pgb-10" => {
            let days = [("", "2021-02-14 20:30:00"), ("2021-02-15 00:00:00", "2021-02-15 20:30:00")];
            sessions(&days) == expected.as_u64()?
        }
        "pgb-11" => {
            let days = [("2021-02-14 09:00:00", "2021-02-14 20:30:00"), ("2021-02-15 09:00:00", "2021-02-15 20:30:00")];
            sessions(&days) == expected.as_u64()?
        }
        "pgb-12" => sessions(&[("", "2021-02-15 20:30:00")]) == expected.as_u64()?,
        "pgb-13" => sessions(&[("", "2021-02-14 20:30:00")]) == expected.as_u64()?,
        "pgb-14" => sessions(&[("2021-02-14 20:00:00", "2021-02-14 22:00:00")]) == expected.as_u64()?,
        "pgb-15" => sessions(&[("", "2021-02-14 20:00:00"), ("2021-02-14 22:00:00", "")]) == expected.as_u64()?,
        "pgb-28" => {
            let report = serde_json::to_string(&read("anonymize.log", Select::default())).unwrap();
            let canaries = ["11111111", "'r','p'", "'r', 'p'", "x255044"];
            report.contains("fingerprint") && !canaries.iter().any(|canary| report.contains(canary))
        }
        "pgb-32" => {
            let range = "$4 = '[2023-02-24T00:00,2023-02-25T00:00]'";
            parameters("postgresql_param_range.log").iter().filter(|text| text.contains(range)).count() as u64
                == expected.as_u64()?
        }
        // Its four are those of `bind` and `execute`; of `bind` we keep the time only.
        "pgb-33" => {
            let texts = parameters("multiline_param.log");
            texts.len() as u64 * 2 == expected.as_u64()?
                && ["njchar\n\thello', $3 = 'aaaa'", "njvarchar\n\tbye', $3 = 'iiii'"]
                    .iter()
                    .zip(&texts)
                    .all(|(whole, text)| text.ends_with(whole))
        }
        "pgb-34" => {
            let report = read("csv_statement_without_duration.log", Select::default());
            let calls: Vec<(u64, u128)> = report.queries.iter().map(|query| (query.calls, query.total_us)).collect();
            calls == [(1, 688_786_283), (1, 0)]
        }
        _ => return None,
    })
}

#[test]
fn pgbadgers_assertions_hold() {
    let path = folder().join("pgbadger_cases.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is not there; set HOLDUP_DATA", path.display());
        return;
    };
    let all: Value = serde_json::from_str(&text).expect("the corpus is JSON");
    let mut report = Vec::new();
    let cases = all["assertions"].as_array().unwrap();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let is_waived = WAIVED.iter().any(|(waived, _)| *waived == id);
        match agrees(id, &case["expected"]) {
            Some(true) if !is_waived => {}
            None if is_waived => {}
            found => report.push(format!("{id} ({}): {found:?}, expected {}", case["what"], case["expected"])),
        }
    }
    assert!(
        report.is_empty() && cases.len() == 20,
        "{} of {} differ:\n{}",
        report.len(),
        cases.len(),
        report.join("\n")
    );
}
