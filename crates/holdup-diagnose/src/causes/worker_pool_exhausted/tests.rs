//! A server of ten workers whose every figure is known.

use super::*;
use crate::cause::Cause;
use crate::testing::{Judged as _, SyntheticRecording};

pub(super) const SERVER: &str = "server:8080";
const PUMA: &str = "puma:127.0.0.1:9293";
const PORT: [(&str, &str); 1] = [("port", "8080")];

/// What a made server is like. 100 requests a second, each of 500 ms in the degraded second half and 50 ms in the first.
#[derive(Clone, Copy)]
struct Server {
    busy: f64,
    waiting: f64,
    answering: f64,
    /// Answers that are awaited, of a neighbour and of the database.
    pending: (f64, f64),
    /// Of the neighbour in the baseline window, for two thirds of the time for which a worker is held then.
    baseline_pending: f64,
    /// CPUs that its processes use.
    cpus: f64,
}

/// Busy workers, 45 connections in front of them, and a neighbour that takes as long as ever.
const EXHAUSTED: Server =
    Server { busy: 10.0, waiting: 45.0, answering: 10.0, pending: (6.0, 2.0), baseline_pending: 6.0, cpus: 0.8 };

const SECONDS: i64 = 24;
const SLOW_FROM: i64 = 12;

fn server(of: Server) -> SyntheticRecording {
    let then = move |baseline: f64, slow: f64| move |second: i64| if second < SLOW_FROM { baseline } else { slow };
    let peer = |port: &'static str| [("peer_port", port), ("peer", "10.0.0.5")];
    let worker = [("pid", "7"), ("role", "worker")];
    SyntheticRecording::new(SECONDS)
        .requests(100, 500)
        .each_request(|n, r| {
            if n < SLOW_FROM * 100 {
                r.done_at = r.intended_at + 30_000_000;
            }
        })
        .target("http://127.0.0.1:8080/orders")
        .counted(PUMA, "puma_pool_capacity", &[("worker", "0")], then(7.0, 10.0 - of.busy))
        .gauge(PUMA, "puma_max_threads", &[("worker", "0")], 10.0)
        .gauge(PUMA, "puma_running", &[("worker", "0")], 10.0)
        .gauge(PUMA, "puma_backlog", &[("worker", "0")], 0.0)
        .counter(PUMA, "puma_requests_total", &[("worker", "0")], 100.0)
        .counted(SERVER, "tcp_accept_queue_length", &PORT, then(0.0, of.waiting))
        .gauge(SERVER, "tcp_accept_queue_limit", &PORT, 64.0)
        .gauge(SERVER, "tcp_listen_overflows_total", &[], 7.0)
        .counted(SERVER, "server_answering_connections", &worker, then(1.5 * of.baseline_pending, of.answering))
        .counted(SERVER, "server_accepted_connections", &worker, then(1.5 * of.baseline_pending, of.answering))
        .gauge(SERVER, "server_memory_usage_bytes", &worker, 100e6)
        .gauge(SERVER, "server_threads", &[("pid", "7"), ("state", "S")], 12.0)
        .counter(SERVER, "server_thread_cpu_time_seconds_total", &[("pid", "7"), ("cpu_mode", "user")], of.cpus)
        .counted(SERVER, "server_outgoing_pending_connections", &peer("9300"), then(of.baseline_pending, of.pending.0))
        .counted(SERVER, "server_outgoing_pending_connections", &peer("5432"), then(of.pending.1, of.pending.1))
        .gauge(SERVER, "server_outgoing_connections", &peer("9300"), 10.0)
        .setting("postgresql://db", "max_connections", "100")
}

