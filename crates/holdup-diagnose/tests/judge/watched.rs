//! Every fixture as if holdup had only watched, without a load of its own in front of the service: what is broken is named or left open and
//! never called healthy, and no cause is named where nothing is broken.

use holdup_diagnose::diagnose;
use holdup_diagnose::verdict::{Answer, Diagnosis, NAMED};
use holdup_recording::Recording;

use crate::fixtures::{self, Fixture, Truth, side_by_side};

/// `recording` without what only a load by holdup leaves.
fn watched(recording: &Recording) -> Recording {
    let mut less = recording.clone();
    less.tables.requests.rows.clear();
    less.tables.samples.rows.retain(|s| s.source != "holdup");
    less.manifest.load = None;
    less.manifest.phases.clear();
    less.manifest.thresholds.clear();
    less
}

fn culprit(diagnosis: &Diagnosis) -> Option<(&str, f64)> {
    let cause = diagnosis.culprit.as_deref()?;
    diagnosis.findings.iter().find(|f| f.cause == cause).map(|f| (cause, f.confidence))
}

/// Whether `named` is what more load meets, by the whole recording: who sees only a disk at its limit cannot see that more was asked for.
fn is_met(fixture: &Fixture, named: &str) -> bool {
    let whole = diagnose(&fixture.recording, None);
    whole.findings.iter().any(|f| f.cause == named && f.follows_from.as_deref() == Some("workload_spike"))
}

/// What is wrong with the answer, if anything is.
fn wrong(fixture: &Fixture) -> Option<String> {
    let diagnosis = diagnose(&watched(&fixture.recording), None);
    let named = culprit(&diagnosis).filter(|(_, sure)| *sure >= NAMED);
    println!("{}: {:?} {named:?}: {}", fixture.name, diagnosis.verdict, diagnosis.headline);
    let is_right = match &fixture.truth {
        Truth::Broken(cause) => match named {
            Some((named, _)) => named == cause || cause == "workload_spike" && is_met(fixture, named),
            None => diagnosis.verdict != Answer::Healthy,
        },
        // What slows requests down within the objectives of the load is named without them.
        Truth::Healthy => {
            named.is_none_or(|(named, _)| diagnose(&fixture.recording, None).minor.as_deref() == Some(named))
        }
        Truth::Unknown => named.is_none(),
    };
    (!is_right).then(|| format!("{}: {:?} {named:?}: {}", fixture.name, diagnosis.verdict, diagnosis.headline))
}

#[test]
fn without_a_load_of_its_own_the_verdict_is_right_or_undecided() {
    let fixtures: Vec<&Fixture> = fixtures::all().iter().collect();
    let wrong: Vec<String> = side_by_side(&fixtures, |fixture| wrong(fixture)).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), fixtures.len(), wrong.join("\n"));
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
