//! What the events of a cause can cost a request at most. Where a cause's size is a wait that other
//! causes may share, the number of its events bounds it.

use holdup_recording::words::ms;
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

use super::{Definition, MATTERS, Outcome};
use crate::case::Case;
use crate::resources::is_too_small;

/// The most that a cause's events can cost.
pub struct Bound {
    /// Milliseconds of a mean slow request.
    pub ms: f64,
    /// The events, and what one of them costs.
    pub evidence: Evidence,
}

impl Bound {
    /// A service that stood still for `seconds` in all owes no request more than that: by then it would have
    /// done all that waits.
    pub(super) fn of_stops(seconds: f64, pointer: Evidence, events: &str) -> Self {
        let text = format!("{events} took {} in all", ms(seconds * 1e3));
        Self { ms: seconds * 1e3, evidence: pointer.saying("", text) }
    }
}

/// `outcome` with no more time than the cause's events can cost; cleared if that is too little to
/// matter, unless requests also fail of it.
pub(super) fn hold(
    case: &Case<'_>,
    definition: &Definition,
    outcome: Result<Outcome, Missing>,
) -> Result<Outcome, Missing> {
    let (mut found, failed) = match outcome {
        Ok(Outcome::Found(found)) => (found, None),
        Ok(Outcome::Fails(found, failed)) => (found, Some(failed)),
        outcome => return outcome,
    };
    let bound = definition.bound.and_then(|bound| bound(case)).filter(|bound| bound.ms < found.explains_ms);
    if let Some(bound) = bound {
        if failed.is_none_or(|failed| failed < MATTERS) && is_too_small(case, bound.ms)? {
            return Ok(Outcome::Cleared([bound.evidence].into_iter().chain(found.evidence).collect()));
        }
        let said = format!("{}: at most {} of a request", bound.evidence.text, ms(bound.ms));
        found.evidence.push(bound.evidence.saying("", said));
        found.explains_ms = bound.ms;
    }
    Ok(match failed {
        None => Outcome::Found(found),
        Some(failed) => Outcome::Fails(found, failed),
    })
}
