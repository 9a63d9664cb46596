//! What clears several causes at once: a small measured time that includes all of them.

use holdup_recording::words::ms;
use holdup_signals::Missing;
use holdup_signals::host::throttle::Unit;
use holdup_signals::yardstick::MATTERS;

use crate::case::Case;
use crate::causes::Outcome;
use crate::resources::statements::database_of_app;
use crate::resources::volume::demand::demand;

/// The rule's outcome, or if it lacks facts, whether the disk clears the cause anyway.
pub(crate) fn or_by_disk(case: &Case<'_>, judged: Result<Outcome, Missing>) -> Result<Outcome, Missing> {
    judged.or_else(|missing| clear_by_disk(case).ok_or(missing))
}

/// Clears causes that hurt only through the disk, if requests hardly wait for it, whatever else is
/// unknown.
fn clear_by_disk(case: &Case<'_>) -> Option<Outcome> {
    let demand = demand(case).ok()?;
    let waited = demand.waited_ms(case).ok().filter(|waited| case.share_inside(*waited) < MATTERS)?;
    let text = format!("a request waited {} in all for {}", ms(waited), demand.flow.name);
    let slow = case.slow().window;
    let evidence = demand.flow.evidence(Unit::Bytes, slow, ms(waited), "a large part of the delay".into(), text);
    Some(Outcome::Cleared(vec![evidence]))
}

/// Clears a cause inside the database by the app's own timing of its statements, which bounds every
/// wait in it; none if that is not small, or unknown. `what` says that it includes the cause.
pub(crate) fn by_statements(case: &Case<'_>, what: &str) -> Option<Outcome> {
    let (per_request, _, evidence) = database_of_app(case)?;
    (case.share_inside(per_request) < MATTERS).then(|| {
        let text = format!("a request spent {} in the database, {what}", ms(per_request));
        Outcome::Cleared(vec![evidence.saying("most of the delay", text)])
    })
}
