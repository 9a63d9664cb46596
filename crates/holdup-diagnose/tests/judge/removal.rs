//! Every fixture with any one source or table gone: the verdict is right, or it is undecided, and never sure of what is not so. Silence is
//! not evidence, neither for a culprit nor for health.

#[expect(dead_code, reason = "none is asked for by name")]
mod fixtures;

#[path = "removal/honest.rs"]
mod honest;
#[path = "removal/part.rs"]
mod part;

use fixtures::{Fixture, truth};
use holdup_diagnose::diagnose;
use holdup_diagnose::verdict::Diagnosis;
use honest::{confidence, is_honest};
use part::Part;

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
    let mut failures = Vec::new();
    let mut named = 0;
    for fixture in fixtures::all() {
        for part in Part::of(&fixture.recording) {
            failures.extend(judged_without(fixture, &[&part]));
            named += 1;
        }
    }
    assert!(named > 10 * fixtures::all().len() / 2, "only {named} removals");
    assert!(failures.is_empty(), "{} of {named}:\n{}", failures.len(), failures.join("\n"));
}

/// By hand, as it takes minutes: `cargo test -p holdup-diagnose --test removal -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn without_any_two_sources_the_verdict_is_right_or_undecided() {
    let mut failures = Vec::new();
    let mut count = 0;
    for fixture in fixtures::all() {
        let parts = Part::of(&fixture.recording);
        for (i, part) in parts.iter().enumerate() {
            for other in &parts[i + 1..] {
                failures.extend(judged_without(fixture, &[part, other]));
                count += 1;
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}
