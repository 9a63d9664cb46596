//! A disk or volume: what waiting for it costs a request.

pub mod burst;
pub mod demand;
pub mod level;
pub mod stated;

use holdup_signals::host::disk_waits::DiskWaits;
use holdup_signals::time::requests::{mean_over, service_ms};
use holdup_signals::yardstick::MATTERS;
use holdup_signals::{Missing, app::timing};

use super::share;
use crate::case::Case;

/// If this share (0-1) of the app's own time of a request is uninterruptible sleep, its workers are
/// busy because of it, and requests wait for a worker for the same reason.
const KEEPS_BUSY: f64 = 0.5;

/// With fewer threads asleep on average, they can't be all the workers: nothing queues for workers
/// because of them.
const A_WORKER: f64 = 0.5;

/// What `ms` of a request in its worker amount to in the client's wait. If workers do little but
/// sleep, requests wait for a worker too, longer in the same proportion.
///
/// # Errors
/// If it is little by itself and no source shows whether workers were busy with it.
pub fn of_requests(waits: &DiskWaits, case: &Case<'_>, ms: f64) -> Result<f64, Missing> {
    let server = case.slow().mean(timing::HTTP_SERVER, &[], timing::APP_METRICS).ok().filter(|m| m.count > 0.0);
    let client = case.slow_requests().ok().and_then(|rows| mean_over(rows.iter().copied(), service_ms));
    let in_proportion = |busy: f64, waited: f64| {
        let is_busy = busy > 0.0 && waited >= KEEPS_BUSY * busy;
        client.filter(|_| is_busy).map_or(ms, |client| ms * (client / busy).max(1.0))
    };
    if let Some(server) = server {
        return Ok(in_proportion(server.ms.max(waits.asleep_ms()), waits.asleep_ms()));
    }
    // If statements are the client's requests, the database's sessions are the workers.
    if let Some(busy_ms) = statement_ms(waits, case) {
        let by_sessions = waits.ms(waits.sessions.map_or(0.0, |sessions| sessions.for_disk()));
        let waited = if waits.is_all_in_sessions { by_sessions } else { by_sessions.max(waits.asleep_ms()) };
        return Ok(in_proportion(busy_ms.max(waited), waited));
    }
    // At most: as if workers did nothing but sleep.
    let most = client.map_or(ms, |client| ms * (client / waits.asleep_ms().max(1e-9)).max(1.0));
    let matters = |ms| share(case, ms) >= MATTERS;
    if !matters(ms) && matters(most) && waits.asleep.mean >= A_WORKER {
        return Err(Missing::new("the app's own time of a request", timing::APP_METRICS));
    }
    Ok(ms)
}

/// Milliseconds per request that sessions executed statements, if the client's requests are
/// statements.
fn statement_ms(waits: &DiskWaits, case: &Case<'_>) -> Option<f64> {
    let busy = if case.asks_statements() { case.slow().busy_sessions().ok()? } else { return None };
    Some(waits.ms(waits.sessions.map_or(busy.mean(), |sessions| sessions.active)))
}
