//! Where the milliseconds of the requests went: for each operation and percentile band, response time split
//! into the parts that somebody measured, and the rest that nobody owns.
//!
//! What the generator measures is exact per request. What the app and the database measure is known as a
//! mean per sampling interval; each request is given the mean of the interval in which it ended, because a
//! wait is booked when it ends. `error_ms` is how much that mean moves to the interval before: the part of
//! the figure that depends on which interval a request is put into. `residual = response - sum of parts`.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Request;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::rules::timing;
use crate::signals::View;
use crate::signals::client::{client_queue_ms, mean, response_ms, send_lag_ms};
use crate::verdict::round;

/// One operation and band.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Operation.
    pub operation: String,
    /// `all`, or a band of response-time percentiles: `p0-50`, `p50-90`, `p90-99`, `p99-100`.
    pub band: String,
    /// Requests in it.
    pub requests: usize,
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

/// The ledger of the degraded stretch, or of everything if nothing is degraded.
pub fn ledger(case: &Case<'_>) -> Vec<LedgerRow> {
    let Ok(requests) = case.slow_requests() else { return Vec::new() };
    let parts = measured(case);
    let operations: BTreeSet<&str> = requests.iter().map(|r| r.operation.as_str()).collect();
    let mut rows = Vec::new();
    for operation in operations {
        let mut mine: Vec<&Request> =
            requests.iter().copied().filter(|r| r.operation == operation && r.outcome != "unfinished").collect();
        mine.sort_by(|a, b| response_ms(a).total_cmp(&response_ms(b)));
        for (band, from, to) in BANDS {
            let n = mine.len() as f64;
            let slice = &mine[(from * n).floor() as usize..(to * n).ceil() as usize];
            if !slice.is_empty() {
                rows.push(row(operation, band, slice, &parts));
            }
        }
    }
    rows
}

