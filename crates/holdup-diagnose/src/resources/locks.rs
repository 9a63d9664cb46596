//! Locks of the database: how long they are held.

use crate::case::Case;

/// Milliseconds per request for which contended locks are held: mean number of holders over the
/// rate at which requests end (Little's law). What makes up most of that is why they are held. None
/// if the holders are unknown, or mostly idle: the database then has no part in it.
pub fn held_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let blockers = view.blockers().ok()?;
    let idle: f64 = blockers.holders.iter().filter(|h| h.is_idle()).map(|h| h.instants_ratio).sum();
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    (blockers.mean > 2.0 * idle).then(|| blockers.mean / (completed / view.window.seconds()) * 1e3)
}
