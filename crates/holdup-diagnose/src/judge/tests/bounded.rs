//! Drawn recordings in which events of every countable kind stand beside a delay that they may or may not
//! explain: no cause accounts for more than its events can cost.

use std::collections::BTreeMap;

use super::property::Random;
use crate::causes::{self, Cause, Outcome};
use crate::testing::{Judged as _, SyntheticRecording};

/// Cases in an ordinary pass.
const CASES: usize = 240;

/// Seconds of a recording, and from which on it is slow.
const SECONDS: i64 = 24;
const SLOW_FROM: i64 = 12;

const APP: &str = "prometheus:http://app";
const MYSQL: &str = "mysql://db";
const SERVER: &str = "server:8080";

/// 50 requests a second of 10 ms, and of up to 0.8 s later.
fn slowed(random: &mut Random) -> SyntheticRecording {
    let slow_ms = random.scaled(60.0, 800.0) as i64;
    SyntheticRecording::new(SECONDS).requests(50, slow_ms).each_request(|n, r| {
        if n < SLOW_FROM * 50 {
            r.done_at = r.intended_at + 10_000_000;
        }
    })
}

/// A counter that grows by `each` a second while requests are slow.
fn late(each: f64) -> impl Fn(i64) -> f64 {
    move |second| each * (second - SLOW_FROM).max(0) as f64
}

/// Connections that come in a storm, or with each request; the app's pool may time how it opens them.
fn connections(random: &mut Random) -> SyntheticRecording {
    let (rate, each_s) = (random.scaled(2.0, 200.0), random.scaled(0.000_5, 0.04));
    let made = slowed(random).counted(MYSQL, "mysql_global_status_connections", &[], late(rate)).counted(
        MYSQL,
        "mysql_global_status_threads_connected",
        &[],
        late(rate),
    );
    if random.one_in(2) {
        return made;
    }
    made.counter(APP, "db_client_connection_create_time_seconds_count", &[], 5.0).counter(
        APP,
        "db_client_connection_create_time_seconds_sum",
        &[],
        5.0 * each_s,
    )
}

fn stops(random: &mut Random) -> SyntheticRecording {
    let (during, length) = (random.scaled(0.001, 0.6), random.scaled(0.01, 2.0));
    let paused = slowed(random).counted(APP, "jvm_gc_pause_seconds_sum", &[], late(during)).counted(
        APP,
        "jvm_gc_pause_seconds_count",
        &[],
        move |s| late(during)(s) / length,
    );
    let every = 2 + random.below(12) as i64;
    let stopped = move |s: i64| if s >= SLOW_FROM && s % every == 0 { 8.0 } else { 0.0 };
    paused.counted("pid:7", "process_threads", &[("state", "T")], stopped).counted(
        "pid:7",
        "process_threads",
        &[("state", "S")],
        move |s| 8.0 - stopped(s),
    )
}

fn throttled(random: &mut Random) -> SyntheticRecording {
    let (held, used) = (random.scaled(0.001, 0.9), random.scaled(0.05, 0.2));
    slowed(random)
        .setting("pid:7", "cgroup.cpu_quota_us_per_period_us", "20000 100000")
        .counter("pid:7", "cgroup_cpu_periods_total", &[], 10.0)
        .counted("pid:7", "cgroup_cpu_throttled_periods_total", &[], late(10.0 * held))
        .counted("pid:7", "cgroup_cpu_throttled_time_seconds_total", &[], late(held))
        .counter("pid:7", "cgroup_cpu_usage_seconds_total", &[], used)
}

fn tables(random: &mut Random) -> SyntheticRecording {
    slowed(random)
        .counter(MYSQL, "mysql_global_status_questions", &[], 50.0)
        .counter(MYSQL, "mysql_global_status_opened_tables", &[], random.scaled(3.0, 1_000.0))
        .gauge(MYSQL, "mysql_global_status_open_tables", &[], 100.0)
        .setting(MYSQL, "table_open_cache", "100")
        .sessions(1 + random.below(30) as i64, "Opening tables")
}

