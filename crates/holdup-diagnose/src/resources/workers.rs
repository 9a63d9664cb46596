//! Workers of an app server: how many are busy, how long a request holds each, and what waits in
//! front of them.

mod hold;
mod pool;
mod proxy;
mod queue;
mod threads;
mod timing;

use holdup_recording::metrics;
use holdup_recording::words::ms;
use holdup_signals::Missing;
use holdup_signals::app::app_server;
use holdup_signals::yardstick::MATTERS;

use super::in_service_ms;
use crate::case::Case;
pub use hold::WorkerHold;
pub use pool::{Pool, answered_per_second, processes, stretch};
pub use queue::{dropped_most, dropped_ms, queued_ms};
pub use threads::request_threads;
pub use timing::AppTiming;

/// Share (0-1) of instants at which all workers must be busy: most of the time.
pub(crate) const MOSTLY: f64 = 0.5;

/// Utilization (0-1) up to which workers hardly make requests wait (Erlang's C formula).
const ENOUGH: f64 = 0.8;

/// Or this share (0-1) of them on average: figures that are seconds old may miss a second.
const BUSY: f64 = 0.9;

/// What a cause must explain to be why all workers are busy, milliseconds of a request.
pub fn held_ms(case: &Case<'_>) -> Option<f64> {
    let pool = Pool::for_case(case).ok()?;
    WorkerHold::measure(case, &pool).map(|held| held.to_explain_ms())
}

/// Whether the workers suffice for all due requests with some room, by the time for which a request holds
/// one; not if unknown.
pub fn suffice(case: &Case<'_>) -> bool {
    let Ok(pool) = Pool::for_case(case) else { return false };
    let held = WorkerHold::measure(case, &pool).map(|held| held.ms);
    held.zip(pool.most).is_some_and(|(ms, most)| case.peak_offered_per_second() * ms / 1e3 <= ENOUGH * most)
}

/// Milliseconds of a request in front of the server: in its queue or a proxy's, or dropped from it.
pub fn in_front_ms(case: &Case<'_>) -> Option<f64> {
    let pool = Pool::for_case(case).ok()?;
    Some(pool.queued_ms() + queue::dropped_ms(case, Some(&pool)))
}

/// The same, or in front of its workers by the app's own timing.
fn in_front_of_workers_ms(case: &Case<'_>, pool: &Pool) -> f64 {
    let timed_ms = pool.timed_ms().filter(|_| pool.is_timed_queue()).unwrap_or(0.0);
    in_front_ms(case).unwrap_or(0.0).max(timed_ms)
}

/// Worker-hold time, if requests wait for a worker long enough to matter; else none. What waits in
/// front then does not measure what holds workers up: causes count in proportion to worker-hold
/// time.
pub fn waits_for_workers(case: &Case<'_>) -> Option<WorkerHold> {
    /// None if requests do not wait for a worker.
    struct QueuedHold(Option<WorkerHold>);
    let measure = |case: &Case<'_>| {
        let pool = Pool::for_case(case)?;
        let in_front_ms = in_front_of_workers_ms(case, &pool);
        let matters = case.excess_ms() > 0.0 && in_front_ms >= MATTERS * in_service_ms(case);
        let is_known = pool.most.is_some() || pool.is_timed_queue();
        Ok::<_, Missing>(QueuedHold(WorkerHold::measure(case, &pool).filter(|_| matters && is_known)))
    };
    case.measured(measure).ok()?.0.clone()
}

