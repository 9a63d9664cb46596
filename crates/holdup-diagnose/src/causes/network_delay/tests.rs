//! Answers that are under way, and what excludes that they are.

use super::*;
use crate::cause::Cause;
use crate::testing::{Judged as _, SyntheticRecording};

const SERVER: &str = "server:8080";

/// Second at which it begins.
const ONSET: i64 = 20;

/// 100 requests a second of `ms`, a twentieth of it until the onset, and a statement each. From the onset the app awaits `pending` answers, where the
/// server works on `working` statements, `unread` requests stand in its sockets, and `unacked` segments are under way.
fn made(ms: i64, pending: f64, working: f64, unread: f64, unacked: f64) -> SyntheticRecording {
    made_at("10.0.0.5", ms, pending, working, unread, unacked)
}

/// The same with the database at `address`.
fn made_at(address: &str, ms: i64, pending: f64, working: f64, unread: f64, unacked: f64) -> SyntheticRecording {
    let step = |before: f64, after: f64| move |second: i64| if second < ONSET { before } else { after };
    let grown = move |second: i64| (second.min(ONSET) as f64 * 0.1 + (second - ONSET).max(0) as f64 * working) * 1e3;
    let peer = [("peer", address), ("peer_port", "5432")];
    let side = [("port", "5432"), ("side", "server")];
    SyntheticRecording::new(40)
        .requests(100, ms)
        .each_request(|_, r| {
            if r.intended_at < ONSET * 1_000_000_000 {
                r.done_at = r.intended_at + ms * 50_000;
            }
        })
        .counted("postgresql://db:5432", "postgresql_sessions", &[("true_state", "idle")], |_| 0.0)
        .digest("SELECT 1", move |second| (100 * second, grown(second) as i64, 0, 0, 0))
        .counted(SERVER, "server_accepted_connections", &[], |_| 1.0)
        .counted(SERVER, "server_outgoing_pending_connections", &peer, step(0.2, pending))
        .counted("host", "tcp_connections_unread", &side, step(0.0, unread))
        .counted("host", "tcp_unacked_segments", &side, step(0.5, unacked))
}

#[test]
fn answers_that_the_server_no_longer_works_on_are_under_way() {
    let far = made(45, 4.2, 0.1, 0.0, 4.5);
    let explained = far.explains(&DEFINITION).unwrap();
    assert!((explained - 40.0).abs() < 3.0, "{explained}");
    let diagnosis = far.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{:#?}", diagnosis.findings);
}

#[test]
fn waits_outside_the_network_clear_it() {
    assert_eq!(made(45, 0.2, 0.1, 0.0, 0.5).explains(&DEFINITION), Some(0.0), "the app does not await the database");
    assert_eq!(made(45, 4.2, 4.1, 0.0, 0.5).explains(&DEFINITION), Some(0.0), "the server works on it");
    assert_eq!(made(45, 4.2, 0.1, 4.0, 0.5).explains(&DEFINITION), Some(0.0), "arrived, and not read");
    assert_eq!(made(45, 4.2, 0.1, 0.0, 0.5).explains(&DEFINITION), Some(0.0), "acknowledged as soon as before");
    assert_eq!(made_at("127.0.0.1", 45, 4.2, 0.1, 0.0, 4.5).explains(&DEFINITION), Some(0.0), "on one machine");
}

/// A transaction stays open while its next statement is under way.
#[test]
fn sessions_that_wait_for_their_client_do_not_work() {
    let far = made(45, 4.2, 0.1, 0.0, 4.5);
    let waiting = far.clone().sessions(4, "Client:ClientRead").explains(&DEFINITION).unwrap();
    assert!((waiting - 40.0).abs() < 3.0, "{waiting}");
    assert_eq!(far.sessions(4, "IO:DataFileRead").explains(&DEFINITION), None, "it works, as it did before");
}

/// 20 timers of 200 ms a second are all that requests lose, while the app awaits `pending` answers.
fn lossy(pending: f64) -> SyntheticRecording {
    made(5, pending, 0.1, 0.0, pending)
        .each_request(|n, r| {
            if r.intended_at >= ONSET * 1_000_000_000 && n % 5 == 0 {
                r.done_at += 200_000_000;
            }
        })
        .counted("host", "tcp_sent_segments_total", &[], |second| 1_000.0 * second as f64)
        .counted("host", "tcp_retransmitted_segments_total", &[], |second| 20.0 * (second - ONSET).max(0) as f64)
        .counted("host", "tcp_loss_probes_total", &[], |second| 20.0 * (second - ONSET).max(0) as f64)
        .counted("host", "tcp_retransmission_timeouts_total", &[], |_| 0.0)
}

#[test]
fn lost_packets_are_no_longer_way() {
    assert_eq!(lossy(4.2).explains(&DEFINITION), Some(0.0));
    assert_eq!(lossy(4.2).diagnose().culprit, Some(Cause::NetworkLoss));
}

#[test]
fn unacknowledged_data_beyond_requests_is_not_delay() {
    // The way would explain 108 ms beside the loss, of a request that lost 45.
    let rest = lossy(15.0).explains(&DEFINITION).unwrap();
    assert!(rest < 6.0, "{rest}");
    assert_eq!(lossy(15.0).diagnose().culprit, Some(Cause::NetworkLoss));
}

#[test]
fn without_a_fact_it_is_not_judged() {
    let far = made(45, 4.2, 0.1, 0.0, 4.5);
    assert_eq!(far.clone().without("server_outgoing_pending_connections").explains(&DEFINITION), None);
    let silent = far.clone().tables(|t| t.statements.rows.clear()).without("postgresql_sessions");
    assert_eq!(silent.explains(&DEFINITION), None);
    // In front of a pool of threads it may be a queue.
    let pooled = far.setting("mysql://db", "thread_handling", "pool-of-threads");
    assert!(pooled.explains(&DEFINITION).unwrap() > 30.0);
    assert_eq!(pooled.without("tcp_connections_unread").explains(&DEFINITION), None);
}

#[test]
fn it_is_no_suspect_where_no_network_is_known() {
    let is_there = |peer: &str| {
        let labels = [("peer", peer), ("peer_port", "5432")];
        let made = made(45, 0.2, 0.1, 0.0, 0.5).without("server_outgoing_pending_connections");
        let made = made.counted(SERVER, "server_outgoing_pending_connections", &labels, |_| 0.0);
        made.with(crate::resources::database_path::is_there)
    };
    assert!(is_there("10.0.0.5") && !is_there("127.0.0.1"));
}

/// Late answers look alike whether packets are lost, a link is narrow or the way is long.
#[test]
fn it_is_as_likely_as_each_reason_that_could_not_be_judged() {
    let confidence = |made: &SyntheticRecording| {
        let found = made.diagnose().findings.into_iter().find(|finding| finding.cause == DEFINITION.cause);
        found.map_or(0.0, |finding| finding.confidence)
    };
    let alone = made(45, 4.2, 0.1, 0.0, 4.5);
    let sent = |made: SyntheticRecording, direction: &str| {
        let labels = [("device", "eth0"), ("direction", direction)];
        made.counter("host", "system_network_io_bytes_total", &labels, 1e5)
    };
    let seen = sent(sent(alone.clone(), "transmit"), "receive");
    let seen = seen.counted("host", "tcp_retransmitted_segments_total", &[], |_| 0.0);
    assert!(confidence(&alone) < 0.5, "{}", confidence(&alone));
    assert!(confidence(&seen) > 0.6, "{}", confidence(&seen));
}
