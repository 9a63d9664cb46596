//! Threads that take requests, of an app whose server says nothing of its workers.

use std::collections::BTreeMap;

use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::app::app_server::{Levels, Outside};
use holdup_signals::time::requests::service_ms;

use super::{BUSY, MOSTLY, WorkingThreads};
use crate::case::Case;

/// Requests with the server for each of the threads, from which others wait behind them.
const BEHIND: f64 = 1.3;

/// Threads are all busy from this share (0-1) of them: the quickest request takes less than a mean one.
const HELD: f64 = 0.6;

/// A pool stands at its most at this share (0-1) of instants.
const STANDS: f64 = 0.8;

/// Prefixes of the names of programs that give each request a thread, beside one main thread for
/// each process: gunicorn's gthread, uWSGI, Django's and Flask's own server, Puma. A program with an
/// event loop has threads too, but not one for each request.
const THREAD_FOR_REQUEST: &[&str] = &["gunicorn", "python", "uwsgi", "flask", "puma", "ruby"];

/// Threads of the server's processes that take requests, at most: those that it names so, else all beside
/// the main one of each. None if it does not give each request a thread, or has no such threads.
pub fn request_threads(view: &View<'_>, source: &str) -> Option<f64> {
    let named = view.levels(source, metrics::server::WORKER_THREADS.name, &[]).into_values().reduce(f64::max);
    if named.is_some() {
        return named;
    }
    let name = view.setting_of(source, "server.name").unwrap_or_default();
    if !THREAD_FOR_REQUEST.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let mut by_process: BTreeMap<(&str, i64), f64> = BTreeMap::new();
    for ((of, labels), series) in view.index.series(metrics::server::THREADS.name, &[]) {
        if of != source || labels.get("role") == Some("parent") {
            continue;
        }
        let pid = labels.get("pid").unwrap_or_default();
        for (at, count) in series.iter().filter(|(at, _)| view.window.contains(*at)) {
            *by_process.entry((pid, *at)).or_default() += count;
        }
    }
    let mut at_once: BTreeMap<i64, f64> = BTreeMap::new();
    for ((_, at), count) in by_process {
        *at_once.entry(at).or_default() += (count - 1.0).max(0.0);
    }
    at_once.into_values().reduce(f64::max).filter(|threads| *threads >= 1.0)
}

/// Threads of the server that all have a request while more are with it; `per_second` requests are
/// answered.
pub(super) fn working(case: &Case<'_>, view: &View<'_>, outside: &Outside, per_second: f64) -> Option<WorkingThreads> {
    let asleep = all_named(case, view, outside).or_else(|| view.asleep_at_most(outside).map(WorkingThreads::Asleep));
    let busy = || all_busy(view, outside).map(WorkingThreads::Busy);
    asleep.or_else(busy).or_else(|| all_held(case, view, outside, per_second))
}

/// Threads that the server names as those that take requests, if more requests are with it than these: such
/// pools grow until they may not, so that no more come where they stand at one number. An answer that is
/// never due, as of a stream of events, was never due before either.
fn all_named(case: &Case<'_>, view: &View<'_>, outside: &Outside) -> Option<WorkingThreads> {
    let levels = |view: &View<'_>, metric: &str| view.levels(&outside.source, metric, &[]);
    let named = levels(view, metrics::server::WORKER_THREADS.name);
    let threads = named.values().copied().reduce(f64::max)?;
    let is_full = |view: &View<'_>| {
        let answering = levels(view, metrics::server::ANSWERING_CONNECTIONS.name);
        let behind = answering.values().filter(|requests| **requests >= BEHIND * threads).count() as f64;
        behind >= MOSTLY * answering.len() as f64 && behind > 0.0
    };
    let stands = named.values().filter(|count| **count >= threads).count() as f64 >= STANDS * named.len() as f64;
    let is_new = case.baseline().is_some_and(|baseline| !is_full(&baseline));
    (stands && is_new && is_full(view) && are_bound(&awaiting(view, outside), threads))
        .then_some(WorkingThreads::Named(threads))
}

/// Threads that take requests, if all that are answered keep them busy although nothing waits for
/// one, while more requests are with the server. A thread that sleeps in its handler shows neither a
/// CPU nor an awaited answer.
fn all_held(case: &Case<'_>, view: &View<'_>, outside: &Outside, per_second: f64) -> Option<WorkingThreads> {
    let threads = request_threads(view, &outside.source)
        .filter(|threads| outside.answering.is_some_and(|answering| answering >= BEHIND * threads))?;
    let alone_ms = alone_ms(case)?;
    // Of more, several would have had one thread at a time; of fewer, threads are free.
    let needed = per_second * alone_ms / 1e3;
    let keeps_busy = (HELD * threads..=BEHIND * threads).contains(&needed);
    (keeps_busy && are_bound(&awaiting(view, outside), threads)).then_some(WorkingThreads::Held {
        threads,
        alone_ms,
        per_second,
    })
}

/// What a mean request of holdup's load takes if nothing waits for anything: the quickest of each
/// operation, by how often it was answered.
fn alone_ms(case: &Case<'_>) -> Option<f64> {
    let mut by_operation: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for row in case.requests_in(case.whole()).ok()?.into_iter().filter(|row| row.outcome == "ok") {
        let Some(took_ms) = service_ms(row) else { continue };
        let (count, quickest) = by_operation.entry(&row.operation).or_insert((0.0, f64::MAX));
        (*count, *quickest) = (*count + row.count() as f64, quickest.min(took_ms));
    }
    let all: f64 = by_operation.values().map(|(count, _)| count).sum();
    (all > 0.0).then(|| by_operation.values().map(|(count, quickest)| count * quickest).sum::<f64>() / all)
}

/// Threads that take requests, if all of them await an answer or have a CPU at most instants, while more requests are with
/// the server: it accepts more than it works on.
fn all_busy(view: &View<'_>, outside: &Outside) -> Option<f64> {
    let threads = request_threads(view, &outside.source)?;
    let awaiting = awaiting(view, outside);
    let states =
        ["R", "D"].map(|state| view.levels(&outside.source, metrics::server::THREADS.name, &[("state", state)]));
    let of = |levels: &Levels, at: &i64| levels.get(at).copied().unwrap_or(0.0);
    let working = |at: &i64| of(&awaiting, at) + states.iter().map(|levels| of(levels, at)).sum::<f64>();
    let full = awaiting.keys().filter(|at| working(at) >= BUSY * threads).count() as f64;
    let is_full = are_bound(&awaiting, threads) && !awaiting.is_empty() && full >= MOSTLY * awaiting.len() as f64;
    (is_full && outside.answering? >= BEHIND * threads).then_some(threads)
}

/// Answers that the server awaits.
fn awaiting(view: &View<'_>, outside: &Outside) -> Levels {
    view.levels(&outside.source, metrics::server::OUTGOING_PENDING_CONNECTIONS.name, &[])
}

/// Whether each request has a thread: where more answers are awaited than there are threads, it has not.
fn are_bound(awaiting: &Levels, threads: f64) -> bool {
    awaiting.values().all(|answers| *answers <= BEHIND * threads)
}
