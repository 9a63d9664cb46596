//! Pools whose every figure is known.

use super::DEFINITION;
use crate::cause::Cause;
use crate::causes::{Outcome, Role};
use crate::testing::{Judged as _, SyntheticRecording};
use holdup_signals::app::accounts::testing::{ALL, Injected, ReportingSources, made};

#[test]
fn hikaricp_says_the_same_in_its_own_words() {
    let pool = [("pool", "shop")];
    let app = "prometheus:http://app";
    let made = |pending: f64, waited: f64| {
        SyntheticRecording::new(12)
            .requests(50, 400)
            .gauge(app, "hikaricp_connections_active", &pool, 10.0)
            .gauge(app, "hikaricp_connections_max", &pool, 10.0)
            .gauge(app, "hikaricp_connections_pending", &pool, pending)
            .counter(app, "hikaricp_connections_acquire_seconds_sum", &pool, 50.0 * waited)
            .counter(app, "hikaricp_connections_acquire_seconds_count", &pool, 50.0)
            .counter(app, "hikaricp_connections_usage_seconds_sum", &pool, 50.0 * 0.2)
            .counter(app, "hikaricp_connections_usage_seconds_count", &pool, 50.0)
    };
    let ms = made(10.0, 0.3).explains(&DEFINITION).unwrap();
    assert!((ms - 300.0).abs() < 30.0, "{ms}");
    assert_eq!(made(0.0, 0.001).explains(&DEFINITION), Some(0.0));
    // 30 wait at any time, at 50 requests a second, and the few that get one waited for a moment: the others give up.
    let ms = made(15.0, 0.03).explains(&DEFINITION).unwrap();
    assert!((ms - 300.0).abs() < 30.0, "{ms}");
    for metric in ["hikaricp_connections_active", "hikaricp_connections_max", "hikaricp_connections_pending"] {
        assert_eq!(made(10.0, 0.3).without(metric).explains(&DEFINITION), None, "{metric}");
    }
    let server = "server:8080";
    let peer = [("peer_port", "5432"), ("peer", "10.0.0.5")];
    let outside = made(10.0, 0.3)
        .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
        .gauge(server, "server_outgoing_connections", &peer, 10.0)
        .gauge(server, "server_outgoing_pending_connections", &peer, 1.5);
    let Ok(Outcome::Found(found)) = outside.judge(&DEFINITION) else { panic!("not found") };
    assert!(
        found.evidence.iter().any(|e| e.text.contains("10 connections open to 10.0.0.5:5432")),
        "{:?}",
        found.evidence
    );
}

#[test]
fn a_pool_that_was_enough_until_connections_were_held_for_longer_is_no_root() {
    // From the sixth of twelve seconds on requests take 1.5 s, and wait for a second of it for one of 20 connections.
    let app = "prometheus:http://app";
    let made = |baseline_s: f64, slow_s: f64| {
        let grows =
            move |baseline: f64, slow: f64| move |s: i64| baseline * s.min(6) as f64 + slow * (s - 6).max(0) as f64;
        SyntheticRecording::new(12)
            .requests(50, 400)
            .each_request(|_, r| {
                let ms = if r.intended_at < 6_000_000_000 { 20 } else { 1_500 };
                r.done_at = r.intended_at + ms * 1_000_000;
            })
            // As many in use as Little's law says, and all of them in the slow half.
            .counted(app, "hikaricp_connections_active", &[], move |s| if s < 6 { 50.0 * baseline_s } else { 20.0 })
            .gauge(app, "hikaricp_connections_max", &[], 20.0)
            .gauge(app, "hikaricp_connections_pending", &[], 30.0)
            .counted(app, "hikaricp_connections_acquire_seconds_sum", &[], grows(0.0, 50.0))
            .counted(app, "hikaricp_connections_acquire_seconds_count", &[], grows(50.0, 50.0))
            .counted(app, "hikaricp_connections_usage_seconds_sum", &[], grows(50.0 * baseline_s, 50.0 * slow_s))
            .counted(app, "hikaricp_connections_usage_seconds_count", &[], grows(50.0, 50.0))
    };
    let role = |made: &SyntheticRecording| match made.judge(&DEFINITION) {
        Ok(Outcome::Found(found)) => found.role,
        _ => panic!("not found"),
    };
    assert_eq!(role(&made(0.02, 0.4)), Role::Symptom);
    assert_eq!(made(0.02, 0.4).diagnose().culprit, None, "why they are held for longer nobody saw");
    assert_eq!(role(&made(0.4, 0.4)), Role::Root);
    // All in use, each for next to nothing: those that have one do not go on.
    assert_eq!(role(&made(0.02, 0.02)), Role::Symptom);
}

