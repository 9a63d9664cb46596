//! Every fixture with any one source or table gone: the verdict is right, or it is undecided, and never sure of what is not so. Silence is
//! not evidence, neither for a culprit nor for health.

mod honest;
pub mod part;

use holdup_diagnose::{Cause, diagnose};
use honest::{confidence, is_honest};
use part::Part;

use crate::fixtures::{self, Fixture, side_by_side};
use crate::known_wrong;

/// Judges `fixture` without `parts`. A verdict that is neither right nor honest: of which recording, and which culprit it names.
fn judged_without(fixture: &Fixture, parts: &[&Part]) -> Option<(String, String)> {
    let mut less = fixture.recording.clone();
    parts.iter().for_each(|part| part.take_from(&mut less));
    let diagnosis = diagnose(&less, None);
    println!(
        "{} without {parts:?}: {:?} {:?} {:?}: {}",
        fixture.name,
        diagnosis.verdict,
        diagnosis.culprit,
        confidence(&diagnosis),
        diagnosis.headline
    );
    for evidence in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
        assert!(evidence.resolves(&less), "{} without {parts:?}: {evidence:?} points nowhere", fixture.name);
    }
    let is_wrong = !is_honest(&diagnosis, &fixture.truth, || diagnose(&fixture.recording, None));
    is_wrong.then(|| (fixture.name.clone(), diagnosis.culprit.map_or("healthy", Cause::slug).to_owned()))
}

#[test]
fn without_any_one_source_the_verdict_is_right_or_undecided() {
    let removals: Vec<(&Fixture, Part)> =
        fixtures::all().iter().flat_map(|f| Part::of(&f.recording).into_iter().map(move |part| (f, part))).collect();
    let named = removals.len();
    let wrong = side_by_side(&removals, |(fixture, part)| judged_without(fixture, &[part])).into_iter().flatten();
    let failures = known_wrong::changed("removal", wrong);
    assert!(named > 10 * fixtures::all().len() / 2, "only {named} removals");
    assert!(failures.is_empty(), "{} of {named}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
#[ignore = "full: minutes"]
fn without_any_two_sources_the_verdict_is_right_or_undecided() {
    let mut removals = Vec::new();
    for fixture in fixtures::all() {
        let parts = Part::of(&fixture.recording);
        for (i, part) in parts.iter().enumerate() {
            removals.extend(parts[i + 1..].iter().map(|other| (fixture, part.clone(), other.clone())));
        }
    }
    let count = removals.len();
    let judged = side_by_side(&removals, |(fixture, part, other)| judged_without(fixture, &[part, other]));
    let failures = known_wrong::changed("removal", judged.into_iter().flatten());
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}
