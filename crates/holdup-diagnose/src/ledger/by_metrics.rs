//! The parts measured by the app's metrics and by the database, as totals of sampling intervals.
//!
//! Sums are booked when the timed activity ends: a wait for a connection as soon as one is
//! obtained, a request when it is answered. Requests longer than an interval end in a later one
//! than their waits. If each request waits once, the nth wait belongs to the nth request (queues
//! are first come, first served), whenever it was booked.

use std::collections::BTreeMap;

use holdup_recording::metrics;
use holdup_recording::rows::Request;

use super::by_log::PROXYS_QUEUE;
use super::by_sessions::{self, SessionShares};
use super::{Intervals, NETWORK, POOLER};
use crate::case::Case;
use crate::resources::database_path::{self, DatabasePath};
use holdup_signals::app::timing;
use holdup_signals::time::distribution::mean_of;
use holdup_signals::time::requests::service_ms;
use holdup_signals::{View, Window, host::processes};

/// The database is sampled at other times: a queue seen this long before or after an interval may
/// have existed in it.
const SAMPLING_SLACK_NS: i64 = 1_000_000_000;

/// Waits count as one per request if their numbers differ by at most this share (0-1): some are in
/// flight at the end.
const ONE_EACH: f64 = 0.02;

/// Growth by sampling interval of a source.
type Growths = BTreeMap<(i64, i64), f64>;

/// Growth of a counter, summed over its series, by sampling interval of its source.
fn growth(view: &View<'_>, metric: &str) -> Growths {
    // Waits of the window's requests may be booked after it.
    let all = View { window: Window { from: i64::MIN, to: i64::MAX }, ..*view };
    all.growths(|_| true, metric, &[]).into_iter().map(|g| ((g.window.from, g.window.to), g.delta)).collect()
}

/// Seconds that those in a queue of this length waited, summed over its series, by sampling interval
/// of its source.
fn waited(view: &View<'_>, length: &str) -> Growths {
    let of_source = |source| {
        let levels: Vec<(i64, f64)> = view.levels(source, length, &[]).into_iter().collect();
        let seconds = |pair: &[(i64, f64)]| {
            let ((from, before), (to, after)) = (pair[0], pair[1]);
            ((from, to), (before + after) / 2.0 * (to - from) as f64 / 1e9)
        };
        levels.windows(2).map(seconds).collect::<Vec<_>>()
    };
    view.sources_of(length).into_iter().flat_map(of_source).collect()
}

/// Whether the app has answered all requests that it received: those without an answer never
/// reached it.
pub(super) fn has_answered_all(case: &Case<'_>) -> bool {
    let Ok(requests) = case.requests_in(case.whole()) else { return false };
    let counts = growth(&case.slow(), &format!("{}_count", timing::HTTP_SERVER));
    let (Some((&(from, _), _)), Some((&(_, to), _))) = (counts.first_key_value(), counts.last_key_value()) else {
        return false;
    };
    let (mut answered, mut unanswered) = (0.0, 0.0);
    for request in requests.iter().filter(|r| r.sent_at.is_some() && (from..to).contains(&r.done_at)) {
        *(if is_answered(request) { &mut answered } else { &mut unanswered }) += request.count() as f64;
    }
    let had: f64 = counts.values().sum();
    unanswered > 0.0 && (had - answered).abs() <= (ONE_EACH * answered).min(unanswered / 2.0)
}

/// Whether the service has answered it.
pub(super) fn is_answered(request: &Request) -> bool {
    !processes::is_unanswered(request) && request.outcome != "unfinished"
}

/// A sampling interval of the app's metrics with the sums over its requests.
struct Served {
    from: i64,
    to: i64,
    /// Requests that ended before it, by the app's count.
    before: f64,
    /// Requests that ended in it, by the app's count.
    requests: f64,
    /// Their mean service time, milliseconds, as the client saw it.
    service_ms: f64,
}

