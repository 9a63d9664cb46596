//! Stretches in which nothing is broken, cut out of every fixture at random: none of them has a culprit.

#[expect(dead_code, reason = "windows need no noise")]
mod chance;
#[expect(dead_code, reason = "none is asked for by name")]
mod fixtures;

use chance::Chance;
use fixtures::{Fixture, Truth};
use holdup_diagnose::signals::Window;
use holdup_diagnose::verdict::Answer;
use holdup_diagnose::{Case, diagnose};

/// Windows in all, at least.
const LEAST_WINDOWS: usize = 100;

/// Shortest window, seconds: a few samples of each source.
const LEAST_SECONDS: f64 = 3.0;

/// What of a fixture is healthy: all of the load, or what stands before and after what is broken.
fn healthy(fixture: &Fixture) -> Option<Window> {
    let phases = &fixture.recording.manifest.phases;
    match fixture.truth {
        Truth::Healthy => Some(Window { from: phases.first()?.from, to: phases.last()?.to }),
        Truth::Broken(_) => Case::new(&fixture.recording, None).complaint?.calm,
        Truth::Unknown => None,
    }
}

#[test]
fn no_healthy_window_has_a_culprit() {
    let mut chance = Chance(20_261_123);
    let (mut judged, mut undecided, mut failures) = (0, 0, Vec::new());
    for fixture in fixtures::all() {
        let Some(all) = healthy(fixture).filter(|w| w.seconds() >= LEAST_SECONDS) else { continue };
        // The longer a stretch the more windows differ.
        let windows = if fixture.truth == Truth::Healthy { 14 } else { all.seconds() as usize };
        for _ in 0..windows {
            let seconds = chance.between(LEAST_SECONDS, all.seconds());
            let from = all.from + (chance.between(0.0, all.seconds() - seconds) * 1e9) as i64;
            let window = Window { from, to: from + (seconds * 1e9) as i64 };
            let diagnosis = diagnose(&fixture.recording, Some(window));
            judged += 1;
            undecided += usize::from(diagnosis.verdict == Answer::Undecided);
            let at = (from - fixture.recording.manifest.started_at) as f64 / 1e9;
            println!("{} {at:.1} s + {seconds:.1} s: {:?}: {}", fixture.name, diagnosis.verdict, diagnosis.headline);
            // Where load rises in steps, what is to break may be short already in the last of them.
            let is_early =
                |culprit: &String| matches!(&fixture.truth, Truth::Broken(causes) if causes.contains(culprit));
            if let Some(culprit) = diagnosis.culprit.filter(|culprit| !is_early(culprit)) {
                failures.push(format!("{} {at:.1} s + {seconds:.1} s: {culprit}", fixture.name));
            }
        }
    }
    println!("{judged} windows, {undecided} undecided");
    assert!(judged >= LEAST_WINDOWS, "only {judged} windows");
    assert!(failures.is_empty(), "{} of {judged}:\n{}", failures.len(), failures.join("\n"));
}