fn dropped(random: &mut Random) -> SyntheticRecording {
    let port = [("port", "8080")];
    SyntheticRecording::new(SECONDS)
        .requests(50, 30)
        .half_connect_late()
        .target("http://127.0.0.1:8080/")
        .counter(SERVER, "tcp_listen_overflows_total", &[], random.scaled(0.1, 100.0))
        .gauge(SERVER, "tcp_accept_queue_length", &port, 64.0)
        .gauge(SERVER, "tcp_accept_queue_limit", &port, 64.0)
}

fn calls(random: &mut Random) -> SyntheticRecording {
    let (more, each_s) = (random.scaled(1.0, 60.0), random.scaled(0.000_1, 0.02));
    let count = move |s: i64| 50.0 * s as f64 + late(50.0 * more)(s);
    slowed(random).counted(APP, "db_client_operation_duration_seconds_count", &[], count).counted(
        APP,
        "db_client_operation_duration_seconds_sum",
        &[],
        move |s| each_s * count(s),
    )
}

/// Causes that have a bound, and what draws a recording of their events.
type Draw = (&'static [Cause], fn(&mut Random) -> SyntheticRecording);

const DRAWS: [Draw; 6] = [
    (&[Cause::ConnectionStorm, Cause::ConnectionPerRequest], connections),
    (&[Cause::RuntimePause, Cause::ProcessStopped], stops),
    (&[Cause::CpuThrottled], throttled),
    (&[Cause::TableCacheSmall], tables),
    (&[Cause::AcceptQueueOverflow], dropped),
    (&[Cause::NPlusOneQueries], calls),
];

#[test]
fn no_drawn_case_has_a_cause_above_what_its_events_cost() {
    let mut random = Random(49);
    let (mut found, mut above) = (BTreeMap::<Cause, usize>::new(), Vec::new());
    for number in 0..CASES {
        let made = DRAWS[number % DRAWS.len()].1(&mut random);
        made.with(|case| {
            for (cause, outcome) in causes::judge_all(case) {
                let Ok(Outcome::Found(finding) | Outcome::Fails(finding, _)) = outcome else { continue };
                *found.entry(cause).or_default() += 1;
                let bound = cause.definition().bound.and_then(|bound| bound(case));
                if let Some(bound) = bound.filter(|bound| finding.explains_ms > bound.ms + 1e-6) {
                    above.push(format!("{number}: {cause} {} ms, at most {} ms", finding.explains_ms, bound.ms));
                }
            }
        });
    }
    assert!(above.is_empty(), "{}", above.join("\n"));
    // Each of them was there often enough for that to mean something.
    for cause in DRAWS.iter().flat_map(|(causes, _)| *causes) {
        assert!(cause.definition().bound.is_some(), "{cause}");
        assert!(found.get(cause).is_some_and(|n| *n >= 3), "{cause}: {found:?}");
    }
}

#[test]
fn a_measured_login_bounds_a_storm_further_than_an_assumed_one() {
    let storm = |each_s: Option<f64>| {
        let made = SyntheticRecording::new(SECONDS)
            .requests(50, 400)
            .each_request(|n, r| {
                if n < SLOW_FROM * 50 {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .counted(MYSQL, "mysql_global_status_connections", &[], late(30.0))
            .counted(MYSQL, "mysql_global_status_threads_connected", &[], late(30.0));
        let made = match each_s {
            None => made,
            Some(each_s) => made.counter(APP, "hikaricp_connections_creation_seconds_count", &[], 5.0).counter(
                APP,
                "hikaricp_connections_creation_seconds_sum",
                &[],
                5.0 * each_s,
            ),
        };
        made.explains(Cause::ConnectionStorm.definition())
    };
    // 12 that came meanwhile and 0.6 of its own, of 40 ms each: all of the delay. Of 10 ms each it is a third, and
    // of 2 ms too little to matter.
    assert!(storm(None).is_some_and(|ms| ms > 350.0), "{:?}", storm(None));
    assert!(storm(Some(0.010)).is_some_and(|ms| (110.0..140.0).contains(&ms)), "{:?}", storm(Some(0.010)));
    assert_eq!(storm(Some(0.002)), Some(0.0));
}
