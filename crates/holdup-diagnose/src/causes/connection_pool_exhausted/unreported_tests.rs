//! Pools that no metric reports.

use crate::cause::Cause;
use crate::causes::connection_pool_exhausted::DEFINITION;
use crate::causes::{Outcome, Role, worker_pool_exhausted};
use crate::testing::{Judged as _, SyntheticRecording};
use holdup_recording::rows::Session;

const SERVER: &str = "server:8080";

/// 50 requests a second of 400 ms, from the sixth of twelve seconds on; 20 are with an app without metrics, whose ten connections to the
/// database await `pending` answers then and `before` before.
fn unreported(before: f64, pending: f64) -> SyntheticRecording {
    let server = SERVER;
    let peer = [("peer_port", "5432"), ("peer", "10.0.0.5")];
    let since = |before: f64, after: f64| move |second: i64| if second < 6 { before } else { after };
    SyntheticRecording::new(12)
        .requests(50, 400)
        .each_request(|_, r| {
            if r.intended_at < 6_000_000_000 {
                r.done_at = r.intended_at + 20_000_000;
            }
        })
        .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
        .counted(server, "server_answering_connections", &[], since(1.0, 20.0))
        .gauge(server, "server_outgoing_connections", &peer, 10.0)
        .counted(server, "server_outgoing_pending_connections", &peer, since(before, pending))
}

#[test]
fn all_connections_in_use_beside_more_requests_are_a_queue_for_them() {
    let Ok(Outcome::Found(held)) = unreported(0.5, 10.0).judge(&DEFINITION) else { panic!("not found") };
    assert!((held.explains_ms - 200.0).abs() < 15.0, "{}", held.explains_ms);
    assert_eq!(held.role, Role::Symptom, "each is held twenty times as long");
    let Ok(Outcome::Found(few)) = unreported(10.0, 10.0).judge(&DEFINITION) else { panic!("not found") };
    assert_eq!(few.role, Role::Root, "each is held as long as before");
    // One may be held without awaiting an answer: that is not seen.
    assert_eq!(unreported(0.5, 4.0).explains(&DEFINITION), None);
    assert_eq!(unreported(0.5, 10.0).without("server_outgoing_connections").explains(&DEFINITION), None);
}

/// The same, of an app that nothing watches: `states` of the sessions of one user from one machine, since
/// the sixth second and before, and one of another user that is idle.
fn by_sessions(before: &[&'static str], since: &[&'static str]) -> SyntheticRecording {
    let row = |second: i64, id: usize, user: &str, state: &str| Session {
        observed_at: second * 1_000_000_000,
        source: "postgresql://db:5432".into(),
        session_id: i64::try_from(id).unwrap(),
        user: Some(user.into()),
        client: Some(format!("10.0.0.7:{}", 50_000 + id).into()),
        database: Some("shop".into()),
        command: "active".into(),
        true_state: state.into(),
        ..Session::default()
    };
    let of = |second: i64| {
        let states = if second < 6 { before } else { since };
        let own = states.iter().enumerate().map(move |(id, state)| row(second, id, "shop", state));
        own.chain([row(second, 99, "report", "idle")]).collect::<Vec<_>>()
    };
    slow_later().session_rows((0..=12).flat_map(of).collect())
}

fn slow_later() -> SyntheticRecording {
    SyntheticRecording::new(12).requests(50, 400).each_request(|_, r| {
        if r.intended_at < 6_000_000_000 {
            r.done_at = r.intended_at + 20_000_000;
        }
    })
}

const BUSY: &str = "executing";
const KEPT: &str = "idle_in_transaction";
const IDLE: &str = "idle";

#[test]
fn sessions_at_one_number_behind_more_requests_are_a_pool_at_its_cap() {
    let made = by_sessions(&[BUSY, IDLE, IDLE, IDLE, IDLE], &[BUSY; 5]);
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    // 15 of 20 wait, at 50 a second; in the baseline window none did.
    assert!((found.explains_ms - 280.0).abs() < 25.0, "{}", found.explains_ms);
    assert_eq!(found.role, Role::Symptom, "each is held five times as long");
    let said = |what: &str| found.evidence.iter().any(|e| e.text.contains(what));
    assert!(said("all 5 sessions of shop from 10.0.0.7 were busy"), "{:?}", found.evidence);
    assert!(said("ms, by Little's law: 5 carry at most 47 requests/s"), "{:?}", found.evidence);
    assert!(found.fixes.iter().any(|fix| fix.text.contains("pool_size + max_overflow")), "{:?}", found.fixes);
    // They were as busy before, and now there are more requests.
    let few = by_sessions(&[BUSY; 5], &[BUSY; 5]).diagnose();
    assert_eq!(few.culprit, Some(DEFINITION.cause), "{}", few.headline);
}

#[test]
fn sessions_with_a_free_one_show_a_pool_below_its_cap() {
    assert_eq!(by_sessions(&[BUSY; 5], &[BUSY, BUSY, BUSY, IDLE, IDLE]).explains(&DEFINITION), None, "two are free");
    assert_eq!(by_sessions(&[BUSY; 18], &[BUSY; 18]).explains(&DEFINITION), None, "as many as requests");
    // Their number moves with what is asked.
    let grows = by_sessions(&[BUSY], &[BUSY; 5]).tables(|t| {
        t.sessions.rows.retain(|row| row.session_id == 99 || row.session_id < 2 + row.observed_at / 1_000_000_000 % 4);
    });
    assert_eq!(grows.explains(&DEFINITION), None);
    // A load that asks the database itself has connections of its own.
    assert_eq!(by_sessions(&[BUSY; 5], &[BUSY; 5]).by_protocol("postgres").explains(&DEFINITION), None);
}

