//! Long recordings: judged right, and the same by their rows and without them.

use holdup_diagnose::Cause;
use std::path::{Path, PathBuf};

use holdup_diagnose::verdict::{Answer, Diagnosis, Finding};
use holdup_diagnose::{CHOICE, UNREAD, diagnose};
use holdup_recording::Recording;
use holdup_recording::condensed::Condensed;
use holdup_recording::excerpt::{Choice, Limits};
use holdup_recording::tables::Tables;

use crate::fixtures::side_by_side;

pub mod grow;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The verdict of the recording in `dir`, by its rows and without them.
fn both(dir: &Path) -> [String; 2] {
    let json = |recording: &Recording| serde_json::to_string_pretty(&diagnose(recording, None)).unwrap();
    let mut rows = Recording::open(dir).unwrap();
    empty_unread(&mut rows.tables);
    [json(&rows), json(&Recording::open_condensed(dir).unwrap())]
}

/// Empties the columns of [`UNREAD`], as if they had not been fetched.
fn empty_unread(tables: &mut Tables) {
    for (table, column) in UNREAD {
        match (table, column) {
            ("samples", "window_ns") => tables.samples.rows.iter_mut().for_each(|row| row.window_ns = 0),
            ("threads", "tid") => tables.threads.rows.iter_mut().for_each(|row| row.tid = 0),
            ("threads", "thread") => tables.threads.rows.iter_mut().for_each(|row| row.thread.clear()),
            ("threads", "cpu_ns_total") => tables.threads.rows.iter_mut().for_each(|row| row.cpu_ns_total = None),
            ("threads", "run_queue_ns_total") => {
                tables.threads.rows.iter_mut().for_each(|row| row.run_queue_ns_total = None);
            }
            ("statements", "temporary_tables") => {
                tables.statements.rows.iter_mut().for_each(|row| row.temporary_tables = 0);
            }
            ("exchanges", "request_bytes") => tables.exchanges.rows.iter_mut().for_each(|row| row.request_bytes = 0),
            ("executions", "logged_ns") => tables.executions.rows.iter_mut().for_each(|row| row.logged_ns = None),
            _ => panic!("{table}.{column} is not emptied here"),
        }
    }
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
    assert_eq!((diagnosis.verdict, diagnosis.culprit.map(Cause::slug)), (Answer::Found, Some("thread_pool_queue")));
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

/// As if a few megabytes were all the memory there is.
pub const SMALL: Choice =
    Choice { limits: Limits { whole_bytes: 16 << 20, stretch_bytes: 12 << 20, course_samples: 100_000 }, ..CHOICE };

/// Writes the long recording made of two fixtures to `dir`, and what was made.
fn grown(dir: &Path, [healthy, faulty]: [&str; 2], seconds: i64) -> grow::Grown {
    let grown = grow::Grown::of(&fixtures().join(healthy), &fixtures().join(faulty), seconds).unwrap();
    grown.write(dir).unwrap();
    grown
}

fn judged(recording: &Recording) -> Diagnosis {
    diagnose(recording, None)
}

/// What does not fit in memory is judged where it turned bad, like the short recording that it was made of.
#[test]
fn the_cause_of_a_short_recording_is_found_in_a_long_one_that_is_read_in_part() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("long");
    let grown = grown(&dir, ["hidden-queue-fixed", "hidden-queue-faulty"], 420);
    let recording = Recording::open_excerpt(&dir, None, &SMALL).unwrap();
    let (part, whole) = (judged(&recording), judged(&Recording::open_condensed(&dir).unwrap()));
    assert_eq!((part.verdict, part.culprit.map(Cause::slug)), (Answer::Found, Some("thread_pool_queue")));
    assert_eq!((whole.verdict, &whole.culprit), (part.verdict, &part.culprit));
    assert_eq!((&whole.episode, &whole.episodes), (&part.episode, &part.episodes));
    assert_eq!((&whole.objectives, whole.load.offered_rate), (&part.objectives, part.load.offered_rate));
    let read = part.read.unwrap();
    let (fault, length_s) = (grown.fault(), read.window.to_s - read.window.from_s);
    assert!(read.window.from_s < fault.start as f64 && read.window.to_s > fault.start as f64 + 5.0, "{read:?}");
    assert!(length_s < 0.5 * grown.seconds() as f64, "{read:?}");
    assert!(part.coverage.iter().any(|entry| entry.why.as_ref() == Some(&read.text)));
    assert!(whole.read.is_none());
    assert!(recording.tables.sessions.rows.len() < 100_000, "{}", recording.tables.sessions.rows.len());
}

/// A part that was asked for is read alone, and judged as it is in the whole recording.
#[test]
fn a_part_that_fits_is_read_alone() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("long");
    let grown = grown(&dir, ["hidden-queue-fixed", "hidden-queue-faulty"], 420);
    let whole = Recording::open_condensed(&dir).unwrap();
    let at = |second: i64| whole.manifest.started_at + second * 1_000_000_000;
    let part = at(grown.fault().start - 10)..at(grown.fault().start + 10);
    let window = holdup_signals::Window { from: part.start, to: part.end };
    let alone = Recording::open_excerpt(&dir, Some(part.clone()), &SMALL).unwrap();
    assert!(alone.course().is_none() && alone.excerpt.is_some());
    // However much memory there is. What was thinned out for less of it moves the ledger's last digits.
    let roomy = Recording::open_excerpt(&dir, Some(part), &CHOICE).unwrap();
    let [small, large] = [&alone, &roomy].map(|recording| diagnose(recording, Some(window)));
    assert_eq!((&small.headline, &small.episode, &small.chain), (&large.headline, &large.episode, &large.chain));
    let confidences = |of: &[Finding]| of.iter().map(|f| (f.cause.slug().to_owned(), f.confidence)).collect::<Vec<_>>();
    assert_eq!(confidences(&small.findings), confidences(&large.findings));
    let [alone, whole] = [&alone, &whole].map(|recording| diagnose(recording, Some(window)));
    assert_eq!((alone.verdict, &alone.culprit), (whole.verdict, &whole.culprit));
    assert_eq!(alone.culprit.map(Cause::slug), Some("thread_pool_queue"));
}

#[test]
fn every_fixture_fits_in_memory() {
    for entry in std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        assert!(Recording::open_excerpt(&entry, None, &CHOICE).unwrap().excerpt.is_none(), "{}", entry.display());
    }
}