#[test]
fn busy_workers_with_a_queue_in_front_of_them_are_the_cause() {
    let made = server(EXHAUSTED);
    let ms = made.explains(&DEFINITION).unwrap();
    // 45 at 100 a second.
    assert!((ms - 450.0).abs() < 20.0, "{ms}");
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{diagnosis:#?}");
    let finding = &diagnosis.findings[0];
    let said = |what: &str| finding.evidence.iter().any(|e| e.text.contains(what));
    for what in [
        "all 10 workers of Puma were busy",
        "45.0 connections on average waited in the accept queue of port 8080",
        "the queue is in the kernel",
        "a request holds a worker for 100 ms: 60.0 ms (60 %) for downstream services, most for 10.0.0.5:9300, 20.0 ms (20 %) for the database",
        "8.00 ms (8 %) on a CPU; 10 of them therefore carry at most 100 requests/s",
        "they would carry at most 125/s, by their own time and the 1.0 CPUs they can use",
    ] {
        assert!(said(what), "{what}: {:#?}", finding.evidence);
    }
    let fix = &finding.fixes[0];
    assert!(
        fix.text.starts_with("Raise the workers from 10 to 15: 100 requests/s that each hold one for 100 ms"),
        "{}",
        fix.text
    );
    assert!(fix.text.contains("takes 15 of the 100 that the database allows"), "{}", fix.text);
    assert!(fix.command.as_deref().is_some_and(|c| c.starts_with("threads 15, 15")), "{fix:?}");
    assert!(finding.fixes[1].text.contains("fibres"), "{:?}", finding.fixes);
}

#[test]
fn more_workers_than_connections_meet_the_pool_next() {
    let advice = |made: SyntheticRecording| made.diagnose().findings[0].fixes[0].text.clone();
    let database = [("peer_port", "5432"), ("peer", "10.0.0.5")];
    let open = |n| server(EXHAUSTED).gauge(SERVER, "server_outgoing_connections", &database, n);
    let pooled = |n| server(EXHAUSTED).gauge("prometheus:app", "db_client_connection_max", &[], n);
    let bound = "15 workers need 15 connections to the database; ";
    for (made, has) in [(open(10.0), "no more than 10 were ever open"), (pooled(10.0), "the pool has 10")] {
        let advice = advice(made);
        assert!(advice.contains(&format!("{bound}{has}: that limit binds next")), "{advice}");
    }
    for made in [open(20.0), pooled(20.0), pooled(20.0).gauge(SERVER, "server_outgoing_connections", &database, 10.0)] {
        let advice = advice(made);
        assert!(!advice.contains("binds next"), "{advice}");
    }
}

#[test]
fn free_workers_or_no_queue_clear_it() {
    assert_eq!(
        server(Server { busy: 4.0, waiting: 0.0, answering: 4.0, ..EXHAUSTED }).explains(&DEFINITION),
        Some(0.0)
    );
    // All busy, and nobody waits for one.
    assert_eq!(server(Server { waiting: 0.0, ..EXHAUSTED }).explains(&DEFINITION), Some(0.0));
}

#[test]
fn from_outside_alone_it_shows_as_well() {
    let outside = server(EXHAUSTED).without("puma_pool_capacity");
    let ms = outside.explains(&DEFINITION).unwrap();
    assert!((ms - 450.0).abs() < 20.0, "{ms}");
    let puma = server(EXHAUSTED).without("tcp_accept_queue_length");
    // Its own backlog stays 0: what waits is not known.
    assert_eq!(puma.explains(&DEFINITION), None);
    let blind = outside.without("server_answering_connections");
    assert_eq!(blind.explains(&DEFINITION), None);
}

#[test]
fn a_queue_inside_is_told_by_what_the_server_has_in_hand() {
    // Connections are kept open: they are accepted, and wait for a thread in Puma's own list.
    let inside = server(Server { waiting: 0.0, answering: 55.0, ..EXHAUSTED });
    let ms = inside.explains(&DEFINITION).unwrap();
    assert!((ms - 450.0).abs() < 20.0, "{ms}");
}

#[test]
fn fibres_are_not_judged_without_the_measurement_that_would_split_them() {
    let fibres = |pending: f64| {
        server(Server { waiting: 0.0, answering: 50.0, pending: (pending, 2.0), ..EXHAUSTED })
            .without("puma_pool_capacity")
            .without("puma_max_threads")
    };
    let Err(missing) = fibres(6.0).judge(&DEFINITION) else { panic!("judged") };
    assert!(
        missing.what.contains("the server: it held each for 5") && missing.enable.contains("resource pool"),
        "{missing:?}"
    );
    // Where they all wait for the neighbour, nothing is left that could be a queue.
    assert_eq!(fibres(47.5).explains(&DEFINITION), Some(0.0));
    // The app's own time of them says that they wait before it takes them up, or that they do not.
    let timed = |seconds: f64| {
        let of = |end: &str| format!("http_server_request_duration_seconds_{end}");
        fibres(6.0).counter("prometheus:app", &of("count"), &[], 100.0).counter(
            "prometheus:app",
            &of("sum"),
            &[],
            100.0 * seconds,
        )
    };
    let ms = timed(0.1).explains(&DEFINITION).unwrap();
    assert!((ms - 400.0).abs() < 20.0, "{ms}");
    assert_eq!(timed(0.495).explains(&DEFINITION), Some(0.0));
    // Without a load of holdup's, the requests that the server has say the same.
    let watched = |seconds: f64| timed(seconds).tables(|t| t.requests.rows.clear());
    let ms = watched(0.1).explains(&DEFINITION).unwrap();
    // A sample a second: the first one of the episode is still as before.
    assert!((ms - 400.0).abs() < 50.0, "{ms}");
    assert_eq!(watched(0.495).explains(&DEFINITION), Some(0.0));
}

#[test]
fn a_slow_neighbour_holds_workers_and_is_the_root() {
    // It takes 85 ms instead of 20.
    let slow = server(Server { pending: (8.5, 0.5), baseline_pending: 2.0, ..EXHAUSTED });
    let diagnosis = slow.diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::DownstreamSlow), "{:#?}", diagnosis.findings);
    let pool = diagnosis.findings.iter().find(|f| f.cause == DEFINITION.cause).unwrap();
    assert_eq!(pool.follows_from, Some(Cause::DownstreamSlow));
}