fn served(case: &Case<'_>, counts: &Growths, all_answered: bool) -> Option<Vec<Served>> {
    let requests = case.requests_in(case.whole()).ok()?;
    let known = requests.iter().filter(|r| !all_answered || is_answered(r));
    let mut ended: Vec<(i64, f64, u64)> = known.filter_map(|r| Some((r.done_at, service_ms(r)?, r.count()))).collect();
    ended.sort_by_key(|(at, ..)| *at);
    let mut before = 0.0;
    let of = counts.iter().filter_map(|(&(from, to), &requests)| {
        let mine = &ended[ended.partition_point(|(at, ..)| *at < from)..ended.partition_point(|(at, ..)| *at < to)];
        let service_ms = mean_of(mine.iter().map(|(_, ms, n)| (*ms, *n))).filter(|_| requests > 0.0);
        let interval = service_ms.map(|service_ms| Served { from, to, before, requests, service_ms });
        before += requests;
        interval
    });
    Some(of.collect())
}

/// Every part that the app or the database measured; `all_answered` is the result of
/// [`has_answered_all`].
pub(super) fn parts(case: &Case<'_>, all_answered: bool) -> Vec<(&'static str, Intervals)> {
    let view = case.slow();
    let counts = growth(&view, &format!("{}_count", timing::HTTP_SERVER));
    let Some(served) = served(case, &counts, all_answered) else { return Vec::new() };
    let all: f64 = counts.values().sum();
    let per_request = |metric: &str| {
        let sums = growth(&view, &format!("{metric}_sum"));
        by_number(&served, all, &sums, &growth(&view, &format!("{metric}_count"))).unwrap_or_else(|| {
            served.iter().map(|s| sums.get(&(s.from, s.to)).map_or(0.0, |seconds| seconds / s.requests * 1e3)).collect()
        })
    };
    let timed = per_request(timing::OPERATION);
    // An app that does not time its database calls may have spent all of that time in them.
    let is_timed = timed.iter().any(|ms| *ms > 0.0);
    let pooler_ms = pooler(&view, &served);
    let calls: Vec<f64> = timed.iter().zip(&pooler_ms).map(|(call_ms, queued_ms)| call_ms.max(*queued_ms)).collect();
    let in_database: Vec<f64> = calls.iter().zip(&pooler_ms).map(|(call_ms, queued_ms)| call_ms - queued_ms).collect();
    let mut waits = vec![
        ("connection_pool_wait", per_request(timing::POOL_WAIT)),
        ("downstream", per_request(timing::HTTP_CLIENT)),
    ];
    match database(&view, case, &served, &in_database) {
        None => waits.extend(by_standing(case, &served, &in_database)),
        Some(split) => {
            waits.push(("database_admission_queue", split.admission_ms));
            waits.push(("database_lock_wait", split.lock_ms));
            waits.push(("database_execution", split.execution_ms));
        }
    }
    take_out_network(case, &in_database, &mut waits);
    waits.insert(2, (POOLER, pooler_ms));
    let cpu_ms = app_cpu_ms(case).unwrap_or(0.0);
    // A proxy's log has its own queue within its response time.
    let mut queued = per_request(metrics::access_log::QUEUE.name);
    let app = per_request(timing::HTTP_SERVER);
    let has_app = app.iter().any(|ms| *ms > 0.0);
    let (mut network, mut other) = (Vec::new(), Vec::new());
    for (i, interval) in served.iter().enumerate() {
        // Requests that clients gave up continue in the app; that time is not the client's.
        let app_ms = if has_app { app[i].min(interval.service_ms) } else { interval.service_ms };
        let waited_ms = calls[i] + waits[0].1[i] + waits[1].1[i] + queued[i];
        let fit = if waited_ms > app_ms { app_ms / waited_ms } else { 1.0 };
        waits.iter_mut().for_each(|(_, ms)| ms[i] *= fit);
        queued[i] *= fit;
        network.push(if has_app { interval.service_ms - app_ms } else { 0.0 });
        let is_app_timed = has_app && is_timed;
        other.push(if is_app_timed { (app_ms - waited_ms * fit - cpu_ms).max(0.0) } else { 0.0 });
    }
    let queued = Some((PROXYS_QUEUE, queued)).filter(|(_, ms)| ms.iter().any(|ms| *ms > 0.0));
    let named = std::iter::once((NETWORK, network)).chain(queued).chain(waits.drain(..2)).chain([("app_other", other)]);
    let named: Vec<(&'static str, Vec<f64>)> = named.collect();
    let parts = named.into_iter().chain(waits).filter(|(_, ms)| ms.iter().any(|v| *v > 0.0));
    let shares = |ms: Vec<f64>| {
        let share = |(s, ms): (&Served, f64)| (s.from, s.to, ms / s.service_ms.max(1e-6));
        Intervals(served.iter().zip(ms).map(share).collect())
    };
    parts.map(|(name, ms)| (name, shares(ms))).collect()
}

/// Of the calls that the database's own parts leave, what is on the way to it.
fn take_out_network(case: &Case<'_>, calls_ms: &[f64], waits: &mut Vec<(&'static str, Vec<f64>)>) {
    const REST: &str = "database";
    let Ok(path) = DatabasePath::for_case(case) else { return };
    if !path.is_significant() || !database_path::is_there(case) {
        return;
    }
    let ratio = (path.ms() / path.awaited_ms().0.max(1e-9)).min(1.0);
    let is_its = |name: &str| name.starts_with(REST) && name != REST;
    let network = calls_ms.iter().enumerate().map(|(i, call_ms)| {
        let owned: f64 = waits.iter().filter(|(name, _)| is_its(name)).map(|(_, ms)| ms[i]).sum();
        (ratio * call_ms).min(call_ms - owned).max(0.0)
    });
    let network: Vec<f64> = network.collect();
    for (_, rest) in waits.iter_mut().filter(|(name, _)| *name == REST) {
        rest.iter_mut().zip(&network).for_each(|(rest, ms)| *rest = (*rest - ms).max(0.0));
    }
    waits.push(("database_network", network));
}

