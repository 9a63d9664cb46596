//! What the events of a cause can cost a request at most. Where a cause's size is a wait that other
//! causes may share, the number of its events bounds it.

use holdup_recording::words::ms;
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

use super::{Definition, Outcome};
use crate::case::Case;
use crate::resources::is_too_small;

/// The most that a cause's events can cost.
pub struct Bound {
    /// Milliseconds of a mean slow request.
    pub ms: f64,
    /// The events, and what one of them costs.
    pub evidence: Evidence,
}

/// `outcome` with no more time than the cause's events can cost; cleared if that is too little to
/// matter.
pub(super) fn hold(
    case: &Case<'_>,
    definition: &Definition,
    outcome: Result<Outcome, Missing>,
) -> Result<Outcome, Missing> {
    let Ok(Outcome::Found(mut found)) = outcome else { return outcome };
    let bound = definition.bound.and_then(|bound| bound(case)).filter(|bound| bound.ms < found.explains_ms);
    let Some(bound) = bound else { return Ok(Outcome::Found(found)) };
    if is_too_small(case, bound.ms)? {
        return Ok(Outcome::Cleared([bound.evidence].into_iter().chain(found.evidence).collect()));
    }
    let said = format!("{}: at most {} of a request", bound.evidence.text, ms(bound.ms));
    found.evidence.push(bound.evidence.saying("", said));
    found.explains_ms = bound.ms;
    Ok(Outcome::Found(found))
}