#[test]
fn a_quota_that_stops_workers_is_the_root() {
    let throttled = |share: f64| {
        server(Server { pending: (3.0, 0.5), baseline_pending: 2.0, cpus: 0.15, ..EXHAUSTED })
            .setting(SERVER, "cgroup.cpu_quota_us_per_period_us", "20000 100000")
            .counter(SERVER, "cgroup_cpu_periods_total", &[], 10.0)
            .counter(SERVER, "cgroup_cpu_throttled_periods_total", &[], 10.0 * share)
            .counter(SERVER, "cgroup_cpu_throttled_time_seconds_total", &[], 0.7 * share)
            // Most of the quota, and by itself no queue without end.
            .counter(SERVER, "cgroup_cpu_usage_seconds_total", &[], 0.15)
            .counter(SERVER, "server_run_queue_wait_seconds_total", &[("pid", "7")], 0.5)
    };
    let diagnosis = throttled(0.95).diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::CpuThrottled), "{:#?}", diagnosis.findings);
    let pool = diagnosis.findings.iter().find(|f| f.cause == DEFINITION.cause).unwrap();
    assert_eq!(pool.follows_from, Some(Cause::CpuThrottled));
    // A period now and then stops nobody for long: why they are held for three times as long nobody saw.
    let unseen = throttled(0.05).diagnose();
    assert_eq!(unseen.culprit, None);
    let pool = unseen.findings.iter().find(|f| f.cause == DEFINITION.cause).unwrap();
    assert_eq!((pool.role, pool.follows_from), (Role::Symptom, None));
    assert!(
        pool.evidence.iter().any(|e| e.text.contains("in the baseline window a request held a worker for 30.0 ms")),
        "{pool:?}"
    );
}

#[test]
fn requests_that_got_no_answer_failed_of_it() {
    let failing = server(EXHAUSTED).each_request(|n, r| {
        if n >= SLOW_FROM * 100 && n % 2 == 0 {
            r.outcome = "timeout".into();
        }
    });
    let Ok(Outcome::Fails(_, share)) = failing.judge(&DEFINITION) else { panic!("not found") };
    assert!(share > 0.9, "{share}");
}

#[test]
fn without_a_fact_it_is_not_judged() {
    for column in ["value", "metric", "labels", "source"] {
        assert_eq!(server(EXHAUSTED).without_column("samples", column).explains(&DEFINITION), None, "{column}");
    }
    assert_eq!(SyntheticRecording::new(10).requests(100, 500).explains(&DEFINITION), None);
}

const HAPROXY: &str = "haproxy:/run/h.sock";