/// Milliseconds that the statements of a request waited for a connection of a pool between app and
/// database, by interval.
fn pooler(view: &View<'_>, served: &[Served]) -> Vec<f64> {
    let mut waits = growth(view, metrics::pgbouncer::WAIT_TIME.name);
    waits.extend(waited(view, metrics::proxysql::WAITING_CLIENTS.name));
    // Its samples are taken at other times than the app's: each growth is spread over the intervals
    // that it overlaps.
    let within = |s: &Served| {
        let overlap = |from: i64, to: i64| (to.min(s.to) - from.max(s.from)).max(0) as f64 / (to - from).max(1) as f64;
        waits.iter().map(|(&(from, to), seconds)| seconds * 1e3 * overlap(from, to)).sum::<f64>()
    };
    served.iter().map(|s| within(s) / s.requests).collect()
}

/// The app's time in database calls, by the state of the server's sessions; the rest is one part.
fn by_standing(case: &Case<'_>, served: &[Served], calls_ms: &[f64]) -> Vec<(&'static str, Vec<f64>)> {
    let mut rest = calls_ms.to_vec();
    let mut parts = by_sessions::PARTS.map(|name| (name, vec![0.0; served.len()]));
    if let Some(standing) = SessionShares::measure(case) {
        for (i, interval) in served.iter().enumerate() {
            let of_service = calls_ms[i] / interval.service_ms.max(1e-6);
            let shares = standing.shares((interval.from, interval.to), of_service.min(1.0));
            for ((_, ms), share) in parts.iter_mut().zip(shares) {
                ms[i] = share * calls_ms[i];
                rest[i] = (rest[i] - ms[i]).max(0.0);
            }
        }
    }
    parts.into_iter().chain([("database", rest)]).collect()
}

