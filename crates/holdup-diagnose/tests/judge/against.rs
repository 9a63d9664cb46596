//! A recording held against another of a time in which all was well: the same culprit as before or a better one, its evidence where
//! it says, and a clear refusal where the two have nothing to do with each other.

use holdup_diagnose::Cause;
use std::path::Path;

use holdup_diagnose::verdict::{Answer, Diagnosis, Evidence};
use holdup_diagnose::{Incomparable, diagnose, diagnose_against};
use holdup_recording::Recording;

fn fixture(name: &str) -> Recording {
    Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap()
}

fn evidence(diagnosis: &Diagnosis) -> impl Iterator<Item = &Evidence> {
    let found = diagnosis.findings.iter().chain(&diagnosis.next).flat_map(|f| &f.evidence);
    found.chain(diagnosis.cleared.iter().flat_map(|c| &c.evidence))
}

/// Every lab's faulty recording against its fixed one.
#[test]
fn the_fixed_run_stands_for_the_healthy_time() {
    let (mut pointed, mut others) = (0, Vec::new());
    for (faulty, fixed) in [
        ("demo-faulty", "demo-fixed"),
        ("hidden-queue-faulty", "hidden-queue-fixed"),
        ("hidden-queue-decoy", "hidden-queue-fixed"),
        ("readahead-faulty", "readahead-fixed"),
        ("readahead-decoy", "readahead-fixed"),
        ("throughput-ceiling-faulty", "throughput-ceiling-fixed"),
        ("throughput-ceiling-decoy", "throughput-ceiling-fixed"),
        ("throughput-ceiling-decoy-index", "throughput-ceiling-fixed"),
        ("uninterruptible-faulty", "uninterruptible-fixed"),
        ("worker-capacity-faulty", "worker-capacity-fixed"),
        ("worker-capacity-decoy", "worker-capacity-fixed"),
        ("worker-capacity-decoy-auth", "worker-capacity-fixed"),
    ] {
        let (recording, healthy) = (fixture(faulty), fixture(fixed));
        let by_itself = diagnose(&recording, None);
        let diagnosis = diagnose_against(&recording, None, &healthy).unwrap();
        let likeliest = |of: &Diagnosis| of.likeliest().map(|finding| finding.cause);
        if likeliest(&diagnosis) != likeliest(&by_itself) {
            others.push(format!("{faulty} against {fixed}: {:?}, {}", likeliest(&diagnosis), diagnosis.headline));
        }
        let against = diagnosis.against.as_ref().unwrap();
        assert_eq!(against.recording, healthy.manifest.name, "{faulty}");
        for piece in evidence(&diagnosis) {
            let of = if piece.against { &healthy } else { &recording };
            assert!(piece.resolves(of), "{faulty}: {piece:?} points nowhere");
            pointed += usize::from(piece.against);
        }
        let judged = |d: &Diagnosis| d.findings.len() + d.cleared.len();
        if judged(&diagnosis) < judged(&by_itself) {
            others.push(format!("{faulty}: fewer causes were judged than without {fixed}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    assert!(pointed > 0, "nothing points into the healthy recording");
}

/// What was slow from its first second to its last has no baseline window, and rules that need one can't judge it.
#[test]
fn a_recording_without_a_baseline_is_judged_with_that_of_another() {
    let whole = fixture("throughput-ceiling-decoy-index");
    let episode = diagnose(&whole, None).episode.unwrap();
    let (start, s) = (whole.manifest.started_at, 1e9);
    let window =
        holdup_signals::Window { from: start + (episode.from_s * s) as i64, to: start + (episode.to_s * s) as i64 };
    let open = |d: &Diagnosis| d.not_judged.iter().any(|n| n.missing.contains("baseline window"));
    assert!(open(&diagnose(&whole, Some(window))));
    let diagnosis = diagnose_against(&whole, Some(window), &fixture("throughput-ceiling-fixed")).unwrap();
    assert!(!open(&diagnosis), "{:?}", diagnosis.not_judged);
    assert_eq!(diagnosis.culprit.map(Cause::slug), Some("plan_changed"), "{}", diagnosis.headline);
}

#[test]
fn healthy_against_healthy_is_healthy() {
    let (one, mut other) = (fixture("hidden-queue-fixed"), fixture("demo-fixed"));
    other.manifest.coverage.clone_from(&one.manifest.coverage);
    for operation in &mut other.tables.requests.rows {
        operation.operation.clone_from(&one.tables.requests.rows[0].operation);
    }
    let diagnosis = diagnose_against(&one, None, &other).unwrap();
    assert_eq!(diagnosis.verdict, Answer::Healthy, "{}", diagnosis.headline);
}

#[test]
fn an_unrelated_recording_is_refused() {
    let faulty = fixture("hidden-queue-faulty");
    let refused = |healthy: &Recording| diagnose_against(&faulty, None, healthy).unwrap_err();
    assert_eq!(refused(&faulty), Incomparable::Same);
    let fixed = fixture("hidden-queue-fixed");

    let mut overlapping = fixed.clone();
    overlapping.manifest.started_at = faulty.manifest.started_at + 1_000_000_000;
    assert_eq!(refused(&overlapping), Incomparable::SameTime);

    let mut unmeasured = fixed.clone();
    unmeasured.tables.requests.rows.clear();
    unmeasured.tables.samples.rows.clear();
    assert_eq!(refused(&unmeasured), Incomparable::NoResponseTime);

    let mut watched = fixed.clone();
    watched.tables.requests.rows.clear();
    watched.manifest.load = None;
    assert!(matches!(refused(&watched), Incomparable::Measured(..)), "{}", refused(&watched));

    let mut others = fixed.clone();
    others.manifest.coverage.iter_mut().for_each(|c| c.source = "files:/var".to_owned());
    assert!(matches!(refused(&others), Incomparable::Sources(..)), "{}", refused(&others));

    let mut tables = fixed.clone();
    tables.manifest.tables = [("files".to_owned(), 9), ("samples".to_owned(), 9)].into();
    assert_eq!(refused(&tables), Incomparable::Tables);

    let mut asked = fixed.clone();
    asked.tables.requests.rows.iter_mut().for_each(|r| r.operation = "checkout".to_owned());
    assert_eq!(refused(&asked), Incomparable::Operations("search".to_owned(), "checkout".to_owned()));

    // Slow itself: its own baseline window would do if it had one.
    let mut slow = fixed.clone();
    slow.latencies.clear();
    for row in &mut slow.tables.requests.rows {
        row.done_at += 3_000_000_000;
    }
    assert!(matches!(refused(&slow), Incomparable::NotHealthy(_)), "{}", refused(&slow));
}