#[test]
fn a_transaction_that_is_kept_open_holds_the_connection() {
    let kept = by_sessions(&[BUSY, IDLE, IDLE, IDLE, IDLE], &[KEPT, KEPT, KEPT, KEPT, BUSY]);
    let Ok(Outcome::Found(found)) = kept.judge(&DEFINITION) else { panic!("not found") };
    assert_eq!(found.role, Role::Root, "the app keeps it");
    assert!(found.fixes[0].text.contains("while no statement runs"), "{:?}", found.fixes);
}

/// All ten connections of an app of one process await an answer, as before, and it has `threads` beside
/// the main one.
fn threaded(name: &str, threads: f64) -> SyntheticRecording {
    let labels = [("pid", "7"), ("role", "worker"), ("state", "S")];
    unreported(10.0, 10.0)
        .without("server_answering_connections")
        .counted(SERVER, "server_answering_connections", &[], |second| if second < 6 { 10.0 } else { 20.0 })
        .setting(SERVER, "server.name", name)
        .gauge(SERVER, "server_threads", &labels, threads + 1.0)
}

#[test]
fn a_request_that_waits_for_a_connection_holds_a_thread() {
    let queued = |made: &SyntheticRecording| made.explains(&DEFINITION);
    // Each thread has its connection: requests wait for a thread.
    let workers = threaded("gunicorn", 10.0);
    assert_eq!(queued(&workers), None);
    let ms = workers.explains(&worker_pool_exhausted::DEFINITION).unwrap();
    assert!((ms - 200.0).abs() < 15.0, "{ms}");
    let diagnosis = workers.diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::WorkerPoolExhausted), "{} {:#?}", diagnosis.headline, diagnosis.findings);
    // Five of the fifteen wait for a connection, and the other five requests for one of those.
    let few = queued(&threaded("gunicorn", 15.0)).unwrap();
    assert!((few - 100.0).abs() < 10.0, "{few}");
    let many = threaded("gunicorn", 40.0);
    assert!((queued(&many).unwrap() - 200.0).abs() < 15.0);
    assert!(many.explains(&worker_pool_exhausted::DEFINITION).is_none_or(|ms| ms <= 0.0));
    assert_eq!(many.diagnose().culprit, Some(DEFINITION.cause));
    // One thread that awaits ten answers has fibres.
    let fibres = threaded("ruby", 1.0);
    assert!(queued(&fibres).is_some_and(|ms| ms > 180.0));
    assert!(fibres.explains(&worker_pool_exhausted::DEFINITION).is_none_or(|ms| ms <= 0.0));
    // Threads of an event loop have no requests.
    assert!(queued(&threaded("node", 10.0)).is_some_and(|ms| ms > 180.0));
}

#[test]
fn sessions_of_a_pool_between_bind_the_connections_of_the_app() {
    let peer = [("peer_port", "6432"), ("peer", "10.0.0.5")];
    let since = |before: f64, after: f64| move |second: i64| if second < 6 { before } else { after };
    let made = |open: f64| {
        by_sessions(&[BUSY; 5], &[BUSY; 5])
            .gauge(SERVER, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .counted(SERVER, "server_answering_connections", &[], since(1.0, 20.0))
            .gauge(SERVER, "server_outgoing_connections", &peer, open)
            .counted(SERVER, "server_outgoing_pending_connections", &peer, since(1.0, 20.0))
            .gauge("postgresql://db:5432", "postgresql_sessions", &[("true_state", "idle")], 1.0)
    };
    let Ok(Outcome::Found(found)) = made(40.0).judge(&DEFINITION) else { panic!("not found") };
    assert!((found.explains_ms - 300.0).abs() < 25.0, "{}", found.explains_ms);
    assert!(found.fixes.iter().any(|fix| fix.text.contains("default_pool_size")), "{:?}", found.fixes);
    // Its own console says more.
    let told = made(40.0).gauge("pgbouncer:db", "pgbouncer_waiting_clients", &[], 0.0);
    assert_eq!(told.explains(&DEFINITION), None);
}

#[test]
fn connections_to_another_service_are_a_pool_if_they_stand_at_one_number() {
    let peer = [("peer_port", "9300"), ("peer", "10.0.0.6")];
    let made = |open: fn(i64) -> f64| {
        slow_later()
            .gauge(SERVER, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .counted(SERVER, "server_answering_connections", &[], |second| if second < 6 { 1.0 } else { 20.0 })
            .counted(SERVER, "server_outgoing_connections", &peer, open)
            .counted(SERVER, "server_outgoing_pending_connections", &peer, open)
    };
    let Ok(Outcome::Found(found)) = made(|_| 4.0).judge(&DEFINITION) else { panic!("not found") };
    assert!((found.explains_ms - 320.0).abs() < 25.0, "{}", found.explains_ms);
    assert!(found.evidence[0].text.contains("connections to 10.0.0.6:9300"), "{:?}", found.evidence);
    assert_eq!(made(|second| 2.0 + (second % 3) as f64).explains(&DEFINITION), None, "it opens what it needs");
}