#[test]
fn spans_tell_without_metrics() {
    let waits = Injected { pool: 50.0, ..Injected::default() };
    let ms = made(waits, ALL).explains(&DEFINITION).unwrap();
    assert!((ms - 50.0).abs() < 2.0, "{ms}");
    assert_eq!(made(waits, ALL).diagnose().culprit, Some(Cause::ConnectionPoolExhausted));
    let other = Injected { app: 50.0, ..Injected::default() };
    assert_eq!(made(other, ALL).explains(&DEFINITION), Some(0.0));
    assert_eq!(made(waits, ReportingSources { spans: false, ..ALL }).explains(&DEFINITION), None);
}

/// 50 requests a second of 20 ms, from the twelfth second on of 400 ms, of which 300 ms wait for one of 16 connections. A request holds
/// one for 4 ms, and for `held_ms` then, of which `calls_ms` in database calls; 16 are in use, and `awaited` of them await an answer.
fn kept(held_ms: f64, calls_ms: f64, awaited: f64) -> SyntheticRecording {
    const APP: &str = "prometheus:http://app";
    const SERVER: &str = "server:8080";
    let pool = [("db_client_connection_pool_name", "shop")];
    let used = [("db_client_connection_pool_name", "shop"), ("db_client_connection_state", "used")];
    let peer = [("peer_port", "5432"), ("peer", "10.0.0.5")];
    let at = |baseline: f64, slow: f64| move |s: i64| if s < 12 { baseline } else { slow };
    let sum =
        |baseline: f64, slow: f64| move |s: i64| 0.05 * (baseline * s.min(12) as f64 + slow * (s - 12).max(0) as f64);
    ["http_server_request", "db_client_connection_wait_time", "db_client_connection_use_time", "db_client_operation"]
        .into_iter()
        .zip([sum(10.0, 310.0 + held_ms), sum(0.0, 300.0), sum(4.0, held_ms), sum(4.0, calls_ms)])
        .fold(SyntheticRecording::new(24), |made, (name, sum)| {
            let unit = if name.ends_with("_time") { "seconds" } else { "duration_seconds" };
            made.counter(APP, &format!("{name}_{unit}_count"), &[], 50.0).counted(
                APP,
                &format!("{name}_{unit}_sum"),
                &[],
                sum,
            )
        })
        .requests(50, 400)
        .each_request(|_, r| {
            if r.intended_at < 12_000_000_000 {
                r.done_at = r.intended_at + 20_000_000;
            }
        })
        .counted(APP, "db_client_connection_count", &used, at(0.2, 16.0))
        .gauge(APP, "db_client_connection_max", &pool, 16.0)
        .counted(APP, "db_client_connection_pending_requests", &pool, at(0.0, 15.0))
        .gauge(SERVER, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
        .counted(SERVER, "server_outgoing_pending_connections", &peer, at(0.1, awaited))
}

#[test]
fn an_app_that_keeps_its_connections_is_the_root() {
    let culprit = |made: SyntheticRecording| made.diagnose().culprit;
    let pool = Some(DEFINITION.cause);
    // Held over other work, and never returned: the uses that end are as short as ever.
    assert_eq!(culprit(kept(300.0, 4.0, 0.2)), pool);
    assert_eq!(culprit(kept(4.0, 4.0, 0.2)), pool);
    // The database has them, whether its calls have ended or not.
    assert_eq!(culprit(kept(300.0, 300.0, 15.5)), None);
    assert_eq!(culprit(kept(4.0, 4.0, 15.5)), None);
}

#[test]
fn a_pool_that_came_down_is_the_root() {
    let fewer = kept(300.0, 300.0, 15.5).tables(|t| {
        for row in t.samples.rows.iter_mut().filter(|r| r.metric == "db_client_connection_max") {
            row.value = if row.observed_at < 12_000_000_000 { 32.0 } else { 16.0 };
        }
    });
    assert_eq!(fewer.diagnose().culprit, Some(DEFINITION.cause));
}

#[test]
fn a_new_connection_is_no_exhausted_pool() {
    let free = kept(4.0, 4.0, 0.2).tables(|t| {
        for row in &mut t.samples.rows {
            match row.metric.as_str() {
                "db_client_connection_pending_requests" => row.value = 0.0,
                "db_client_connection_count" => row.value = 0.5,
                _ => {}
            }
        }
    });
    assert_eq!(free.explains(&DEFINITION), Some(0.0));
}
