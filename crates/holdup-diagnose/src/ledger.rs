//! Where the milliseconds of the requests went: for each operation and percentile band, response
//! time split into the measured parts and a residual without an owner.
//!
//! The generator's measurements are exact per request. Those of the app and the database are totals
//! per sampling interval, booked when a wait ends ([`by_metrics`]). A request is assumed to be
//! composed like the requests of the interval in which it ended: a part that is 90 % of that
//! interval's service time is 90 % of the request's. So the parts of all requests of an interval
//! add up to what was measured. `error_ms` is how far the part moves if requests that ended near an
//! interval's edge belong beyond it. `residual = response - sum of parts`.
//!
//! If both sides of most requests of a band are joined by trace id ([`crate::accounts`]), its row
//! consists of those instead, each exact.

pub mod accounts;
mod by_log;
mod by_metrics;
mod by_outside;
mod by_proxy;
mod by_request;
mod by_sessions;
mod by_spans;
mod instants;
mod little;
mod runtime;

use std::collections::BTreeSet;

use holdup_recording::rows::Request;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use by_request::Joined;
pub(crate) use by_spans::critical_paths;
use holdup_recording::words::round;
use holdup_signals::time::distribution::mean_of;
use holdup_signals::time::requests::{
    client_queue_ms, connect_ms, is_latency, mean_over, response_ms, send_lag_ms, service_ms,
};

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
    /// Milliseconds without an owner. Negative if parts overlap.
    pub residual_ms: f64,
}

/// One part of response time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Name, e.g. `connection_pool_wait`.
    pub part: String,
    /// Mean, milliseconds.
    pub ms: f64,
    /// Its error, milliseconds.
    pub error_ms: f64,
}

/// The band of all requests.
pub(crate) const WHOLE_BAND: &str = "all";

/// Parts of the load generator and of the connection, before the service has a request.
pub(crate) const OF_CLIENT: [&str; 3] = ["client_queue", "connect", "send_lag"];

const BANDS: [(&str, f64, f64); 5] =
    [(WHOLE_BAND, 0.0, 1.0), ("p0-50", 0.0, 0.5), ("p50-90", 0.5, 0.9), ("p90-99", 0.9, 0.99), ("p99-100", 0.99, 1.0)];

/// A request that ended this long after the last interval with data gets none of its mean.
const NEAREST_NS: i64 = 3_000_000_000;

/// The app books a wait and the client sees the end of its request within this of each other, and a
/// read of the app's metrics takes about as long.
const EDGE_NS: i64 = 50_000_000;

/// The time between client and app, including what waits in front of the app.
const NETWORK: &str = "network";

/// The queue of a pool between app and database, where statements wait for a connection.
const POOLER: &str = "database_pooler_wait";

/// The ledger of the episode, or of everything if nothing is degraded.
pub fn ledger(case: &Case<'_>) -> Vec<LedgerRow> {
    let requests = case.slow_requests().unwrap_or_default();
    if requests.is_empty() {
        let accounts = [by_log::rows, by_spans::rows, by_outside::rows];
        return accounts.into_iter().map(|rows| rows(case)).find(|rows| !rows.is_empty()).unwrap_or_default();
    }
    let all_answered = by_metrics::has_answered_all(case);
    let mut parts = by_metrics::parts(case, all_answered);
    if parts.is_empty() {
        parts = by_sessions::parts(case);
    }
    // What waits in front of the app comes before the app's own parts.
    let outside = by_outside::parts(case, !parts.is_empty());
    parts.splice(0..0, by_proxy::parts(case).into_iter().chain(outside));
    runtime::take_out(case, &mut parts);
    let cpu_ms = by_metrics::app_cpu_ms(case);
    let measured = MeasuredParts { parts, all_answered };
    let joined = Joined::new(case.accounts());
    let operations: BTreeSet<&str> = requests.iter().map(|r| r.operation.as_str()).collect();
    let mut rows = Vec::new();
    for operation in operations {
        let mut mine: Vec<&Request> =
            requests.iter().copied().filter(|r| r.operation == operation && is_latency(r)).collect();
        mine.sort_by(|a, b| response_ms(a).total_cmp(&response_ms(b)));
        // Up to each row, how many requests the rows stand for.
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
                rows.push(match joined.row(operation, band, slice) {
                    Some(exact) => measured.with_proxy_queue(exact, slice),
                    None => row(operation, band, slice, cpu_ms, &measured),
                });
            }
        }
    }
    rows
}

