//! Every fixture with any one source or table gone: the verdict is right, or it is undecided, and never sure of what is not so. Silence is
//! not evidence, neither for a culprit nor for health.

mod honest;
mod part;

use holdup_diagnose::diagnose;
use holdup_diagnose::verdict::Diagnosis;
use honest::{confidence, is_honest};
use part::Part;

use crate::fixtures::{self, Fixture, side_by_side};

/// What is so, and all that shows without what would tell why: (fixture, culprit).
const AS_FAR_AS_SEEN: &[(&str, &str)] = &[
    // By the server's own wait events commits wait for the log; that the disk below is at its limit shows in threads and on the host.
    ("throughput-ceiling-faulty", "commit_log_bound"),
];

/// Why `diagnosis` of `fixture` without `parts` is neither right nor honest; none if it is.
fn wrong(fixture: &Fixture, parts: &[&Part], diagnosis: &Diagnosis) -> Option<String> {
    let (name, sure) = (&fixture.name, confidence(diagnosis));
    let is_all_that_shows = |culprit: &String| AS_FAR_AS_SEEN.contains(&(name, culprit));
    let is_wrong = !is_honest(diagnosis, &fixture.truth) && !diagnosis.culprit.as_ref().is_some_and(is_all_that_shows);
    is_wrong.then(|| format!("{name} without {parts:?}: {:?} {:?} {sure:?}", diagnosis.verdict, diagnosis.culprit))
}

/// Judges `fixture` without `parts`, and says what is wrong with the verdict.
fn judged_without(fixture: &Fixture, parts: &[&Part]) -> Option<String> {
    let mut less = fixture.recording.clone();
    parts.iter().for_each(|part| part.take_from(&mut less));
    let diagnosis = diagnose(&less, None);
    println!(
        "{} without {parts:?}: {:?} {:?}: {}",
        fixture.name, diagnosis.verdict, diagnosis.culprit, diagnosis.headline
    );
    for evidence in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
        assert!(evidence.resolves(&less), "{} without {parts:?}: {evidence:?} points nowhere", fixture.name);
    }
    wrong(fixture, parts, &diagnosis)
}

#[test]
fn without_any_one_source_the_verdict_is_right_or_undecided() {
    let removals: Vec<(&Fixture, Part)> =
        fixtures::all().iter().flat_map(|f| Part::of(&f.recording).into_iter().map(move |part| (f, part))).collect();
    let named = removals.len();
    let failures: Vec<String> =
        side_by_side(&removals, |(fixture, part)| judged_without(fixture, &[part])).into_iter().flatten().collect();
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
    let failures: Vec<String> = judged.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}
