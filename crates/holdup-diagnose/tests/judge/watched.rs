//! Every fixture as if holdup had only watched, without a load of its own in front of the service: what is broken is named or left open and
//! never called healthy, and no cause is named where nothing is broken.

use holdup_diagnose::verdict::{Answer, Diagnosis, NAMED};
use holdup_diagnose::{Cause, diagnose};
use holdup_recording::Recording;
use holdup_recording::watchers::take_load;

use crate::fixtures::{self, Fixture, Truth, side_by_side};
use crate::known_wrong;

/// `recording` without what only a load by holdup leaves.
fn watched(recording: &Recording) -> Recording {
    let mut less = recording.clone();
    take_load(&mut less);
    less.tables.samples.rows.retain(|s| s.source != "holdup");
    less
}

/// The culprit and how sure of it the diagnosis is.
pub fn culprit(diagnosis: &Diagnosis) -> Option<(&str, f64)> {
    let cause = diagnosis.culprit.map(Cause::slug)?;
    diagnosis.findings.iter().find(|f| f.cause.slug() == cause).map(|f| (cause, f.confidence))
}

/// Whether `named` is what more load meets, by the whole recording: who sees only a disk at its limit cannot see that more was asked for.
fn is_met(fixture: &Fixture, named: &str) -> bool {
    let whole = diagnose(&fixture.recording, None);
    whole.findings.iter().any(|f| f.cause.slug() == named && f.follows_from.map(Cause::slug) == Some("workload_spike"))
}

/// Whether the answer of a watcher without load is right or leaves it open: no other culprit is named, nothing that is broken is called
/// healthy, and where nothing is broken nothing is named.
pub fn is_right(fixture: &Fixture, diagnosis: &Diagnosis) -> bool {
    let named = culprit(diagnosis).filter(|(_, sure)| *sure >= NAMED);
    match &fixture.truth {
        Truth::Broken(cause) => match named {
            Some((named, _)) => named == cause || cause == "workload_spike" && is_met(fixture, named),
            None => diagnosis.verdict != Answer::Healthy,
        },
        // What slows requests down within the objectives of the load is named without them.
        Truth::Healthy => {
            named.is_none_or(|(named, _)| diagnose(&fixture.recording, None).minor.map(Cause::slug) == Some(named))
        }
        Truth::Unknown => named.is_none(),
    }
}

/// What the answer names, if that is wrong.
fn wrong(fixture: &Fixture) -> Option<(String, String)> {
    let diagnosis = diagnose(&watched(&fixture.recording), None);
    println!("{}: {:?} {:?}: {}", fixture.name, diagnosis.verdict, culprit(&diagnosis), diagnosis.headline);
    (!is_right(fixture, &diagnosis)).then(|| (fixture.name.clone(), said(&diagnosis)))
}

/// The culprit in a word, or what is said instead.
pub fn said(diagnosis: &Diagnosis) -> String {
    let verdict = || format!("{:?}", diagnosis.verdict).to_lowercase();
    diagnosis.culprit.map_or_else(verdict, |cause| cause.slug().to_owned())
}

#[test]
fn without_a_load_of_its_own_the_verdict_is_right_or_undecided() {
    let fixtures: Vec<&Fixture> = fixtures::all().iter().collect();
    let wrong = side_by_side(&fixtures, |fixture| wrong(fixture)).into_iter().flatten();
    let failures = known_wrong::changed("watched", wrong);
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), fixtures.len(), failures.join("\n"));
}

/// The incidents whose teams had no load generator: with the sources that they had, at a confidence at which they would act.
#[test]
fn the_incidents_are_named_by_watching_alone() {
    const SURE: f64 = 0.6;
    for (name, cause) in [
        ("hidden-queue-faulty", "thread_pool_queue"),
        ("readahead-faulty", "readahead_too_large"),
        ("worker-capacity-faulty", "worker_pool_exhausted"),
        ("throughput-ceiling-faulty", "throughput_ceiling"),
        ("uninterruptible-faulty", "on_disk_temporary_tables"),
    ] {
        let diagnosis = diagnose(&watched(&fixtures::named(name).recording), None);
        let named = culprit(&diagnosis).filter(|(_, sure)| *sure >= SURE).map(|(named, _)| named);
        assert_eq!((diagnosis.verdict, named), (Answer::Found, Some(cause)), "{name}: {}", diagnosis.headline);
    }
}
