//! Where the milliseconds of the requests went: for each operation and percentile band, response time split
//! into the parts that somebody measured, and the rest that nobody owns.
//!
//! What the generator measures is exact per request. What the app and the database measure is known as a
//! total per sampling interval, booked when a wait ends; a request is taken to be made up like the requests
//! of the interval in which it ended: a part that is 90 % of that interval's service time is 90 % of its own.
//! So the parts of all requests of an interval add up to what was measured. `error_ms` is how far the part
//! moves if requests that ended near an interval's edge belong beyond it. `residual = response - sum of parts`.
//!
//! Where both accounts of most requests of a band are joined by trace id ([`crate::accounts`]) its row is made of those instead,
//! each exact.

mod by_outside;
mod by_sessions;

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Request;
use serde::{Deserialize, Serialize};

use crate::accounts::Joined;
use crate::case::Case;
use crate::rules::timing;
use crate::signals::client::{client_queue_ms, is_latency, mean_over, response_ms, send_lag_ms, service_ms};
use crate::signals::distribution::mean_of;
use crate::signals::{View, Window};
use crate::verdict::round;

/// One operation and band.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Operation.
    pub operation: String,
    /// `all`, or a band of response-time percentiles: `p0-50`, `p50-90`, `p90-99`, `p99-100`.
    pub band: String,
    /// Requests in it.
    pub requests: u64,
    /// Mean response time, milliseconds.
    pub response_ms: f64,
    /// Its parts, in the order in which a request meets them.
    pub parts: Vec<Part>,
    /// What no part owns, milliseconds. Negative if parts overlap.
    pub residual_ms: f64,
}

/// One part of response time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Name, e.g. `connection_pool_wait`.
    pub part: String,
    /// Mean, milliseconds.
    pub ms: f64,
    /// How far off it may be, milliseconds.
    pub error_ms: f64,
}

const BANDS: [(&str, f64, f64); 5] =
    [("all", 0.0, 1.0), ("p0-50", 0.0, 0.5), ("p50-90", 0.5, 0.9), ("p90-99", 0.9, 0.99), ("p99-100", 0.99, 1.0)];

/// A request that ended so long after the last interval with data gets none of its mean.
const NEAREST_NS: i64 = 3_000_000_000;

/// The app books a wait and the client sees the end of its request within this of each other, and a read of
/// the app's metrics takes about as long.
const EDGE_NS: i64 = 50_000_000;

/// The database is sampled on ticks of its own: a queue seen this long before or after an interval may have been in it.
const SAMPLING_SLACK_NS: i64 = 1_000_000_000;

/// The ledger of the degraded stretch, or of everything if nothing is degraded.
pub fn ledger(case: &Case<'_>) -> Vec<LedgerRow> {
    let Ok(requests) = case.slow_requests() else { return Vec::new() };
    let mut parts = measured(case);
    if parts.is_empty() {
        parts = by_sessions::parts(case);
    }
    // What stands in front of the app comes before what the app tells of.
    let in_front = by_outside::parts(case, !parts.is_empty());
    parts.splice(0..0, in_front);
    let cpu_ms = app_cpu_ms(case);
    let joined = Joined::of(case.accounts());
    let operations: BTreeSet<&str> = requests.iter().map(|r| r.operation.as_str()).collect();
    let mut rows = Vec::new();
    for operation in operations {
        let mut mine: Vec<&Request> =
            requests.iter().copied().filter(|r| r.operation == operation && is_latency(r)).collect();
        mine.sort_by(|a, b| response_ms(a).total_cmp(&response_ms(b)));
        // Up to each row, how many requests they stand for.
        let mut until = vec![0; mine.len()];
        mine.iter().zip(&mut until).fold(0, |below, (row, until)| {
            *until = below + row.count();
            *until
        });
        let all = until.last().copied().unwrap_or(0) as f64;
        for (band, from, to) in BANDS {
            let begin = until.partition_point(|n| *n as f64 <= (from * all).floor());
            let end = until.partition_point(|n| (*n as f64) < (to * all).ceil());
            let slice = &mine[begin..(end + 1).min(mine.len())];
            if !slice.is_empty() {
                let exact = joined.row(operation, band, slice);
                rows.push(exact.unwrap_or_else(|| row(operation, band, slice, cpu_ms, &parts)));
            }
        }
    }
    rows
}

