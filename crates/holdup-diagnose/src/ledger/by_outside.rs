//! What stands in front of the app and in it, as the kernel counts it: parts of requests whose app says nothing, and those in front of an
//! app that does. At an instant so many requests were with the service, so many connections nobody had accepted, so many were in the
//! server's hands, and on so many of its own it awaited an answer. Over many instants these are shares of the time of requests:
//! Little's law on both sides (L = λW, with one λ).

use super::Intervals;
use super::instants::{self, Instant};
use crate::case::Case;

/// Connections that nobody accepted; those in hand beyond what is worked on at once; answers awaited of neighbours and of databases;
/// and what else the server has in hand.
const PARTS: [&str; 5] = ["accept_queue", "app_queue", "downstream", "database", "app_other"];

/// Parts in front of the app, which no account of the app's has.
const IN_FRONT: usize = 2;

/// Whether a part of that name stands in front of the app.
pub(super) fn is_in_front(part: &str) -> bool {
    PARTS[..IN_FRONT].contains(&part)
}

/// The shares by part: only those in front of the app if `has_app`, whose own account splits the rest. None where nobody looked from
/// outside.
pub(super) fn parts(case: &Case<'_>, has_app: bool) -> Vec<(&'static str, Intervals)> {
    let Some(instants) = sampled(case).filter(|_| !case.asks_statements()) else { return Vec::new() };
    let wanted = if has_app { IN_FRONT } else { PARTS.len() };
    instants::parts(&instants, &PARTS[..wanted])
}

fn sampled(case: &Case<'_>) -> Option<Vec<Instant<{ PARTS.len() }>>> {
    let view = case.view(case.whole());
    let outside = view.outside().ok().filter(|o| o.has_processes() && o.answering.is_some())?;
    let requests = case.requests_in(case.whole()).ok()?;
    let most = view.workers().map(|w| w.most).or(outside.takes_at_once);
    let waiting = view.levels(&outside.source, "tcp_accept_queue_length", &[("port", outside.port.as_str())]);
    let answering = view.levels(&outside.source, "server_answering_connections", &[]);
    let neighbours = view.neighbours(&outside.source).unwrap_or_default();
    let awaited = |is_database: bool| {
        let mut sum = crate::signals::app_server::Levels::new();
        for neighbour in neighbours.iter().filter(|n| n.is_database == is_database) {
            let port = [("peer_port", neighbour.port.as_str())];
            for (at, n) in view.levels(&outside.source, "server_outgoing_pending_connections", &port) {
                sum.insert(at, n);
            }
        }
        sum
    };
    let (downstream, database) = (awaited(false), awaited(true));
    let mut instants: Vec<_> = waiting
        .iter()
        .map(|(at, waiting)| {
            let at_hand = answering.get(at).copied().unwrap_or(0.0);
            let busy = at_hand.min(most.unwrap_or(at_hand));
            let of = |levels: &crate::signals::app_server::Levels| levels.get(at).copied().unwrap_or(0.0);
            // One that asks two at once waits once.
            let waits = of(&downstream) + of(&database);
            let fit = if waits > busy { busy / waits } else { 1.0 };
            let (downstream, database) = (of(&downstream) * fit, of(&database) * fit);
            let counts = [*waiting, at_hand - busy, downstream, database, busy - downstream - database];
            Instant::new(*at, counts)
        })
        .collect();
    instants::count(&mut instants, &requests);
    Some(instants)
}

#[cfg(test)]
mod tests {
    use crate::ledger::ledger;
    use crate::signals::testing::Made;

    #[test]
    fn what_stands_where_is_what_time_went_to() {
        // 50 a second of 400 ms: 20 with the service at any moment.
        let server = "server:8080";
        let peer = |port: &'static str| [("peer_port", port), ("peer", "10.0.0.5")];
        let made = Made::new(12)
            .requests(50, 400)
            .target("http://127.0.0.1:8080")
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 10.0)
            .gauge(server, "server_accepted_connections", &[("pid", "7")], 8.0)
            .gauge(server, "server_answering_connections", &[("pid", "7")], 8.0)
            .gauge(server, "server_outgoing_pending_connections", &peer("9300"), 4.0)
            .gauge(server, "server_outgoing_pending_connections", &peer("5432"), 1.0);
        let part = |made: &Made, name: &str| {
            let rows = made.with(ledger);
            let all = rows.iter().find(|row| row.band == "all").expect("a row");
            let sum: f64 = all.parts.iter().map(|p| p.ms).sum();
            assert!((sum + all.residual_ms - all.response_ms).abs() < 0.01, "{all:?}");
            all.parts.iter().find(|part| part.part == name).map_or(0.0, |part| part.ms)
        };
        for (name, ms) in [("accept_queue", 200.0), ("downstream", 80.0), ("database", 20.0), ("app_other", 60.0)] {
            // At the very beginning fewer are on their way.
            assert!((part(&made, name) - ms).abs() < 0.12 * ms, "{name}: {} of {ms}", part(&made, name));
        }
        let puma =
            made.gauge("puma:app", "puma_pool_capacity", &[], 0.0).gauge("puma:app", "puma_max_threads", &[], 6.0);
        assert!((part(&puma, "app_queue") - 40.0).abs() < 6.0, "{}", part(&puma, "app_queue"));
    }
}