/// Milliseconds of each request of `served`, from a histogram with one observation per request;
/// none if their number differs from the `all` requests.
fn by_number(served: &[Served], all: f64, sums: &Growths, counts: &Growths) -> Option<Vec<f64>> {
    let observed: f64 = counts.values().sum();
    if (observed - all).abs() > ONE_EACH * all {
        return None;
    }
    // Up to each interval's end, their number and sum.
    let mut until = vec![(0.0, 0.0)];
    for (interval, count) in counts {
        let (n, ms) = until[until.len() - 1];
        until.push((n + count, ms + sums.get(interval).copied().unwrap_or(0.0) * 1e3));
    }
    let ms_of = |n: f64| {
        let i = until.partition_point(|(number, _)| *number < n).min(until.len() - 1);
        let ((n0, ms0), (n1, ms1)) = (until[i.saturating_sub(1)], until[i]);
        if n1 > n0 { ms0 + (ms1 - ms0) * ((n - n0) / (n1 - n0)).clamp(0.0, 1.0) } else { ms1 }
    };
    Some(served.iter().map(|s| (ms_of(s.before + s.requests) - ms_of(s.before)) / s.requests).collect())
}

/// CPU time of the app per request, milliseconds. It is used throughout, not booked when a request
/// ends, so the mean over the whole stretch applies to each.
pub(super) fn app_cpu_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let cpu = view.counter(metrics::app::PROCESS_CPU.name, &[], timing::APP_METRICS).ok()?;
    let served = view.counter(&format!("{}_count", timing::HTTP_SERVER), &[], timing::APP_METRICS).ok()?;
    (served.delta > 0.0).then(|| cpu.delta / served.delta * 1e3)
}

/// Milliseconds per request in the database, by interval.
struct DatabaseSplit {
    admission_ms: Vec<f64>,
    lock_ms: Vec<f64>,
    execution_ms: Vec<f64>,
}

/// Splits the app's time in database calls by the server's own timing: lock wait, execution, and
/// the rest of the call while the thread pool's queue was not empty. If the queue was empty the
/// rest has no owner, and stays in the residual.
fn database(view: &View<'_>, case: &Case<'_>, served: &[Served], calls_ms: &[f64]) -> Option<DatabaseSplit> {
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let executions = timing::executions_of_requests(view, completed).ok()?;
    // InnoDB books lock waits in milliseconds, at other times than the app: their share of
    // execution is known for the whole stretch, not for an interval.
    let executed_ms: f64 = executions.iter().map(|(_, ms)| ms).sum();
    let locked_ms =
        view.counter(metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME.name, &[], "").map_or(0.0, |c| c.delta);
    let lock_ratio = (locked_ms / executed_ms.max(1e-9)).clamp(0.0, 1.0);
    let lengths = view.index.series(metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, &[]).flat_map(|(_, series)| series);
    let mut queued: Vec<i64> = lengths.filter(|(_, length)| *length > 0.0).map(|(at, _)| *at).collect();
    queued.sort_unstable();
    let executed = executed_in(served, &executions);
    let mut split = DatabaseSplit { admission_ms: Vec::new(), lock_ms: Vec::new(), execution_ms: Vec::new() };
    for ((interval, &call_ms), executed) in served.iter().zip(calls_ms).zip(executed) {
        // No statement outlasts its call; an excess only means that it fell into another interval.
        let executed_ms = (executed / interval.requests).min(call_ms);
        let near = queued.partition_point(|at| *at < interval.from - SAMPLING_SLACK_NS);
        let queued = queued.get(near).is_some_and(|at| *at < interval.to + SAMPLING_SLACK_NS);
        split.lock_ms.push(executed_ms * lock_ratio);
        split.execution_ms.push(executed_ms * (1.0 - lock_ratio));
        split.admission_ms.push(if queued { (call_ms - executed_ms).max(0.0) } else { 0.0 });
    }
    Some(split)
}

/// Milliseconds of the executions that ended in each interval. Intervals of one source are
/// consecutive, those of several sources overlap.
fn executed_in(served: &[Served], executions: &[(i64, f64)]) -> Vec<f64> {
    let longest = served.iter().map(|s| s.to - s.from).max().unwrap_or_default();
    let mut executed = vec![0.0; served.len()];
    for (at, ms) in executions {
        let (first, last) = (at.saturating_sub(longest), *at);
        let begun = served.partition_point(|s| s.from <= first)..served.partition_point(|s| s.from <= last);
        for i in begun.filter(|i| *at < served[*i].to) {
            executed[i] += ms;
        }
    }
    executed
}