/// 50 requests a second of 400 ms. Two servers of two slots each have all of them taken, and so many wait at the proxy.
fn proxied(queued: f64) -> SyntheticRecording {
    let server = |name: &'static str| [("backend", "app"), ("server", name)];
    let backend = [("backend", "app")];
    ["one", "two"]
        .into_iter()
        .fold(SyntheticRecording::new(SECONDS), |made, name| {
            made.gauge(HAPROXY, "haproxy_slots", &server(name), 2.0).gauge(
                HAPROXY,
                "haproxy_slots_used",
                &server(name),
                if queued > 0.0 { 2.0 } else { 1.0 },
            )
        })
        .requests(50, 400)
        .target("http://127.0.0.1:80/orders")
        .gauge(HAPROXY, "haproxy_queued_requests", &backend, queued)
        .gauge(HAPROXY, "haproxy_queue_time_seconds", &backend, 0.32)
        .counter(HAPROXY, "haproxy_requests_total", &backend, 50.0)
}

fn puma(made: SyntheticRecording, spare: f64) -> SyntheticRecording {
    made.gauge(PUMA, "puma_max_threads", &[], 8.0).gauge(PUMA, "puma_pool_capacity", &[], spare)
}

#[test]
fn a_queue_at_the_proxy_is_a_wait_for_its_slots() {
    let made = proxied(16.0);
    let Ok(Outcome::Fails(found, _)) = made.judge(&DEFINITION) else { panic!("not found") };
    // 16 at 50 a second.
    assert!((found.explains_ms - 320.0).abs() < 20.0, "{}", found.explains_ms);
    let said = |what: &str| found.evidence.iter().any(|e| e.text.contains(what));
    for what in [
        "all 4 slots of HAProxy's backend app were busy at 100 % of the instants",
        "16.0 requests on average waited in HAProxy for one of the 4 slots of backend app: at 50 requests/s that is 320 ms per request, by Little's law (320 ms by HAProxy's mean of its last requests)",
    ] {
        assert!(said(what), "{what}: {:#?}", found.evidence);
    }
    assert!(found.evidence.iter().all(|piece| piece.resolves(made.recording())), "{:#?}", found.evidence);
    // Without the app's workers nothing says that more slots would help.
    assert!(
        found.fixes[0].command.is_none() && found.fixes[0].text.contains("whether the app behind has free workers")
    );
    assert!(found.fixes.iter().any(|fix| fix.text.contains("timeout queue")), "{:#?}", found.fixes);
    assert_eq!(made.diagnose().culprit, Some(DEFINITION.cause));
    assert_eq!(proxied(0.0).explains(&DEFINITION), Some(0.0));
}

#[test]
fn slots_are_raised_up_to_the_free_workers_behind_them() {
    let fix = |spare: f64| {
        let Ok(Outcome::Fails(mut found, _)) = puma(proxied(16.0), spare).judge(&DEFINITION) else {
            panic!("not found")
        };
        found.fixes.swap_remove(0)
    };
    // 4 are held at 50 a second, so each for 80 ms; with room for bursts six.
    let free = fix(4.0);
    assert!(free.text.starts_with("Raise the slots of backend app from 4 to 6"), "{}", free.text);
    assert!(free.command.is_some_and(|command| command.starts_with("maxconn 3 on each of the 2 server lines")));
    let busy = fix(0.0);
    assert!(busy.text.starts_with("Add workers to the app first: 8.0 of 8 workers of Puma"), "{}", busy.text);
    assert_eq!(busy.command, None);
}

