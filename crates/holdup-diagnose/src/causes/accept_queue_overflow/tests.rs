//! Queues of known length.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const SERVER: &str = "server:8080";
const PORT: [(&str, &str); 1] = [("port", "8080")];

/// 50 requests a second, of which every second one needs a second to connect; `overflows` a second at a queue of `waiting` of 64.
fn made(waiting: f64, overflows: f64) -> SyntheticRecording {
    SyntheticRecording::new(12)
        .requests(50, 30)
        .half_connect_late()
        .gauge(SERVER, "tcp_accept_queue_length", &PORT, waiting)
        .gauge(SERVER, "tcp_accept_queue_limit", &PORT, 64.0)
        .counter(SERVER, "tcp_listen_overflows_total", &[], overflows)
        .counter("host", "tcp_listen_overflows_total", &[], overflows)
}

#[test]
fn dropped_connections_wait_a_second_for_their_retry() {
    let ms = made(64.0, 25.0).explains(&DEFINITION).unwrap();
    assert!((ms - 505.0).abs() < 30.0, "{ms}");
    let Ok(Outcome::Fails(found, _)) = made(64.0, 25.0).judge(&DEFINITION) else { panic!("not found") };
    assert!(
        found.evidence.iter().any(|e| e.text.contains("1, 3 or 7 seconds for 300 of 300 requests")),
        "{:?}",
        found.evidence
    );
    // A second's worth each, and no more.
    let few = made(64.0, 5.0).explains(&DEFINITION).unwrap();
    assert!((few - 100.0).abs() < 10.0, "{few}");
}

#[test]
fn an_overflow_without_figures_of_workers_is_a_symptom() {
    let role = |made: &SyntheticRecording| match made.judge(&DEFINITION) {
        Ok(Outcome::Fails(found, _)) => found.role,
        _ => panic!("not found"),
    };
    assert_eq!(role(&made(64.0, 25.0)), Role::Symptom);
    assert_eq!(made(64.0, 25.0).diagnose().culprit, None);
    // Workers are free: it is too short for what comes at once.
    let known = made(64.0, 25.0)
        .gauge("puma:app", "puma_max_threads", &[], 5.0)
        .gauge("puma:app", "puma_pool_capacity", &[], 4.0)
        .gauge(SERVER, "server_accepted_connections", &[("pid", "7")], 1.0)
        .gauge(SERVER, "server_answering_connections", &[("pid", "7")], 1.0);
    assert_eq!(role(&known), Role::Root);
}

/// A queue of two that is full, in front of five workers of which all are busy at six of ten instants, and `rest` at the others.
fn short_queue(rest: f64) -> SyntheticRecording {
    let busy = move |second: i64| if second % 10 < 6 { 5.0 } else { rest };
    made(2.0, 25.0)
        .without("tcp_accept_queue_limit")
        .gauge(SERVER, "tcp_accept_queue_limit", &PORT, 2.0)
        .gauge("puma:app", "puma_max_threads", &[], 5.0)
        .counted("puma:app", "puma_pool_capacity", &[], move |second| 5.0 - busy(second))
        .gauge(SERVER, "server_accepted_connections", &[("pid", "7")], 5.0)
        .counted(SERVER, "server_answering_connections", &[("pid", "7")], busy)
}

#[test]
fn a_queue_that_is_too_short_for_workers_that_suffice_is_the_root() {
    let diagnosis = short_queue(0.0).diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{} {:#?}", diagnosis.headline, diagnosis.findings);
    // Nearly always busy, they are what the queue stands for.
    let diagnosis = short_queue(4.0).diagnose();
    let queue = diagnosis.findings.iter().find(|f| f.cause == DEFINITION.cause).unwrap();
    assert_eq!(queue.follows_from, Some(WORKERS), "{:#?}", diagnosis.findings);
}

#[test]
fn an_empty_queue_drops_nothing() {
    assert_eq!(made(0.0, 0.0).explains(&DEFINITION), Some(0.0));
    // Another queue in the same namespace.
    assert_eq!(made(0.0, 0.1).explains(&DEFINITION), Some(0.0));
}

#[test]
fn requests_that_got_no_answer_failed_of_it() {
    let failing = |outcome: &'static str| {
        made(64.0, 40.0).each_request(move |n, r| {
            if n % 2 == 0 {
                r.outcome = outcome.into();
            }
        })
    };
    let share = |made: &SyntheticRecording| match made.judge(&DEFINITION) {
        Ok(Outcome::Fails(_, share)) => share,
        _ => 0.0,
    };
    assert!(share(&failing("timeout")) > 0.95);
    assert_eq!(share(&failing("http_status")), 0.0, "who was answered was let in");
}

#[test]
fn without_a_fact_it_is_not_judged() {
    for metric in ["tcp_accept_queue_length", "tcp_accept_queue_limit", "tcp_listen_overflows_total"] {
        assert_eq!(made(64.0, 25.0).without(metric).explains(&DEFINITION), None, "{metric}");
    }
    for column in ["value", "labels", "metric"] {
        assert_eq!(made(64.0, 25.0).without_column("samples", column).explains(&DEFINITION), None, "{column}");
    }
}