fn row(operation: &str, band: &str, requests: &[&Request], measured: &[(&'static str, Intervals)]) -> LedgerRow {
    let exact = |f: fn(&Request) -> f64| mean(requests.iter().map(|r| f(r))).unwrap_or(0.0);
    let mut parts = vec![
        ("client_queue", exact(client_queue_ms), 0.0),
        ("connect", exact(|r| r.connect_ns as f64 / 1e6), 0.0),
        ("send_lag", exact(|r| send_lag_ms(r).unwrap_or(0.0)), 0.0),
    ];
    for (name, intervals) in measured {
        // A request that never reached the service has no part in what the service measured.
        let found: Vec<(f64, f64)> =
            requests.iter().map(|r| if r.sent_at.is_some() { intervals.at(r.done_at) } else { (0.0, 0.0) }).collect();
        let value = mean(found.iter().map(|(v, _)| *v)).unwrap_or(0.0);
        parts.push((name, value, mean(found.iter().map(|(_, e)| *e)).unwrap_or(0.0)));
    }
    let response = exact(response_ms);
    let sum: f64 = parts.iter().map(|(_, ms, _)| ms).sum();
    LedgerRow {
        operation: operation.to_owned(),
        band: band.to_owned(),
        requests: requests.len(),
        response_ms: round(response, 3),
        parts: parts
            .into_iter()
            .map(|(part, ms, error)| Part { part: part.to_owned(), ms: round(ms, 3), error_ms: round(error, 3) })
            .collect(),
        residual_ms: round(response - sum, 3),
    }
}

/// Mean milliseconds per request of one part, by sampling interval.
struct Intervals(Vec<(i64, i64, f64)>);

impl Intervals {
    /// Value of the interval that holds `at` (or the nearest), and how much it differs from the one before.
    fn at(&self, at: i64) -> (f64, f64) {
        let i = self.0.partition_point(|(_, to, _)| *to <= at).min(self.0.len().saturating_sub(1));
        match self.0.get(i) {
            Some(&(from, to, value)) if at >= from - NEAREST_NS && at <= to + NEAREST_NS => {
                let before = i.checked_sub(1).and_then(|j| self.0.get(j)).map_or(value, |p| p.2);
                (value, (value - before).abs())
            }
            _ => (0.0, 0.0),
        }
    }
}

/// Growth of a counter, summed over its series, by sampling interval of its source.
fn growth(view: &View<'_>, metric: &str) -> BTreeMap<(i64, i64), f64> {
    let mut totals: BTreeMap<(&str, i64), f64> = BTreeMap::new();
    for ((source, _), series) in view.index.series(metric, &[]) {
        for &(at, value) in series {
            *totals.entry((source, at)).or_default() += value;
        }
    }
    let points: Vec<((&str, i64), f64)> = totals.into_iter().collect();
    points
        .windows(2)
        .filter(|pair| pair[0].0.0 == pair[1].0.0 && pair[1].1 >= pair[0].1)
        .map(|pair| ((pair[0].0.1, pair[1].0.1), pair[1].1 - pair[0].1))
        .collect()
}

/// Every part that the app or the database measured.
fn measured(case: &Case<'_>) -> Vec<(&'static str, Intervals)> {
    let view = case.slow();
    let served = growth(&view, &format!("{}_count", timing::HTTP_SERVER));
    let per_request = |metric: String| -> Option<Intervals> {
        let grown = growth(&view, &metric);
        let values: Vec<(i64, i64, f64)> = grown
            .iter()
            .filter_map(|(&(from, to), seconds)| {
                let requests = served.get(&(from, to)).copied().filter(|n| *n > 0.0)?;
                Some((from, to, seconds / requests * 1e3))
            })
            .collect();
        (!values.is_empty()).then_some(Intervals(values))
    };
    let mut parts = Vec::new();
    let mut add = |name, intervals: Option<Intervals>| parts.extend(intervals.map(|i| (name, i)));
    add("connection_pool_wait", per_request(format!("{}_sum", timing::POOL_WAIT)));
    add("downstream", per_request(format!("{}_sum", timing::HTTP_CLIENT)));
    add("app_cpu", per_request("process_cpu_seconds_total".to_owned()));
    match per_request(format!("{}_sum", timing::OPERATION)) {
        None => {}
        Some(calls) => match database(&view, case, &served, &calls) {
            // Without the server's account the time in the database is one part.
            None => add("database", Some(calls)),
            Some(split) => {
                for (name, intervals) in split {
                    add(name, Some(intervals));
                }
            }
        },
    }
    parts
}

/// Splits the app's time in database calls by the server's own account: lock wait, execution, and what is
/// left of the call while the thread pool's queue was not empty. Where the queue was empty the rest is
/// nobody's, and stays in the residual.
fn database(
    view: &View<'_>,
    case: &Case<'_>,
    served: &BTreeMap<(i64, i64), f64>,
    calls: &Intervals,
) -> Option<Vec<(&'static str, Intervals)>> {
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    timing::server_timing(view, completed).ok()?;
    let mut by_digest: BTreeMap<&str, Vec<(i64, f64)>> = BTreeMap::new();
    for execution in view.executions(&["at", "kind", "digest", "duration_ns"]).ok()? {
        by_digest.entry(&execution.digest).or_default().push((execution.at, execution.duration_ns as f64 / 1e6));
    }
    let executions: Vec<(i64, f64)> =
        by_digest.into_values().filter(|e| e.len() as f64 >= completed / 2.0).flatten().collect();
    let locks = growth(view, "mysql_global_status_innodb_row_lock_time");
    let queue: Vec<(i64, f64)> =
        view.index.series("mysql_thread_pool_queue_length", &[]).flat_map(|(_, s)| s.iter().copied()).collect();
    let (mut execution, mut lock, mut admission) = (Vec::new(), Vec::new(), Vec::new());
    for &(from, to, call_ms) in &calls.0 {
        let inside = |at: i64| from <= at && at < to;
        let requests = served.get(&(from, to)).copied().unwrap_or(0.0).max(1.0);
        let executed: Vec<f64> = executions.iter().filter(|(at, _)| inside(*at)).map(|(_, ms)| *ms).collect();
        // Statements per request come from how often they ran, so that several per request add up.
        let executed_ms = executed.iter().sum::<f64>() / requests.max(executed.len() as f64).max(1.0);
        // Lock waits are booked on another collector's clock ticks: the share that overlaps this interval.
        let waited_ms: f64 = locks
            .iter()
            .map(|(&(a, b), grown)| grown * ((b.min(to) - a.max(from)).max(0) as f64 / (b - a).max(1) as f64))
            .sum::<f64>()
            / requests;
        let waited_ms = waited_ms.min(executed_ms);
        let queued =
            queue.iter().any(|(at, length)| from - NEAREST_NS / 3 <= *at && *at < to + NEAREST_NS / 3 && *length > 0.0);
        lock.push((from, to, waited_ms));
        execution.push((from, to, executed_ms - waited_ms));
        admission.push((from, to, if queued { (call_ms - executed_ms).max(0.0) } else { 0.0 }));
    }
    Some(vec![
        ("database_admission_queue", Intervals(admission)),
        ("database_lock_wait", Intervals(lock)),
        ("database_execution", Intervals(execution)),
    ])
}
