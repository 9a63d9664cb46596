//! Queues behind the generator's connections, of known length.

use super::DEFINITION;
use crate::cause::Cause;
use crate::causes::Outcome;
use crate::testing::{Judged as _, SyntheticRecording};

const SLOW_FROM: i64 = 12;
const APP: &str = "prometheus:http://app";

/// Connections without which 50 requests a second of 20 ms have to wait, and with which they do not.
const FEW: u32 = 1;
const MANY: u32 = 8;

/// 50 requests a second that the service answers in 20 ms, from the twelfth second on in `service_ms`, when each waits 2 s for a
/// connection first.
fn queued(connections: u32, service_ms: i64) -> SyntheticRecording {
    queued_by(connections, service_ms, |_| 2_000)
}

fn queued_by(connections: u32, service_ms: i64, queue_ms: fn(i64) -> i64) -> SyntheticRecording {
    SyntheticRecording::new(24).requests(50, 400).connections(connections).each_request(move |n, r| {
        let (queue, service) = if n / 50 < SLOW_FROM { (0, 20) } else { (queue_ms(n), service_ms) };
        (r.ready_at, r.sent_at) = (Some(r.intended_at + queue * 1_000_000), Some(r.intended_at + queue * 1_000_000));
        r.done_at = r.intended_at + (queue + service) * 1_000_000;
    })
}

/// The same with busy CPUs, for one of which each request waits `ms` longer.
fn short_of_cpus(made: SyntheticRecording, ms: f64) -> SyntheticRecording {
    let cpu = |mode| [("cpu_mode", mode)];
    made.counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.6)
        .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.4)
        .counted("pid:7", "process_run_queue_seconds_total", &[], move |second| {
            0.05 * ms * (second - SLOW_FROM).max(0) as f64
        })
}

#[test]
fn nearly_all_of_the_time_behind_its_connections_is_its_limit() {
    let diagnosis = queued(FEW, 80).diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{} {:#?}", diagnosis.headline, diagnosis.findings);
    let text = &diagnosis.findings[0].evidence[0].text;
    assert!(text.contains("connections while the service took 80.0 ms, and nothing in it shows a delay"), "{text}");
    // Most found a free one: a burst that waits for what the service holds.
    let burst = queued_by(FEW, 80, |n| if n % 10 == 0 { 20_000 } else { 0 });
    assert_eq!(burst.explains(&DEFINITION), Some(0.0));
}

#[test]
fn connections_that_a_service_without_load_would_leave_free_are_held_by_the_service() {
    assert_eq!(queued(MANY, 80).explains(&DEFINITION), Some(0.0));
    assert_eq!(queued(MANY, 80).diagnose().culprit, None);
}

#[test]
fn a_cause_within_the_service_suffices_beside_the_queue_for_a_connection() {
    // 60 ms of the 60 that it takes longer, and of the 2,060 that requests do.
    let diagnosis = short_of_cpus(queued(MANY, 80), 60.0).diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::CpuSaturated), "{} {:#?}", diagnosis.headline, diagnosis.findings);
    assert!(!diagnosis.findings.iter().any(|f| f.cause == DEFINITION.cause), "{:#?}", diagnosis.findings);
    // A tenth of that is too little of both.
    let diagnosis = short_of_cpus(queued(FEW, 80), 4.0).diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{} {:#?}", diagnosis.headline, diagnosis.findings);
    // The service is as fast as ever: 60 ms that CPUs of another are short of delay no request.
    let ms = short_of_cpus(queued(MANY, 20), 60.0).explains(&crate::causes::cpu_saturated::DEFINITION);
    assert_eq!(ms, Some(0.0));
}

#[test]
fn a_service_whose_own_account_holds_the_time_is_what_connections_wait_for() {
    // From the first second on each takes 50 ms, `waited` of them for a pooled connection, and waits 100 for one of the generator's.
    let made = |waited: f64| {
        SyntheticRecording::new(12)
            .requests(50, 150)
            .p99_below(100.0)
            .connections(8)
            .each_request(|_, r| {
                (r.ready_at, r.sent_at) = (Some(r.intended_at + 100_000_000), Some(r.intended_at + 100_000_000));
            })
            .gauge(APP, "hikaricp_connections_active", &[], 10.0)
            .gauge(APP, "hikaricp_connections_max", &[], 10.0)
            .gauge(APP, "hikaricp_connections_pending", &[], 0.05 * waited)
            .counter(APP, "hikaricp_connections_acquire_seconds_sum", &[], 0.05 * waited)
            .counter(APP, "hikaricp_connections_acquire_seconds_count", &[], 50.0)
            .counter(APP, "hikaricp_connections_usage_seconds_sum", &[], 0.5)
            .counter(APP, "hikaricp_connections_usage_seconds_count", &[], 50.0)
    };
    let Ok(Outcome::Cleared(evidence)) = made(40.0).judge(&DEFINITION) else { panic!("not cleared") };
    assert!(evidence[0].text.contains("of which connection_pool_exhausted accounts for 40"), "{:?}", evidence[0].text);
    // A small part of what the service takes is not why connections run out.
    assert!(made(16.0).explains(&DEFINITION).is_some_and(|ms| ms > 90.0));
}
