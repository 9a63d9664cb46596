//! Stretches in which nothing is broken, cut out of every fixture at random: none of them has a culprit.

use holdup_diagnose::verdict::Answer;
use holdup_diagnose::{Case, Cause, diagnose};
use holdup_signals::Window;

use crate::chance::Chance;
use crate::fixtures::{self, Fixture, Truth, side_by_side};
use crate::removal::part::Part;

/// Windows in all, at least.
const LEAST_WINDOWS: usize = 100;

/// Shortest window, seconds: a few samples of each source.
const LEAST_SECONDS: f64 = 3.0;

/// What of a fixture is healthy: all of the load, or what stands before and after what is broken.
fn healthy(fixture: &Fixture) -> Option<Window> {
    let phases = &fixture.recording.manifest.phases;
    match fixture.truth {
        Truth::Healthy => Some(Window { from: phases.first()?.from, to: phases.last()?.to }),
        Truth::Broken(_) => Case::new(&fixture.recording, None).degradation?.baseline,
        Truth::Unknown => None,
    }
}

#[test]
fn no_healthy_window_has_a_culprit() {
    let mut chance = Chance(20_261_123);
    let mut windows: Vec<(&Fixture, Window)> = Vec::new();
    for fixture in fixtures::all() {
        let Some(all) = healthy(fixture).filter(|w| w.seconds() >= LEAST_SECONDS) else { continue };
        // The longer a stretch the more windows differ.
        let count = if fixture.truth == Truth::Healthy { 14 } else { all.seconds() as usize };
        for _ in 0..count {
            let seconds = chance.between(LEAST_SECONDS, all.seconds());
            let from = all.from + (chance.between(0.0, all.seconds() - seconds) * 1e9) as i64;
            windows.push((fixture, Window { from, to: from + (seconds * 1e9) as i64 }));
        }
    }
    let accused: Vec<String> =
        side_by_side(&windows, |(fixture, window)| accused(fixture, *window)).into_iter().flatten().collect();
    assert!(windows.len() >= LEAST_WINDOWS, "only {} windows", windows.len());
    assert!(accused.is_empty(), "{} of {}:\n{}", accused.len(), windows.len(), accused.join("\n"));
}

/// Response time rises thirtyfold and stays below what was asked for: nothing is broken, and what it came from is said.
#[test]
fn a_slowdown_within_the_objectives_is_healthy_and_named() {
    let recording = &fixtures::named("throughput-ceiling-fixed").recording;
    let diagnosis = diagnose(recording, None);
    assert_eq!(
        (diagnosis.verdict, diagnosis.culprit, diagnosis.minor.map(Cause::slug)),
        (Answer::Healthy, None, Some("disk_saturated"))
    );
    let met = "No request was too slow: every objective was met (p99 < 1s, errors < 1%); but response time stood at ";
    assert!(diagnosis.headline.starts_with(met), "{}", diagnosis.headline);
    assert_eq!(diagnosis.headline.matches("every objective was met").count(), 1, "{}", diagnosis.headline);
    // Without requests only the errors can be judged, which says nothing of response time.
    let mut less = recording.clone();
    Part::Table("requests").take_from(&mut less);
    let diagnosis = diagnose(&less, None);
    assert_ne!(diagnosis.verdict, Answer::Healthy, "{}", diagnosis.headline);
    assert!(!diagnosis.headline.contains("every objective was met"), "{}", diagnosis.headline);
}

/// Who is named in a window in which nothing is broken, if anything is.
fn accused(fixture: &Fixture, window: Window) -> Option<String> {
    let diagnosis = diagnose(&fixture.recording, Some(window));
    let at = (window.from - fixture.recording.manifest.started_at) as f64 / 1e9;
    let place = format!("{} {at:.1} s + {:.1} s", fixture.name, window.seconds());
    println!("{place}: {:?}: {}", diagnosis.verdict, diagnosis.headline);
    // Where load rises in steps, what is to break may be short already in the last of them, and more load shows
    // as the resource that it meets.
    let is_early = |culprit: &str| match &fixture.truth {
        Truth::Broken(cause) => cause == culprit || cause == "workload_spike",
        _ => false,
    };
    diagnosis.culprit.filter(|culprit| !is_early(culprit.slug())).map(|culprit| format!("{place}: {culprit}"))
}
