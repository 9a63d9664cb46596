//! A recording of 2,000 requests in 2 s, of which 20 rows were kept, with histograms of all of them.

use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use holdup_recording::manifest::{Host, LoadFacts, Totals};
use holdup_recording::{Batch, Manifest, Recorder, RunState};

use super::*;

const S: i64 = 1_000_000_000;

/// Seconds of milliseconds by operation, and rows of each that stand for a hundred.
fn recording(names: &[&str]) -> (tempfile::TempDir, Recording) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let mut manifest = Manifest::starting("t", 0, Host::default());
    let totals = |name: &&str| Totals {
        operation: (*name).to_owned(),
        offered: 2_003,
        completed: 2_000,
        errors: BTreeMap::from([("timeout".to_owned(), 3), ("http_status".to_owned(), 0)]),
    };
    let operations = names.iter().map(|n| (*n).to_owned()).collect();
    manifest.load = Some(LoadFacts { operations, totals: names.iter().map(totals).collect(), ..LoadFacts::default() });
    let rows = names.iter().flat_map(|name| {
        (0..20).map(|k| Request {
            operation: (*name).to_owned(),
            intended_at: k * S / 10,
            ready_at: Some(k * S / 10),
            sent_at: Some(k * S / 10),
            done_at: k * S / 10 + 7_000_000,
            outcome: "ok".into(),
            weight: 100,
            ..Request::default()
        })
    });
    let batch = Batch { requests: rows.rev().collect(), ..Batch::default() };
    let recorder = Recorder::create(&dir, &manifest).unwrap();
    recorder.sink().push(batch);
    recorder.finish(manifest, RunState::Complete).unwrap();
    // The first second takes 1 to 1,000 ms, the second one 1 to 100 ms.
    let slice = |name: &str, second: u64, most: u64| {
        let mut histogram = Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).unwrap();
        (0..1_000).for_each(|k| histogram.record((k % most + 1) * 1_000_000).unwrap());
        let (from, length) = (Duration::from_secs(second), Duration::from_secs(1));
        hlog::Interval { tag: format!("{}.response", hlog::clean(name)), from, length, histogram }
    };
    let slices = names.iter().flat_map(|name| [slice(name, 0, 1_000), slice(name, 1, 100)]);
    hlog::write(&dir, SystemTime::UNIX_EPOCH, slices).unwrap();
    let recording = Recording::open(&dir).unwrap();
    (root, recording)
}

fn judged(recording: &Recording, window: Option<Window>, measured_from: i64) -> Vec<Operation> {
    let rows: Vec<&Request> = recording.tables.requests.rows.iter().collect();
    summarize(recording, &rows, window, measured_from)
}

/// To the three digits of the histograms.
fn is(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|ms| (ms / expected - 1.0).abs() < 0.002)
}

#[test]
fn percentiles_are_exact_though_rows_are_a_sample() {
    let (_root, recording) = recording(&["a b", "c"]);
    let operations = judged(&recording, None, i64::MIN);
    let names: Vec<&str> = operations.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["a b", "c"], "in the scenario's order");
    for o in &operations {
        assert_eq!((o.offered, o.completed, o.failed(), o.errors.len()), (2_003, 2_000, 3, 1));
        assert_eq!(o.response_ms.count(), 2_000);
        // 1,000 of 1..=100 and as many of 1..=1000: of all 2,000, 1,980 are at most 980.
        assert!(is(o.response_ms.quantile(0.99), 980.0), "{:?}", o.response_ms.quantile(0.99));
        assert!(is(o.response_ms.max(), 1_000.0) && o.service_ms.is_empty());
    }
}

#[test]
fn a_warm_up_is_in_the_counts_and_not_in_the_times() {
    let (_root, recording) = recording(&["a"]);
    let operations = judged(&recording, None, S);
    assert_eq!((operations[0].offered, operations[0].response_ms.count()), (2_003, 1_000));
    assert!(is(operations[0].response_ms.quantile(0.99), 99.0), "{:?}", operations[0].response_ms.quantile(0.99));
}

#[test]
fn rows_speak_for_a_part_of_the_run_for_one_tag_of_two_and_for_what_can_not_be_read() {
    let (_root, recording) = recording(&["a"]);
    let part = judged(&recording, Some(Window { from: 0, to: S }), i64::MIN);
    assert_eq!((part[0].offered, part[0].response_ms.count(), part[0].response_ms.max()), (2_000, 2_000, Some(7.0)));

    let (_root, alike) = self::recording(&["a b", "a,b"]);
    for operation in judged(&alike, None, i64::MIN) {
        assert_eq!((operation.offered, operation.response_ms.max()), (2_003, Some(7.0)), "{}", operation.name);
    }

    let path = recording.dir.join(hlog::HLOG);
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, damaged) = text.rsplit_once(",HIST").unwrap();
    std::fs::write(&path, format!("{begin},HISTAAAA{}", &damaged[4..])).unwrap();
    let damaged = Recording::open(&recording.dir).unwrap();
    assert_eq!(judged(&damaged, None, i64::MIN)[0].response_ms.max(), Some(7.0));
}

#[test]
fn failed_requests_are_counted_by_status() {
    let row = |outcome: &str, status: Option<i32>, weight: i64| Request {
        operation: "search".into(),
        outcome: outcome.into(),
        status,
        weight,
        ..Request::default()
    };
    let rows = [row("http_status", Some(404), 2), row("http_status", Some(503), 1), row("timeout", None, 1)];
    let mut operation = summarize_rows(&rows, 0).remove(0);
    assert_eq!(operation.statuses, BTreeMap::from([(404, 2), (503, 1)]));
    assert_eq!(failures([&operation]), "4 of 4 requests failed (2 with 404, 1 with 503, 1 timeout)");
    // The totals are exact, the rows a sample.
    operation.errors.insert("http_status".to_owned(), 30);
    operation.scale_statuses();
    let all = [("404".to_owned(), 20), ("503".to_owned(), 10), ("timeout".to_owned(), 1)];
    assert_eq!(operation.failures(), all);
}
