//! What waits in front of the app and inside it, as the kernel counts it: the parts of requests
//! whose app reports nothing, and those in front of an app that does. At an instant, so many
//! requests were with the service, so many connections were not accepted, so many were accepted,
//! and so many of the server's own awaited an answer. Over many instants these are shares of the
//! time of requests: Little's law on both sides (L = λW, with one λ).
//!
//! If the accept queue is full, the client still believes that its connection is set up: the kernel
//! dropped the last packet of the handshake. While connections are dropped, requests that clients
//! have sent and that neither the queue nor the server has are in front of the queue.

use super::by_sessions::SessionShares;
use super::instants::{self, Instant};
use super::{Intervals, LedgerRow, Part, WHOLE_BAND};
use crate::case::Case;
use holdup_recording::metrics;
use holdup_recording::words::round;
use holdup_signals::app::app_server::{Levels, Outside, waited_ms};
use holdup_signals::client::latency::Origin;
use holdup_signals::{View, Window};

/// Connections not accepted; accepted ones beyond those worked on at once; answers awaited from
/// downstream services and from databases; and the remaining accepted ones.
const PARTS: [&str; 5] = ["accept_queue", "app_queue", "downstream", "database", "app_other"];

/// Parts in front of the app, which the app's own figures lack.
const IN_FRONT: usize = 2;

/// Whether the part of that name is in front of the app.
pub(super) fn is_in_front(part: &str) -> bool {
    PARTS[..IN_FRONT].contains(&part)
}

/// The shares by part: only those in front of the app if `has_app`, because its own figures split
/// the rest, and only the queue if it is unknown which processes hold connections. Empty without an
/// outside view.
pub(super) fn parts(case: &Case<'_>, has_app: bool) -> Vec<(&'static str, Intervals)> {
    let view = case.view(case.whole());
    let Some(outside) = view.outside().ok().filter(|_| !case.asks_statements()) else { return Vec::new() };
    let has_processes = outside.has_processes() && outside.answering.is_some();
    // A host counts the queues of every listener.
    if !has_processes && !view.is_target_port(&outside.port) {
        return Vec::new();
    }
    let Some(instants) = sampled(case, &view, &outside) else { return Vec::new() };
    let wanted = match (has_processes, has_app) {
        (false, _) => 1,
        (true, true) => IN_FRONT,
        (true, false) => PARTS.len(),
    };
    let parts = instants::parts(&instants, &PARTS[..wanted]);
    let standing = if wanted == PARTS.len() { SessionShares::measure(case) } else { None };
    let Some(standing) = standing else { return parts };
    let split = |(name, shares)| if name == "database" { standing.split(name, shares) } else { vec![(name, shares)] };
    parts.into_iter().flat_map(split).collect()
}

/// The row of all requests of a service that holdup only watched, and that counts none itself; none of
/// another.
pub(super) fn rows(case: &Case<'_>) -> Vec<LedgerRow> {
    let view = case.slow();
    let outside = view.outside().ok().filter(|_| case.origin == Origin::AppServer && !case.asks_statements());
    let counted = || case.client.seconds.iter().filter(|second| view.window.contains(second.window.from));
    let requests: u64 = counted().map(|second| second.offered).sum();
    let per_second = requests as f64 / counted().map(|second| second.window.seconds()).sum::<f64>().max(1e-9);
    let Some(outside) = outside.filter(|outside| outside.has_processes() && requests > 0) else { return Vec::new() };
    let seen = seen(&view, &outside);
    let in_window: Vec<_> = seen.iter().filter(|instant| view.window.contains(instant.at)).collect();
    let ms = |part: usize| {
        let standing: f64 = in_window.iter().map(|instant| instant.counts[part]).sum();
        let mean = standing / in_window.len().max(1) as f64;
        round(waited_ms(mean, per_second), 3)
    };
    let all =
        PARTS.iter().enumerate().map(|(part, name)| Part { part: (*name).to_owned(), ms: ms(part), error_ms: 0.0 });
    let parts: Vec<Part> = all.filter(|part| part.ms > 0.0).collect();
    if parts.is_empty() {
        return Vec::new();
    }
    let response_ms = round(parts.iter().map(|part| part.ms).sum(), 3);
    let (operation, band) = (WHOLE_BAND.to_owned(), WHOLE_BAND.to_owned());
    vec![LedgerRow { operation, band, requests, response_ms, parts, residual_ms: 0.0 }]
}