/// What would show whether requests wait for a worker that is held for `ms` of a request; none if that is known,
/// or if nothing shows the app's workers at all.
pub fn unseen(case: &Case<'_>, ms: f64) -> Option<Missing> {
    let queue = || Missing::new("how many connections wait in the app server's accept queue", "--watch server:PORT");
    let view = stretch(case);
    let has_sockets = || !view.sources_of(metrics::server::ANSWERING_CONNECTIONS.name).is_empty();
    let pool = match Pool::for_case(case) {
        Ok(pool) if pool.outside.is_none() && has_sockets() => return Some(queue()),
        Ok(pool) => pool,
        Err(missing) => {
            return match view.outside() {
                // Its sockets are watched, and no source shows how many requests it has.
                Ok(outside) => outside.has_processes().then_some(missing),
                Err(_) => has_sockets().then(queue),
            };
        }
    };
    let held = WorkerHold::measure(case, &pool)?;
    if pool.most.is_none() && pool.timing.is_none() {
        // What it does not compute or call may be a wait for a worker.
        return pool.unsplit(case, Some(&held)).filter(|_| ms >= MATTERS * held.known_ms());
    }
    let is_seen = pool.accept_ms.is_some() || pool.is_timed_queue();
    (!is_seen && ms >= MATTERS * held.to_explain_ms()).then(queue)
}

/// Milliseconds that a request's connection stands in the accept queue although the server has free
/// workers. None if all are busy, or if unknown.
pub fn untaken_ms(case: &Case<'_>) -> Option<f64> {
    let pool = Pool::for_case(case).ok()?;
    let has_workers = pool.most.is_some() && pool.knows_hand() && !pool.is_full();
    pool.accept_ms.filter(|_| has_workers && pool.is_standing())
}

/// The requests that wait in front of the app, in words for others' evidence.
pub fn says_of_queue(accept_ms: f64, waiting: f64, port: &str, per_second: f64) -> String {
    format!(
        "{waiting:.1} connections on average waited in the accept queue of port {port}: at {per_second:.0} requests/s that is {} per request, by Little's law",
        ms(accept_ms)
    )
}

/// Threads that show how many requests a server works on at once.
#[derive(Clone, Copy, Debug)]
pub enum WorkingThreads {
    /// So many slept in the kernel at most instants, and never more.
    Asleep(f64),
    /// So many take requests, and all of them have one.
    Busy(f64),
    /// The server names so many as those that take requests, and more requests are with it.
    Named(f64),
    /// All of them are busy with what is answered, by the time that a request takes when nothing waits.
    Held {
        /// So many take requests.
        threads: f64,
        /// The time of one, milliseconds.
        alone_ms: f64,
        /// Requests that are answered.
        per_second: f64,
    },
}

impl WorkingThreads {
    /// Their number.
    pub fn count(self) -> f64 {
        match self {
            Self::Asleep(threads) | Self::Busy(threads) | Self::Named(threads) | Self::Held { threads, .. } => threads,
        }
    }
}

/// What shows how many requests the server on `port` works on at once: its threads, or else the
/// requests that it had accepted.
pub(crate) fn says_of_limit(threads: Option<WorkingThreads>, most: f64, port: &str) -> String {
    match threads {
        Some(WorkingThreads::Asleep(threads)) => format!(
            "{threads:.0} threads of the server on port {port} slept in the kernel at most instants and never more, while more requests were with it: it works on that many at once"
        ),
        Some(WorkingThreads::Busy(threads)) => format!(
            "all {threads:.0} threads of the server on port {port} that take requests had a CPU or awaited an answer at most instants, while more requests were with it: it works on that many at once"
        ),
        Some(WorkingThreads::Named(threads)) => format!(
            "the server on port {port} has {threads:.0} threads for requests, by their names, and started no more while more requests were with it"
        ),
        Some(WorkingThreads::Held { threads, alone_ms, per_second }) => format!(
            "{threads:.0} threads of the server on port {port} take requests: {per_second:.0}/s of {} each, the least that one takes, keep all of them busy, while more requests were with it",
            ms(alone_ms)
        ),
        None => format!(
            "the server on port {port} had {most:.1} accepted requests whenever others waited in front of it: it takes that many at once"
        ),
    }
}

/// What to record to learn how busy workers are.
pub const ENABLE: &str = app_server::ENABLE;
