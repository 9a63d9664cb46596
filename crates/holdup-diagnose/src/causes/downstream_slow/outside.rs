//! The wait for downstream services without a report from the app: its connections that await an
//! answer, by Little's law.

use std::collections::BTreeMap;

use super::DownstreamWait;
use crate::case::Case;
use crate::causes::ms;
use crate::resources::workers::{answered_per_second, stretch};
use crate::strength::STRONG;
use holdup_signals::View;
use holdup_signals::app::app_server::{DownstreamService, waited_ms};
use holdup_signals::database::ports::database_ports;

/// Downstream services that are not databases, with requests per second. None if not recorded, or if
/// a database is watched to which the app has no connection: one of its peers is then a pooler or a
/// proxy in front of it, and nothing says which.
fn seen(case: &Case<'_>, view: &View<'_>) -> Option<(Vec<DownstreamService>, f64)> {
    let source = view.outside().ok().filter(|o| o.has_processes())?.source;
    let mut neighbours = view.downstream_services(&source)?;
    if neighbours.iter().all(|n| !n.is_database) && !database_ports(view).is_empty() {
        return None;
    }
    neighbours.retain(|n| !n.is_database);
    let per_second = answered_per_second(case, view)?;
    (per_second > 0.0).then_some((neighbours, per_second))
}

/// Waits of requests for all of them; none if not recorded.
pub(super) fn waited(case: &Case<'_>) -> Option<DownstreamWait> {
    let (neighbours, per_second) = seen(case, &stretch(case))?;
    let of = |neighbours: &[DownstreamService], per_second| {
        waited_ms(neighbours.iter().map(|n| n.pending).sum(), per_second)
    };
    let baseline = case.baseline().and_then(|view| seen(case, &view));
    let waited = of(&neighbours, per_second);
    let evidence = neighbours.first()?.evidence(ms(waited), "", "");
    let baseline_ms = baseline.map(|(all, rate)| of(&all, rate));
    Some(DownstreamWait { ms: waited, baseline_ms, growth_ms: growth(case), evidence, weight: STRONG })
}

/// By downstream service: milliseconds of a mean request beyond the baseline window's.
fn growth(case: &Case<'_>) -> BTreeMap<String, f64> {
    let by_name = |view: &View<'_>| -> BTreeMap<String, f64> {
        let Some((neighbours, per_second)) = seen(case, view) else { return BTreeMap::new() };
        neighbours.into_iter().map(|n| (n.name, waited_ms(n.pending, per_second))).collect()
    };
    let mut growth = by_name(&stretch(case));
    for (name, before) in case.baseline().map(|baseline| by_name(&baseline)).unwrap_or_default() {
        *growth.entry(name).or_default() -= before;
    }
    growth
}

#[cfg(test)]
mod tests {
    use crate::causes::downstream_slow::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 50 requests a second of 400 ms, of which the app waits for a peer on `port`, and a watched database on port 3306.
    fn waits_for(port: &'static str) -> SyntheticRecording {
        let server = "server:8080";
        let peer = |port: &'static str| [("peer_port", port), ("peer", "10.0.0.5")];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .target("http://127.0.0.1:8080")
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .gauge(server, "server_answering_connections", &[("pid", "7")], 20.0)
            .gauge(server, "server_outgoing_pending_connections", &peer(port), 18.0)
            .gauge("mysql://10.0.0.6:3306", "mysql_sessions", &[("state", "active")], 1.0)
    }

    #[test]
    fn a_pooler_in_front_of_the_database_is_no_downstream_service() {
        assert_eq!(waits_for("7777").explains(&DEFINITION), None);
        let also = waits_for("7777").gauge(
            "server:8080",
            "server_outgoing_pending_connections",
            &[("peer_port", "3306"), ("peer", "10.0.0.6")],
            0.5,
        );
        assert!(also.explains(&DEFINITION).is_some_and(|ms| ms > 300.0), "{:?}", also.explains(&DEFINITION));
    }
}