fn sampled(case: &Case<'_>, view: &View<'_>, outside: &Outside) -> Option<Vec<Instant<{ PARTS.len() }>>> {
    let requests = case.requests_in(case.whole()).ok()?;
    let mut instants = seen(view, outside);
    instants::count(&mut instants, &requests);
    if outside.has_processes() {
        let dropping = dropping(view, outside);
        for instant in instants.iter_mut().filter(|i| dropping.iter().any(|w| w.contains(i.at))) {
            let elsewhere: f64 = instant.counts[1..].iter().sum();
            instant.counts[0] = instant.counts[0].max(instant.in_flight - elsewhere);
        }
    }
    Some(instants)
}

/// How many requests were at each part at each instant.
fn seen(view: &View<'_>, outside: &Outside) -> Vec<Instant<{ PARTS.len() }>> {
    let most = view.app_workers().map(|w| w.most).or(outside.takes_at_once);
    let waiting =
        view.levels(&outside.source, metrics::tcp::ACCEPT_QUEUE_LENGTH.name, &[("port", outside.port.as_str())]);
    let answering = view.levels(&outside.source, metrics::server::ANSWERING_CONNECTIONS.name, &[]);
    let neighbours = view.downstream_services(&outside.source).unwrap_or_default();
    let awaited = |is_database: bool| {
        let mut sum = Levels::new();
        for neighbour in neighbours.iter().filter(|n| n.is_database == is_database) {
            let port = [("peer_port", neighbour.port.as_str())];
            for (at, n) in view.levels(&outside.source, metrics::server::OUTGOING_PENDING_CONNECTIONS.name, &port) {
                sum.insert(at, n);
            }
        }
        sum
    };
    let (downstream, database) = (awaited(false), awaited(true));
    waiting
        .iter()
        .map(|(at, waiting)| {
            let at_hand = answering.get(at).copied().unwrap_or(0.0);
            let busy = at_hand.min(most.unwrap_or(at_hand));
            let of = |levels: &Levels| levels.get(at).copied().unwrap_or(0.0);
            // A request that calls two services at once waits once.
            let waits = of(&downstream) + of(&database);
            let fit = if waits > busy { busy / waits } else { 1.0 };
            let (downstream, database) = (of(&downstream) * fit, of(&database) * fit);
            let counts = [*waiting, at_hand - busy, downstream, database, busy - downstream - database];
            Instant::new(*at, counts)
        })
        .collect()
}