fn row(operation: &str, band: &str, requests: &[&Request], cpu_ms: Option<f64>, measured: &MeasuredParts) -> LedgerRow {
    let exact = |f: fn(&Request) -> f64| mean_over(requests.iter().copied(), |r| Some(f(r))).unwrap_or(0.0);
    let [client_queue, connect, send_lag] = OF_CLIENT;
    let mut parts = vec![
        (client_queue, exact(client_queue_ms), 0.0),
        (connect, exact(connect_ms), 0.0),
        (send_lag, exact(|r| send_lag_ms(r).unwrap_or(0.0)), 0.0),
    ];
    let found: Vec<(Vec<(f64, f64)>, u64)> = requests.iter().map(|r| (measured.split_request(r), r.count())).collect();
    for (i, (name, _)) in measured.parts.iter().enumerate() {
        let mean = |of: fn(&(f64, f64)) -> f64| mean_of(found.iter().map(|(parts, n)| (of(&parts[i]), *n)));
        parts.push((name, mean(|part| part.0).unwrap_or(0.0), mean(|part| part.1).unwrap_or(0.0)));
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

/// The measurements of the app, its database and the kernel.
struct MeasuredParts {
    parts: Vec<(&'static str, Intervals)>,
    /// Whether the app has answered all that it received: requests without an answer never reached
    /// it.
    all_answered: bool,
}

impl MeasuredParts {
    /// Milliseconds of each part in a request, with their errors. What waits in front of the app
    /// lies between client and app: if the app reported its time, at most the rest.
    fn split_request(&self, request: &Request) -> Vec<(f64, f64)> {
        // A request that never reached the service has no part in the service's measurements.
        let Some(service_ms) = service_ms(request) else { return vec![(0.0, 0.0); self.parts.len()] };
        let is_network = |name: &str| name == NETWORK;
        let reached_app = !self.all_answered || by_metrics::is_answered(request);
        let part = |(name, intervals): &(&'static str, Intervals)| {
            let part = intervals.part_of(request.done_at, service_ms);
            match *name {
                _ if reached_app || is_in_front(name) => part,
                name => Some((if is_network(name) { service_ms } else { 0.0 }, 0.0)),
            }
        };
        let told: Vec<_> = self.parts.iter().map(part).collect();
        let mut parts: Vec<(f64, f64)> = told.iter().map(|part| part.unwrap_or_default()).collect();
        let network = self.parts.iter().position(|(name, _)| is_network(name)).filter(|i| told[*i].is_some());
        if let Some(network) = network {
            let mut left = parts[network].0;
            for i in (0..parts.len()).filter(|i| is_in_front(self.parts[*i].0)) {
                let (ms, error) = parts[i];
                let fits = ms.min(left);
                parts[i] = (fits, error + ms - fits);
                left -= fits;
            }
            parts[network].0 = left;
        }
        parts
    }

    /// `row`, made of joined requests, with the proxy's queue taken out of what is between client
    /// and app.
    fn with_proxy_queue(&self, mut row: LedgerRow, requests: &[&Request]) -> LedgerRow {
        let queue = self.parts.iter().find(|(name, _)| *name == by_proxy::PROXY_QUEUE);
        let network = row.parts.iter().position(|part| part.part == NETWORK);
        let Some(((name, queue), i)) = queue.zip(network) else { return row };
        let queued_ms = |request: &Request| Some(queue.part_of(request.done_at, service_ms(request)?)?.0);
        let queued_ms = mean_over(requests.iter().copied(), queued_ms).unwrap_or(0.0);
        let ms = round(queued_ms.min(row.parts[i].ms), 3);
        if ms > 0.0 {
            row.parts[i].ms = round(row.parts[i].ms - ms, 3);
            let error_ms = round(queued_ms - ms, 3);
            row.parts.insert(i, Part { part: (*name).to_owned(), ms, error_ms });
        }
        row
    }
}

/// Whether the part of that name is in front of the app, whose own figures lack it.
fn is_in_front(part: &str) -> bool {
    part == by_proxy::PROXY_QUEUE || by_outside::is_in_front(part)
}

/// One part's share of service time, by sampling interval.
struct Intervals(Vec<(i64, i64, f64)>);

impl Intervals {
    /// Milliseconds of the part in a request that ended at `at` after `service_ms`, with their
    /// error; none if no interval is near.
    fn part_of(&self, at: i64, service_ms: f64) -> Option<(f64, f64)> {
        let i = self.0.partition_point(|(_, to, _)| *to <= at).min(self.0.len().saturating_sub(1));
        let &(from, to, share) = self.0.get(i)?;
        if at < from - NEAREST_NS || at > to + NEAREST_NS {
            return None;
        }
        // Only a request that ended near an edge may belong to the next interval.
        let beyond = match () {
            () if at - from < EDGE_NS => i.checked_sub(1),
            () if to - at < EDGE_NS => Some(i + 1),
            () => None,
        };
        let other = beyond.and_then(|j| self.0.get(j)).map_or(share, |p| p.2);
        Some((share * service_ms, (share - other).abs() * service_ms))
    }
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Session;

    use super::{LedgerRow, ledger};
    use crate::testing::{Judged as _, SyntheticRecording};

    const APP: &str = "prometheus:app";

    const SECONDS: i64 = 40;

    /// 50 a second of 400 ms, on port 8080, of an app that is busy with each for `app_ms`, of which it calls its database for
    /// `calls_ms`; it counts `per_second`.
    fn made(per_second: f64, app_ms: f64, calls_ms: f64) -> SyntheticRecording {
        let histogram = |made: SyntheticRecording, name: &str, ms: f64| {
            made.counter(APP, &format!("{name}_count"), &[], per_second).counter(
                APP,
                &format!("{name}_sum"),
                &[],
                per_second * ms / 1e3,
            )
        };
        let made = SyntheticRecording::new(SECONDS).requests(50, 400).target("http://127.0.0.1:8080");
        let made = histogram(made, "http_server_request_duration_seconds", app_ms);
        histogram(made, "db_client_operation_duration_seconds", calls_ms)
    }

    fn row(made: &SyntheticRecording, band: &str) -> LedgerRow {
        made.with(ledger).into_iter().find(|row| row.band == band).expect("a row")
    }

    fn part(row: &LedgerRow, name: &str) -> f64 {
        row.parts.iter().find(|part| part.part == name).map_or(0.0, |part| part.ms)
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 0.1 * expected.max(100.0), "{found} instead of {expected}");
    }

    #[test]
    fn the_queue_in_front_of_an_app_has_what_the_app_leaves() {
        // Twelve of twenty would be 240 ms, and the app has had 300 of the 400.
        let made = made(50.0, 300.0, 250.0).gauge("host", "tcp_accept_queue_length", &[("port", "8080")], 12.0);
        let all = row(&made, "all");
        near(part(&all, "accept_queue"), 100.0);
        near(part(&all, "network"), 0.0);
        near(all.residual_ms, 0.0);
        let queue = all.parts.iter().find(|part| part.part == "accept_queue").expect("a part");
        assert!(queue.error_ms > 100.0, "what was cut off is how far it may be off: {queue:?}");
    }

    #[test]
    fn the_queue_in_a_proxys_log_is_a_part_of_its_time() {
        let made = made(50.0, 400.0, 0.0)
            .counter("access_log:web.log", "access_log_queue_seconds_sum", &[], 50.0 * 0.31)
            .counter("access_log:web.log", "access_log_queue_seconds_count", &[], 50.0);
        near(part(&row(&made, "all"), "queue_in_proxy"), 310.0);
    }

    #[test]
    fn requests_that_an_app_has_not_had_waited_in_front_of_it() {
        // Every second one is given up after 400 ms; the app answers the others in 300.
        let unanswered = |made: SyntheticRecording| {
            made.each_request(|number, row| row.outcome = ["ok", "timeout"][number as usize % 2].into())
        };
        let all = row(&unanswered(made(25.0, 300.0, 300.0)), "all");
        near(part(&all, "network"), 250.0);
        near(part(&all, "database"), 150.0);
        // Had it had all of them, each would have been in its hands.
        let all = row(&unanswered(made(50.0, 300.0, 300.0)), "all");
        near(part(&all, "network"), 100.0);
        near(part(&all, "database"), 300.0);
    }

    #[test]
    fn calls_that_no_server_accounts_for_are_what_its_sessions_were_at() {
        // Twenty with the service, three of four in a call: eight sessions run, four wait for a lock, of three nobody knows.
        let sessions = (0..=SECONDS).flat_map(|second| {
            (0..12).map(move |id| Session {
                observed_at: second * 1_000_000_000,
                source: "mysql://db".into(),
                session_id: id,
                command: "Query".into(),
                true_state: if id < 8 { "executing" } else { "lock_wait" }.into(),
                ..Session::default()
            })
        });
        let all = row(&made(50.0, 400.0, 300.0).session_rows(sessions.collect()), "all");
        near(part(&all, "database_execution"), 160.0);
        near(part(&all, "database_lock_wait"), 80.0);
        near(part(&all, "database"), 60.0);
        let without = row(&made(50.0, 400.0, 300.0), "all");
        near(part(&without, "database"), 300.0);
    }

    #[test]
    fn calls_that_the_database_does_not_work_on_are_on_the_way_to_it() {
        // From the twentieth second on a call takes 42 ms instead of 2, of which the server works for one.
        let grown = |before: f64, after: f64| {
            move |second: i64| 0.1 * (before * second.min(20) as f64 + after * (second - 20).max(0) as f64)
        };
        let made = |peer: &str| {
            let peer = [("peer", peer), ("peer_port", "5432")];
            SyntheticRecording::new(SECONDS)
                .requests(100, 45)
                .each_request(|_, row| {
                    if row.intended_at < 20_000_000_000 {
                        row.done_at = row.intended_at + 3_000_000;
                    }
                })
                .counter(APP, "http_server_request_duration_seconds_count", &[], 100.0)
                .counted(APP, "http_server_request_duration_seconds_sum", &[], grown(3.0, 44.0))
                .counter(APP, "db_client_operation_duration_seconds_count", &[], 100.0)
                .counted(APP, "db_client_operation_duration_seconds_sum", &[], grown(2.0, 42.0))
                .counted("postgresql://db:5432", "postgresql_sessions", &[("true_state", "idle")], |_| 0.0)
                .digest("SELECT 1", |second| (100 * second, 100 * second, 0, 0, 0))
                .counted("server:8080", "server_accepted_connections", &[], |_| 1.0)
                .counted("server:8080", "server_outgoing_pending_connections", &peer, |second| {
                    if second < 20 { 0.2 } else { 4.2 }
                })
        };
        let way = |peer: &str| part(&row(&made(peer), "all"), "database_network");
        assert!((36.0..42.0).contains(&way("10.0.0.5")), "{}", way("10.0.0.5"));
        assert!(way("127.0.0.1").abs() < 1e-9, "within one machine there is no way: {}", way("127.0.0.1"));
    }
}
