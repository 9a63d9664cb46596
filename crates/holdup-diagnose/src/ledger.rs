//! Where the milliseconds of the requests went: for each operation and percentile band, response time split
//! into the parts that somebody measured, and the rest that nobody owns.
//!
//! What the generator measures is exact per request. What the app and the database measure is known as a
//! total per sampling interval, booked when a wait ends ([`by_metrics`]); a request is taken to be made up like the requests
//! of the interval in which it ended: a part that is 90 % of that interval's service time is 90 % of its own.
//! So the parts of all requests of an interval add up to what was measured. `error_ms` is how far the part
//! moves if requests that ended near an interval's edge belong beyond it. `residual = response - sum of parts`.
//!
//! Where both accounts of most requests of a band are joined by trace id ([`crate::accounts`]) its row is made of those instead,
//! each exact.

mod by_metrics;
mod by_outside;
mod by_sessions;
mod instants;

use std::collections::BTreeSet;

use holdup_recording::rows::Request;
use serde::{Deserialize, Serialize};

use crate::accounts::Joined;
use crate::case::Case;
use crate::signals::client::{
    client_queue_ms, connect_ms, is_latency, mean_over, response_ms, send_lag_ms, service_ms,
};
use crate::signals::distribution::mean_of;
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

/// What lies between client and app; what stands in front of the app is in it.
const NETWORK: &str = "network";

/// The ledger of the degraded stretch, or of everything if nothing is degraded.
pub fn ledger(case: &Case<'_>) -> Vec<LedgerRow> {
    let Ok(requests) = case.slow_requests() else { return Vec::new() };
    let mut parts = by_metrics::parts(case);
    if parts.is_empty() {
        parts = by_sessions::parts(case);
    }
    // What stands in front of the app comes before what the app tells of.
    let in_front = by_outside::parts(case, !parts.is_empty());
    parts.splice(0..0, in_front);
    let cpu_ms = by_metrics::app_cpu_ms(case);
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
        ("connect", exact(connect_ms), 0.0),
        ("send_lag", exact(|r| send_lag_ms(r).unwrap_or(0.0)), 0.0),
    ];
    let mut in_front_ms = 0.0;
    for (name, intervals) in measured {
        // A request that never reached the service has no part in what the service measured.
        let of = |r: &Request| service_ms(r).map_or((0.0, 0.0), |ms| intervals.part_of(r.done_at, ms));
        let found: Vec<((f64, f64), u64)> = requests.iter().map(|r| (of(r), r.count())).collect();
        let mut value = mean_of(found.iter().map(|((value, _), n)| (*value, *n))).unwrap_or(0.0);
        match *name {
            NETWORK => value = (value - in_front_ms).max(0.0),
            name if by_outside::is_in_front(name) => in_front_ms += value,
            _ => {}
        }
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
