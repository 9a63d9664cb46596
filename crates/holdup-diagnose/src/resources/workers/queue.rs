//! The accept queue in front of workers: what waits in it, and what is dropped because it is full.

use holdup_recording::rows::Request;
use holdup_signals::Counter;
use holdup_signals::time::requests::{mean_over, service_ms};

use super::{Pool, WorkerHold};
use crate::case::Case;

/// The client resends a dropped connection request after this long, milliseconds, and after twice
/// as long each further time (TCP_TIMEOUT_INIT).
const AGAIN_MS: f64 = 1_000.0;

/// Milliseconds that a mean request waited because the queue was full: connecting time beyond the
/// baseline window's, plus its time with the service beyond the queue and its worker, each limited
/// to one second per dropped connection. 0 if nothing overflowed.
pub fn dropped_ms(case: &Case<'_>, pool: Option<&Pool>) -> f64 {
    let (Ok(rows), Some((most_ms, _))) = (case.slow_requests(), dropped_most(case)) else { return 0.0 };
    let of = |r: &Request| Some(r.connect_ns as f64 / 1e6);
    let baseline =
        case.baseline().and_then(|baseline| mean_over(case.requests_in(baseline.window).ok()?, of)).unwrap_or(0.0);
    let connecting = (mean_over(rows.iter().copied(), of).unwrap_or(0.0) - baseline).max(0.0);
    let service = mean_over(rows.iter().copied(), service_ms).unwrap_or(0.0);
    let known =
        pool.map_or(service, |pool| pool.queued_ms() + WorkerHold::measure(case, pool).map_or(0.0, |held| held.ms));
    let unanswered = (service - known).max(0.0);
    (connecting + unanswered).min(most_ms)
}

/// What dropped connections can cost a mean request at most, milliseconds, and their count; none if none was
/// dropped.
pub fn dropped_most(case: &Case<'_>) -> Option<(f64, Counter)> {
    let view = case.slow();
    let overflows = view.outside().ok()?.overflows.clone().filter(|overflows| overflows.delta > 0.0)?;
    Some((overflows.delta * AGAIN_MS / case.completed_in(view.window).ok()?.max(1.0), overflows))
}

/// Milliseconds that a request stands in the accept queue; none if not recorded.
pub fn queued_ms(case: &Case<'_>) -> Option<f64> {
    Pool::for_case(case).ok()?.accept_ms
}