/// holdup only watches: from the eighth second on, twice as many requests come as four slots carry without a queue.
#[test]
fn a_proxy_alone_tells_of_its_queue() {
    let then = |slow: f64| move |second: i64| if second < 8 { 0.0 } else { slow };
    let server = [("backend", "app"), ("server", "one")];
    let made = SyntheticRecording::new(SECONDS)
        .gauge(HAPROXY, "haproxy_slots", &server, 4.0)
        .counted(HAPROXY, "haproxy_slots_used", &server, |second| if second < 8 { 2.0 } else { 4.0 })
        .counted(HAPROXY, "haproxy_server_sessions", &server, |second| if second < 8 { 2.0 } else { 4.0 })
        .counted(HAPROXY, "haproxy_queued_requests", &[("backend", "app")], then(40.0))
        .counted(HAPROXY, "haproxy_requests_total", &[("backend", "app")], |second| {
            (25 * second + 25 * (second - 8).max(0)) as f64
        });
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{diagnosis:#?}");
    let ms = made.explains(&DEFINITION).unwrap();
    // 40 at 50 a second, in all but the interval of the change.
    assert!((ms - 800.0).abs() < 60.0, "{ms}");
}

/// gunicorn with two threads that sleep for `sleep_ms` in their handler, 40 requests a second, and 60
/// requests with it in the second half.
fn sleepy(program: &str, sleep_ms: i64) -> SyntheticRecording {
    let then = move |baseline: f64, slow: f64| move |second: i64| if second < SLOW_FROM { baseline } else { slow };
    let worker = |pid: &'static str| [("pid", pid), ("role", "worker")];
    let threads = |pid: &'static str| [("pid", pid), ("role", "worker"), ("state", "S")];
    SyntheticRecording::new(SECONDS)
        .requests(40, 1_500)
        .each_request(move |n, r| {
            if n < SLOW_FROM * 40 {
                r.done_at = r.intended_at + sleep_ms * 1_000_000;
            }
        })
        .target("http://127.0.0.1:8080/orders")
        .setting(SERVER, "server.name", program)
        .gauge(SERVER, "tcp_accept_queue_length", &PORT, 0.0)
        .counted(SERVER, "server_answering_connections", &worker("7"), then(1.0, 30.0))
        .counted(SERVER, "server_answering_connections", &worker("8"), then(1.0, 30.0))
        .gauge(SERVER, "server_threads", &threads("7"), 2.0)
        .gauge(SERVER, "server_threads", &threads("8"), 2.0)
}

#[test]
fn threads_that_sleep_in_their_handler_are_busy_by_the_quickest_request() {
    // Two threads carry 40/s of 45 ms each.
    let made = sleepy("gunicorn", 45);
    assert!(made.explains(&DEFINITION).is_some_and(|ms| ms > 1_000.0), "{:?}", made.explains(&DEFINITION));
    let Ok(Outcome::Found(found) | Outcome::Fails(found, _)) = made.judge(&DEFINITION) else { panic!("not found") };
    let said = "2 threads of the server on port 8080 take requests: 35/s of 45.0 ms each";
    assert!(found.evidence.iter().any(|piece| piece.text.contains(said)), "{:#?}", found.evidence);
}

#[test]
fn requests_that_are_not_bound_to_threads_do_not_wait_for_them() {
    // Forty at a time even when nothing waits: an event loop. And hardly any: threads are free.
    for sleep_ms in [1_000, 5] {
        let judged = sleepy("gunicorn", sleep_ms).explains(&DEFINITION);
        assert!(judged.is_none_or(|ms| ms == 0.0), "{sleep_ms}: {judged:?}");
    }
    let node = sleepy("node", 45).explains(&DEFINITION);
    assert!(node.is_none_or(|ms| ms == 0.0), "{node:?}");
}

#[test]
fn requests_wait_for_threads_that_the_server_names_so_and_starts_no_more_of() {
    let named =
        |count: fn(i64) -> f64| sleepy("java", 45).counted(SERVER, "server_worker_threads", &[("pid", "7")], count);
    let made = named(|_| 4.0);
    let Ok(Outcome::Found(found) | Outcome::Fails(found, _)) = made.judge(&DEFINITION) else { panic!("not found") };
    let said = "the server on port 8080 has 4 threads for requests, by their names";
    assert!(found.evidence.iter().any(|piece| piece.text.contains(said)), "{:#?}", found.evidence);
    // It starts more, or has enough, or has always had as many streams open.
    for other in [
        named(|second| 2.0 * second as f64),
        named(|_| 50.0),
        named(|_| 4.0).without("server_answering_connections").gauge(
            SERVER,
            "server_answering_connections",
            &[("pid", "7")],
            60.0,
        ),
    ] {
        let judged = other.explains(&DEFINITION);
        assert!(judged.is_none_or(|ms| ms == 0.0), "{judged:?}");
    }
}
