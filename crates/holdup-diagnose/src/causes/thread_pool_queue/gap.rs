//! The time of statements in front of execution, from any two sources that bound it.

use std::collections::BTreeSet;

use holdup_recording::{Labels, metrics};

use crate::case::Case;
use crate::causes::{ms, thousands, timing};
use crate::resources::statements;
use holdup_signals::app::accounts::{self, Owner};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Gauge, View};

/// Least number of statements known to both sources.
const LEAST: usize = 20;

/// The time between two sources.
pub(super) struct Gap {
    /// Milliseconds of a mean request.
    pub per_request_ms: f64,
    /// The evidence.
    pub evidence: Vec<Evidence>,
}

/// Packets on the server's machine compared with the server's own timing: without the network.
pub(super) fn of_wire(case: &Case<'_>, completed: f64) -> Option<Gap> {
    let window = case.slow().window;
    let calls = case.sources().calls().all();
    let seen = || calls.iter().filter(|c| c.server.is_some_and(|e| window.contains(e.request_at)));
    let both: Vec<(f64, f64, f64)> =
        seen().filter_map(|c| Some((c.served_ms()?, c.execution_ms()?, c.before_execution_ms()?))).collect();
    if both.len() < LEAST {
        return None;
    }
    let count = both.len() as f64;
    let mean = |of: fn(&(f64, f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / count;
    let (served, executed, waited) = (mean(|b| b.0), mean(|b| b.1), mean(|b| b.2));
    let evidence = Evidence::new(
        "exchanges",
        "request_end_at",
        Labels::none(),
        window,
        ms(served),
        format!("about {}", ms(executed)),
        format!(
            "each of {} statements spent {} at the database's machine from arrival to response, {} of it before execution, and the server timed their execution at {}",
            thousands(count),
            ms(served),
            ms(waited),
            ms(executed)
        ),
    );
    // The history may have lost executions: those present stand for all statements in the packets.
    Some(Gap { per_request_ms: waited * seen().count() as f64 / completed, evidence: vec![evidence] })
}

/// The app's timing of its calls compared with the server's own: includes the network.
pub(super) fn of_app(case: &Case<'_>, completed: f64) -> Option<Gap> {
    let view = case.slow();
    let server = timing::server_timing(&view, completed).ok()?;
    let took = server.evidence(
        "most of the client's time, if execution were slow",
        format!(
            "by the server's own timing, {} of the same statements took {} at p50 and {} at p99",
            thousands(server.count as f64),
            ms(server.p50_ms),
            ms(server.p99_ms)
        ),
    );
    let said = |app_ms: f64| {
        format!("the app waits {} for a statement, and the server times it at {}", ms(app_ms), ms(server.mean_ms))
    };
    if let Ok(app) = timing::app_operations(&view) {
        let evidence = app.evidence(ms(app.ms), format!("about {}", ms(server.mean_ms)), said(app.ms));
        let per_request_ms = (app.ms - server.mean_ms).max(0.0) * app.count / completed;
        return Some(Gap { per_request_ms, evidence: vec![evidence, took] });
    }
    let (per_request, calls, app) = statements::database_by_spans(case)?;
    let each = per_request / calls.max(1e-9);
    let app = app.saying(format!("about {}", ms(server.mean_ms)), said(each));
    Some(Gap { per_request_ms: (each - server.mean_ms).max(0.0) * calls, evidence: vec![app, took] })
}

/// Connections to the database with an unread request; none if sockets were not recorded.
pub(super) fn unread(view: &View<'_>, ports: &BTreeSet<String>) -> Option<Gauge> {
    let of_port = |port: &String| {
        let new = view.gauge(metrics::tcp::CONNECTIONS_UNREAD.name, &[("port", port), ("side", "server")], "");
        new.or_else(|_| view.gauge(metrics::tcp::SERVER_UNREAD_CONNECTIONS.name, &[("port", port)], "")).ok()
    };
    ports.iter().filter_map(of_port).max_by(|a, b| a.mean.total_cmp(&b.mean))
}

/// Most milliseconds of a request that the network between app and database can take; none if
/// nothing bounds it. Zero on a single machine.
pub(super) fn network_bound_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let ports = holdup_signals::database::ports::database_ports(&view);
    let is_local = |address: &str| {
        let address = address.split_once("://").map_or(address, |(_, rest)| rest);
        let address = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
        ["127.", "localhost", "[::1]", "unix", "/"].iter().any(|local| address.starts_with(local))
    };
    let servers = view.sources_of(metrics::mysql::SESSIONS.name);
    if !servers.is_empty() && servers.iter().all(|s| is_local(s)) {
        let clients = view.recording.tables.sessions.rows.iter().filter_map(|s| s.client.as_deref());
        if clients.into_iter().all(is_local) {
            return Some(0.0);
        }
    }
    let trip = |metric: &str, labels: &[(&str, &str)]| view.gauge(metric, labels, "").ok().map(|g| g.max * 1e3);
    let of_port = |port: &String| trip(metrics::tcp::ROUND_TRIP.name, &[("port", port), ("stat", "mean")]);
    let trip_ms =
        ports.iter().filter_map(of_port).fold(None, |most: Option<f64>, ms| Some(most.unwrap_or(0.0).max(ms)));
    let calls = accounts::mean(case.accounts().all.iter().filter(|a| a.is_joined), |a| a.calls as f64).max(1.0);
    let by_packets = case.accounts().mean_ms(Owner::DatabaseNetwork).filter(|_| case.accounts().has_both_sides());
    by_packets.or(trip_ms.map(|ms| ms * calls))
}
