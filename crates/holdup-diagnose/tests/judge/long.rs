//! Long recordings: judged right, and the same by their rows and without them.

use std::path::{Path, PathBuf};

use holdup_diagnose::diagnose;
use holdup_diagnose::verdict::Answer;
use holdup_recording::Recording;
use holdup_recording::condensed::Condensed;

use crate::fixtures::side_by_side;

pub mod grow;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The verdict of the recording in `dir`, by its rows and without them.
fn both(dir: &Path) -> [String; 2] {
    let json = |recording: &Recording| serde_json::to_string_pretty(&diagnose(recording, None)).unwrap();
    [json(&Recording::open(dir).unwrap()), json(&Recording::open_condensed(dir).unwrap())]
}

#[test]
fn every_fixture_is_judged_alike_by_its_rows_and_without_them() {
    let entries = std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path());
    let dirs: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    side_by_side(&dirs, |dir| {
        let [rows, condensed] = both(dir);
        assert_eq!(rows, condensed, "{}", dir.display());
    });
    assert!(dirs.len() > 20, "{} fixtures", dirs.len());
}

/// What is read without rows is what the rows say.
#[test]
fn files_and_rows_are_condensed_alike() {
    for name in ["hidden-queue-accounts", "throughput-ceiling-faulty", "uninterruptible-faulty"] {
        let dir = fixtures().join(name);
        let (rows, read) = (Recording::open(&dir).unwrap(), Recording::open_condensed(&dir).unwrap());
        let (rows, read) = (rows.tables.condense(), read.tables.condensed.unwrap());
        assert_eq!(rows.series.by_metric, read.series.by_metric, "{name}");
        assert_eq!((&rows.series.sources, &rows.totals), (&read.series.sources, &read.totals), "{name}");
        let all = |of: &Condensed| format!("{:?}", of.executions.within(i64::MIN, i64::MAX).collect::<Vec<_>>());
        assert_eq!(all(&rows), all(&read), "{name}");
        assert!(!rows.totals.is_empty() || !rows.executions.is_empty(), "{name} has no statements");
    }
}

#[test]
fn the_fault_of_a_long_recording_is_named_and_found_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("long");
    let grown =
        grow::Grown::of(&fixtures().join("hidden-queue-fixed"), &fixtures().join("hidden-queue-faulty"), 180).unwrap();
    grown.write(&dir).unwrap();
    let recording = Recording::open_condensed(&dir).unwrap();
    let diagnosis = diagnose(&recording, None);
    assert_eq!((diagnosis.verdict, diagnosis.culprit.as_deref()), (Answer::Found, Some("thread_pool_queue")));
    let (fault, episode) = (grown.fault(), diagnosis.episode.unwrap());
    assert!(
        episode.from_s >= fault.start as f64 - 1.0 && episode.to_s <= fault.end as f64 + 3.0,
        "the fault is at {fault:?} s: {episode:?}"
    );
    let requests = recording.tables.requests.rows.iter().map(|r| r.count()).sum::<u64>() as i64;
    assert!((requests - 1_000 * grown.seconds()).abs() < 2_000, "{requests} requests");
    let [rows, condensed] = both(&dir);
    assert_eq!(rows, condensed);
}
