//! No cause accounts for more than its events can cost, on any recording.

use holdup_diagnose::{Case, Cause, diagnose};

use crate::fixtures;

/// Figures of verdicts are rounded to a tenth.
const ROUNDED_MS: f64 = 0.06;

#[test]
fn no_verdict_has_a_cause_above_its_bound() {
    assert!(Cause::ALL.iter().any(|cause| cause.definition().bound.is_some()));
    let above = fixtures::side_by_side(fixtures::all(), |fixture| {
        let (case, diagnosis) = (Case::new(&fixture.recording, None), diagnose(&fixture.recording, None));
        let findings = diagnosis.findings.iter().filter_map(|finding| {
            let bound = finding.cause.definition().bound.and_then(|bound| bound(&case))?;
            (finding.explains_ms > bound.ms + ROUNDED_MS).then(|| {
                format!("{}: {} {} ms, at most {} ms", fixture.name, finding.cause, finding.explains_ms, bound.ms)
            })
        });
        findings.collect::<Vec<_>>()
    });
    assert_eq!(above.concat(), [""; 0]);
}