/// When connections were dropped because the queue was full.
fn dropping(view: &View<'_>, outside: &Outside) -> Vec<Window> {
    let grew = view.growths(|source| source == outside.source, metrics::tcp::LISTEN_OVERFLOWS.name, &[]);
    grew.into_iter().filter(|growth| growth.delta > 0.0).map(|growth| growth.window).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ledger;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_service_that_is_only_watched_has_its_time_by_place() {
        let app = "server:80";
        let peer = |port: &'static str| [("peer_port", port), ("peer", "10.0.0.5")];
        let made = SyntheticRecording::new(20)
            .gauge(app, "tcp_accept_queue_length", &[("port", "80")], 1.0)
            .gauge(app, "server_answering_connections", &[], 6.0)
            .gauge(app, "server_requests_since_last", &[], 20.0)
            .gauge(app, "server_outgoing_pending_connections", &peer("9300"), 4.0)
            .gauge(app, "server_outgoing_connections", &peer("9300"), 4.0)
            .gauge(app, "server_outgoing_pending_connections", &peer("5432"), 0.5)
            .gauge(app, "server_outgoing_connections", &peer("5432"), 2.0)
            .gauge("postgresql://db:5432", "postgresql_sessions", &[("true_state", "idle")], 1.0);
        let rows = made.with(ledger);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        // Seven at a time for 20 a second.
        let ms: Vec<(&str, f64)> = row.parts.iter().map(|part| (part.part.as_str(), part.ms.round())).collect();
        let places = [("accept_queue", 50.0), ("downstream", 200.0), ("database", 25.0), ("app_other", 75.0)];
        assert_eq!((ms.as_slice(), row.response_ms.round()), (places.as_slice(), 350.0), "{row:?}");
    }

    #[test]
    fn connections_by_place_split_the_response_time() {
        // 50 a second of 400 ms: 20 with the service at any moment.
        let server = "server:8080";
        let peer = |port: &'static str| [("peer_port", port), ("peer", "10.0.0.5")];
        let made = SyntheticRecording::new(12)
            .requests(50, 400)
            .target("http://127.0.0.1:8080")
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 10.0)
            .gauge(server, "server_accepted_connections", &[("pid", "7")], 8.0)
            .gauge(server, "server_answering_connections", &[("pid", "7")], 8.0)
            .gauge(server, "server_outgoing_pending_connections", &peer("9300"), 4.0)
            .gauge(server, "server_outgoing_pending_connections", &peer("5432"), 1.0);
        for (name, ms) in [("accept_queue", 200.0), ("downstream", 80.0), ("database", 20.0), ("app_other", 60.0)] {
            // At the very beginning fewer are on their way.
            assert!((made.part(name) - ms).abs() < 0.12 * ms, "{name}: {} of {ms}", made.part(name));
        }
        let puma =
            made.gauge("puma:app", "puma_pool_capacity", &[], 0.0).gauge("puma:app", "puma_max_threads", &[], 6.0);
        assert!((puma.part("app_queue") - 40.0).abs() < 6.0, "{}", puma.part("app_queue"));
    }

    #[test]
    fn awaited_database_time_is_split_by_session_states() {
        // Of 20 with the service nine await the database, where two run and five are at the disk.
        let server = "server:8080";
        let made = SyntheticRecording::new(12)
            .requests(50, 400)
            .target("http://127.0.0.1:8080")
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .gauge(server, "server_accepted_connections", &[("pid", "7")], 20.0)
            .gauge(server, "server_answering_connections", &[("pid", "7")], 20.0)
            .gauge(server, "server_outgoing_pending_connections", &[("peer_port", "5432"), ("peer", "10.0.0.5")], 9.0)
            .waiting(&[("", 2), ("IO:DataFileRead", 5)]);
        let parts =
            [("database_execution", 40.0), ("database_disk_wait", 100.0), ("database", 40.0), ("app_other", 220.0)];
        for (name, ms) in parts {
            // At the very beginning fewer are on their way.
            assert!((made.part(name) - ms).abs() < 0.15 * ms, "{name}: {} of {ms}", made.part(name));
        }
    }

    #[test]
    fn requests_dropped_by_a_full_queue_count_in_front_of_it() {
        // Of 20 with the service ten are in the queue and four in hand.
        let server = "server:8080";
        let made = SyntheticRecording::new(12)
            .requests(50, 400)
            .target("http://127.0.0.1:8080")
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 10.0)
            .gauge(server, "server_accepted_connections", &[("pid", "7")], 4.0)
            .gauge(server, "server_answering_connections", &[("pid", "7")], 4.0);
        let baseline = made.part("accept_queue");
        assert!((baseline - 200.0).abs() < 25.0, "{baseline}");
        let dropping = made.counter(server, "tcp_listen_overflows_total", &[], 5.0).part("accept_queue");
        assert!((dropping - 320.0).abs() < 25.0, "{dropping}");
    }

    #[test]
    fn a_host_tells_of_the_queue_of_the_port_that_is_asked() {
        let made = |port: &str| {
            let labels = [("port", port)];
            let made = SyntheticRecording::new(12).requests(50, 400).target("http://127.0.0.1:8080");
            made.gauge("host", "tcp_accept_queue_length", &labels, 10.0).part("accept_queue")
        };
        assert!((made("8080") - 200.0).abs() < 25.0, "{}", made("8080"));
        assert!(made("9300").abs() < 1e-9, "{}", made("9300"));
    }
}