fn row(
    operation: &str,
    band: &str,
    requests: &[&Request],
    cpu_ms: Option<f64>,
    measured: &[(&'static str, Intervals)],
) -> LedgerRow {
    let exact = |f: fn(&Request) -> f64| mean_over(requests.iter().copied(), |r| Some(f(r))).unwrap_or(0.0);
    let mut parts = vec![
        ("client_queue", exact(client_queue_ms), 0.0),
        ("connect", exact(|r| r.connect_ns as f64 / 1e6), 0.0),
        ("send_lag", exact(|r| send_lag_ms(r).unwrap_or(0.0)), 0.0),
    ];
    for (name, intervals) in measured {
        // A request that never reached the service has no part in what the service measured.
        let of = |r: &Request| service_ms(r).map_or((0.0, 0.0), |ms| intervals.part_of(r.done_at, ms));
        let found: Vec<((f64, f64), u64)> = requests.iter().map(|r| (of(r), r.count())).collect();
        let value = mean_of(found.iter().map(|((value, _), n)| (*value, *n))).unwrap_or(0.0);
        parts.push((name, value, mean_of(found.iter().map(|((_, error), n)| (*error, *n))).unwrap_or(0.0)));
    }
    if let Some(cpu_ms) = cpu_ms {
        let sent = exact(|r| f64::from(r.sent_at.is_some()));
        parts.push(("app_cpu", cpu_ms * sent, 0.0));
    }
    let response = exact(response_ms);
    let sum: f64 = parts.iter().map(|(_, ms, _)| ms).sum();
    LedgerRow {
        operation: operation.to_owned(),
        band: band.to_owned(),
        requests: requests.iter().map(|r| r.count()).sum(),
        response_ms: round(response, 3),
        parts: parts
            .into_iter()
            .map(|(part, ms, error)| Part { part: part.to_owned(), ms: round(ms, 3), error_ms: round(error, 3) })
            .collect(),
        residual_ms: round(response - sum, 3),
    }
}

/// One part's share of service time, by sampling interval.
struct Intervals(Vec<(i64, i64, f64)>);

impl Intervals {
    /// Milliseconds of the part in a request that ended at `at` after `service_ms`, and how far off they may be.
    fn part_of(&self, at: i64, service_ms: f64) -> (f64, f64) {
        let i = self.0.partition_point(|(_, to, _)| *to <= at).min(self.0.len().saturating_sub(1));
        match self.0.get(i) {
            Some(&(from, to, share)) if at >= from - NEAREST_NS && at <= to + NEAREST_NS => {
                // Only a request that ended near an edge may belong to the interval beyond it.
                let beyond = match () {
                    () if at - from < EDGE_NS => i.checked_sub(1),
                    () if to - at < EDGE_NS => Some(i + 1),
                    () => None,
                };
                let other = beyond.and_then(|j| self.0.get(j)).map_or(share, |p| p.2);
                (share * service_ms, (share - other).abs() * service_ms)
            }
            _ => (0.0, 0.0),
        }
    }
}

/// Growth of a counter, summed over its series, by sampling interval of its source.
fn growth(view: &View<'_>, metric: &str) -> BTreeMap<(i64, i64), f64> {
    // What requests of the window waited for may be booked beyond it.
    let all = View { window: Window { from: i64::MIN, to: i64::MAX }, ..*view };
    all.growths(|_| true, metric, &[]).into_iter().map(|g| ((g.window.from, g.window.to), g.delta)).collect()
}

/// A sampling interval of the app's metrics with what its requests came to.
struct Served {
    from: i64,
    to: i64,
    /// Requests that ended in it, by the app's count.
    requests: f64,
    /// Their mean service time, milliseconds, as the client saw it.
    service_ms: f64,
}

/// Every part that the app or the database measured.
fn measured(case: &Case<'_>) -> Vec<(&'static str, Intervals)> {
    let view = case.slow();
    let Ok(requests) = case.requests_in(case.whole()) else { return Vec::new() };
    let mut ended: Vec<(i64, f64, u64)> =
        requests.iter().filter_map(|r| Some((r.done_at, service_ms(r)?, r.count()))).collect();
    ended.sort_by_key(|(at, ..)| *at);
    let served: Vec<Served> = growth(&view, &format!("{}_count", timing::HTTP_SERVER))
        .into_iter()
        .filter_map(|((from, to), requests)| {
            let mine = &ended[ended.partition_point(|(at, ..)| *at < from)..ended.partition_point(|(at, ..)| *at < to)];
            let service_ms = mean_of(mine.iter().map(|(_, ms, n)| (*ms, *n))).filter(|_| requests > 0.0)?;
            Some(Served { from, to, requests, service_ms })
        })
        .collect();
    // Milliseconds of a metric's growth per request, by interval.
    let per_request = |metric: String| -> Vec<f64> {
        let grown = growth(&view, &metric);
        served.iter().map(|s| grown.get(&(s.from, s.to)).map_or(0.0, |seconds| seconds / s.requests * 1e3)).collect()
    };
    let mut parts = Vec::new();
    let mut add = |name, ms: Vec<f64>| {
        if ms.iter().any(|v| *v > 0.0) {
            let shares = served.iter().zip(ms).map(|(s, ms)| (s.from, s.to, ms / s.service_ms.max(1e-6)));
            parts.push((name, Intervals(shares.collect())));
        }
    };
    add("connection_pool_wait", per_request(format!("{}_sum", timing::POOL_WAIT)));
    add("downstream", per_request(format!("{}_sum", timing::HTTP_CLIENT)));
    let calls = per_request(format!("{}_sum", timing::OPERATION));
    match database(&view, case, &served, &calls) {
        // Without the server's account the time in the database is one part.
        None => add("database", calls),
        Some(split) => {
            add("database_admission_queue", split.admission_ms);
            add("database_lock_wait", split.lock_ms);
            add("database_execution", split.execution_ms);
        }
    }
    parts
}

/// CPU time of the app per request, milliseconds. It is used all along, not booked when a request ends: the
/// mean over the whole stretch holds for each.
fn app_cpu_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let cpu = view.counter("process_cpu_seconds_total", &[], timing::APP_METRICS).ok()?;
    let served = view.counter(&format!("{}_count", timing::HTTP_SERVER), &[], timing::APP_METRICS).ok()?;
    (served.delta > 0.0).then(|| cpu.delta / served.delta * 1e3)
}

/// Milliseconds per request in the database, by interval.
struct DatabaseSplit {
    admission_ms: Vec<f64>,
    lock_ms: Vec<f64>,
    execution_ms: Vec<f64>,
}

/// Splits the app's time in database calls by the server's own account: lock wait, execution, and what is
/// left of the call while the thread pool's queue was not empty. Where the queue was empty the rest is
/// nobody's, and stays in the residual.
fn database(view: &View<'_>, case: &Case<'_>, served: &[Served], calls_ms: &[f64]) -> Option<DatabaseSplit> {
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let executions = timing::executions_of_requests(view, completed).ok()?;
    // InnoDB books lock waits in milliseconds, on other ticks than the app's: which share of execution they
    // are is known for the whole stretch, not for an interval.
    let executed_ms: f64 = executions.iter().map(|(_, ms)| ms).sum();
    let locked_ms = view.counter("mysql_global_status_innodb_row_lock_time", &[], "").map_or(0.0, |c| c.delta);
    let lock_ratio = (locked_ms / executed_ms.max(1e-9)).clamp(0.0, 1.0);
    let lengths = view.index.series("mysql_thread_pool_queue_length", &[]).flat_map(|(_, series)| series);
    let mut queued: Vec<i64> = lengths.filter(|(_, length)| *length > 0.0).map(|(at, _)| *at).collect();
    queued.sort_unstable();
    let executed = executed_in(served, &executions);
    let mut split = DatabaseSplit { admission_ms: Vec::new(), lock_ms: Vec::new(), execution_ms: Vec::new() };
    for ((interval, &call_ms), executed) in served.iter().zip(calls_ms).zip(executed) {
        // No statement takes longer than the call it was run for; more is a matter of which interval it fell into.
        let executed_ms = (executed / interval.requests).min(call_ms);
        let near = queued.partition_point(|at| *at < interval.from - SAMPLING_SLACK_NS);
        let queued = queued.get(near).is_some_and(|at| *at < interval.to + SAMPLING_SLACK_NS);
        split.lock_ms.push(executed_ms * lock_ratio);
        split.execution_ms.push(executed_ms * (1.0 - lock_ratio));
        split.admission_ms.push(if queued { (call_ms - executed_ms).max(0.0) } else { 0.0 });
    }
    Some(split)
}

/// Milliseconds of the executions that ended in each interval. Those of one source follow one another, those of several overlap.
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
