//! No cause accounts for more than its events can cost, on any recording.

use holdup_diagnose::causes::Outcome;
use holdup_diagnose::{Case, Cause, diagnose};
use holdup_signals::time::requests::{client_queue_ms, mean_over};

use crate::fixtures;

/// Figures of verdicts are rounded to a tenth.
const ROUNDED_MS: f64 = 0.06;

/// Causes whose events are counted.
const BOUNDED: [Cause; 9] = [
    Cause::AcceptQueueOverflow,
    Cause::ConnectionPerRequest,
    Cause::ConnectionStorm,
    Cause::CpuThrottled,
    Cause::LivenessProbeKill,
    Cause::NPlusOneQueries,
    Cause::ProcessStopped,
    Cause::RuntimePause,
    Cause::TableCacheSmall,
];

/// The generator's queue grows in proportion to the service's time, and belongs to what made that longer.
fn with_generator_queue(case: &Case<'_>) -> f64 {
    let queued =
        case.slow_requests().ok().and_then(|rows| mean_over(rows.iter().copied(), |r| Some(client_queue_ms(r))));
    let queued_ms = queued.unwrap_or(0.0);
    let inside_ms = case.excess_ms() - queued_ms;
    if inside_ms > 0.0 { 1.0 + queued_ms / inside_ms } else { 1.0 }
}

#[test]
fn no_verdict_has_a_cause_above_its_bound() {
    let bounded: Vec<Cause> = Cause::ALL.iter().copied().filter(|cause| cause.definition().bound.is_some()).collect();
    assert!(BOUNDED.iter().all(|cause| bounded.contains(cause)), "{bounded:?}");
    let above = fixtures::side_by_side(fixtures::all(), |fixture| {
        let (case, diagnosis) = (Case::new(&fixture.recording, None), diagnose(&fixture.recording, None));
        let mut above = Vec::new();
        let mut hold = |cause: Cause, explains_ms: f64, factor: f64| {
            let bound = cause.definition().bound.and_then(|bound| bound(&case)).map(|bound| factor * bound.ms);
            above.extend(
                bound
                    .filter(|most| explains_ms > most + ROUNDED_MS)
                    .map(|most| format!("{}: {cause} {explains_ms} ms, at most {most} ms", fixture.name)),
            );
        };
        for cause in &bounded {
            if let Ok(Outcome::Found(found) | Outcome::Fails(found, _)) = cause.judge(&case) {
                hold(*cause, found.explains_ms, 1.0);
            }
        }
        // What follows from a finding counts for it as well.
        let leads = |cause: Cause| diagnosis.findings.iter().any(|other| other.follows_from == Some(cause));
        for finding in diagnosis.findings.iter().filter(|finding| !leads(finding.cause)) {
            hold(finding.cause, finding.explains_ms, with_generator_queue(&case));
        }
        above
    });
    assert_eq!(above.concat(), [""; 0]);
}
