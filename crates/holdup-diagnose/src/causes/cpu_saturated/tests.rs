//! Machines whose every figure is known.

use crate::cause::Cause;
use holdup_recording::rows::Session;

use super::DEFINITION;
use crate::resources::cpu::CpuUse;
use crate::testing::{Judged as _, SyntheticRecording};
use holdup_signals::app::accounts::testing::{ALL, BASELINE_S, Injected, NONE, made};

/// A machine that others keep busy, and 20 statements at a time in PostgreSQL, `running` of them without a wait.
fn busy(running: i64) -> SyntheticRecording {
    let row = |second: i64, id: i64| Session {
        observed_at: second * 1_000_000_000,
        source: "postgresql://db".into(),
        session_id: id,
        command: "active".into(),
        state: (id >= running).then(|| "IO:DataFileRead".into()),
        true_state: "executing".into(),
        ..Session::default()
    };
    let rows = (0..=12).flat_map(|second| (0..20).map(move |id| row(second, id)));
    let cpu = |mode| [("cpu_mode", mode)];
    SyntheticRecording::new(12)
        .requests(50, 400)
        .by_protocol("postgresql")
        .session_rows(rows.collect())
        .gauge("postgresql://db", "postgresql_sessions", &[("state", "active")], 20.0)
        .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.99)
        .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.01)
}

/// Requests that wait `waits.pool` ms for a connection on a machine whose CPUs others keep busy, and threads of the app's that
/// wait for a CPU for six seconds each second of the slow ones.
fn busy_beside(waits: Injected) -> SyntheticRecording {
    let cpu = |mode| [("cpu_mode", mode)];
    made(waits, ALL)
        .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.99)
        .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.01)
        .counted("pid:7", "process_run_queue_seconds_total", &[], |s| 6.0 * (s - BASELINE_S).max(0) as f64)
}

#[test]
fn a_wait_for_a_connection_does_not_count_as_a_wait_for_a_cpu() {
    let beside = busy_beside(Injected { pool: 150.0, ..NONE });
    let of_a_request = beside.explains(&DEFINITION).expect("judged");
    assert!(of_a_request < 10.0, "{of_a_request}");
    assert_eq!(beside.diagnose().culprit, Some(Cause::ConnectionPoolExhausted));
    // 40 a second that hold something for 150 ms need six of it: with fewer, that is what others wait for.
    let slow = busy_beside(Injected { pool: 150.0, execution: 150.0, ..NONE }).explains(&DEFINITION).expect("judged");
    assert!((slow - 150.0).abs() < 1.0, "all that threads waited: {slow}");
}

/// 50 requests a second are due, of which every `answered`th is; the service uses `own` of two CPUs, others what is left.
fn overload(answered: i64, own: f64) -> SyntheticRecording {
    let cpu = |mode| [("cpu_mode", mode)];
    SyntheticRecording::new(12)
        .requests(50, 400)
        .each_request(|number, row| row.outcome = if number % answered == 0 { "ok" } else { "timeout" }.into())
        .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.98)
        .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.02)
        .counter("pid:7", "process_cpu_time_seconds_total", &[("cpu_mode", "user")], own)
        .counter("pid:7", "process_run_queue_seconds_total", &[], 0.1)
}

#[test]
fn more_than_the_cpus_can_do_is_waited_for_wherever_it_stands() {
    assert!(overload(2, 1.5).explains(&DEFINITION).is_some_and(|ms| ms > 300.0));
    assert_eq!(overload(1, 1.5).explains(&DEFINITION), Some(0.0), "all that is due is answered");
    assert_eq!(overload(2, 0.5).explains(&DEFINITION), Some(0.0), "others burn the CPUs");
}

#[test]
fn users_who_wait_for_each_other_wait_for_the_cpus() {
    let closed = |cpus: f64, own: f64| {
        overload(1, own).gauge("host", "system_cpu_logical_count", &[], cpus).closed().explains(&DEFINITION)
    };
    // 50 a second of 400 ms are 20 under way.
    assert!(closed(2.0, 1.5).is_some_and(|ms| ms > 300.0));
    assert_eq!(closed(16.0, 1.5), Some(0.0), "there is a CPU for each but a few");
    assert_eq!(closed(2.0, 0.5), Some(0.0), "others burn the CPUs");
}

#[test]
fn sessions_that_wait_for_something_else_do_not_wait_for_a_busy_cpu() {
    assert_eq!(busy(0).explains(&DEFINITION), Some(0.0));
    assert_eq!(busy(18).explains(&DEFINITION), None, "who burns the CPUs is not known");
}

/// 50 requests a second of 20 ms, from the twelfth second on of 400 ms. The CPUs are `busy` then, threads wait for one for 0.05 s each
/// second before and for `waited` then, and the app uses `cpus` then and a tenth of one before.
fn slower(busy: f64, waited: f64, cpus: f64) -> SyntheticRecording {
    let since = |baseline: f64, slow: f64| move |s: i64| baseline * s.min(12) as f64 + slow * (s - 12).max(0) as f64;
    let cpu = |mode| [("cpu_mode", mode)];
    SyntheticRecording::new(24)
        .requests(50, 400)
        .each_request(|_, r| {
            if r.intended_at < 12_000_000_000 {
                r.done_at = r.intended_at + 20_000_000;
            }
        })
        .counted("host", "system_cpu_time_seconds_total", &cpu("user"), since(0.4, 2.0 * busy))
        .counted("host", "system_cpu_time_seconds_total", &cpu("idle"), since(1.6, 2.0 - 2.0 * busy))
        .counted("pid:7", "process_run_queue_seconds_total", &[], since(0.05, waited))
        .counted("prometheus:app", "process_cpu_seconds_total", &[], since(0.1, cpus))
}

#[test]
fn idle_cpus_are_not_what_threads_wait_for() {
    // 15 seconds each second for 50 requests, less the millisecond of a healthy time.
    let full = slower(0.98, 15.0, 0.1).explains(&DEFINITION).expect("judged");
    assert!((full - 299.0).abs() < 5.0, "{full}");
    assert_eq!(slower(0.4, 15.0, 0.1).explains(&DEFINITION), Some(0.0));
    assert_eq!(slower(0.98, 0.05, 0.1).explains(&DEFINITION), Some(0.0), "no more than before");
}

#[test]
fn a_request_that_computes_longer_needs_no_queue() {
    let dearer = slower(0.6, 0.05, 15.0);
    let found = dearer.explains(&DEFINITION).expect("judged");
    assert!((found - 298.0).abs() < 5.0, "{found}");
    let diagnosis = dearer.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{:#?}", diagnosis.findings);
    let text = &diagnosis.findings[0].evidence[0].text;
    assert!(text.contains("300 ms of CPU per request, 2.00 ms in the baseline window"), "{text}");
}

#[test]
fn cpu_time_of_a_collector_counts_as_its_pause() {
    // Of the CPU time that the app uses more, its collector uses `collected` a second, in pauses of 0.3 s.
    let collecting = |collected: f64| {
        let grown = move |second: i64| (second - 12).max(0) as f64 * collected;
        slower(0.4, 0.05, 5.0).counted("prometheus:app", "python_gc_pause_seconds_sum", &[], grown).counted(
            "prometheus:app",
            "python_gc_pause_seconds_count",
            &[],
            move |s| grown(s) / 0.3,
        )
    };
    // 4.9 s a second of 50 requests are 98 ms of each; the collector's 0.9 s are 18 ms of that.
    let own = collecting(0.0).explains(&DEFINITION).expect("judged");
    assert!((own - 98.0).abs() < 5.0, "{own}");
    let rest = collecting(0.9).explains(&DEFINITION).expect("judged");
    assert!((rest - 80.0).abs() < 5.0, "{rest}");
}

/// 50 requests a second, fast until 12 s; then every second one times out, while `user` scans and the CPUs are full.
fn scanned(user: &str) -> SyntheticRecording {
    const DB: &str = "mysql://db";
    let since = |baseline: f64, slow: f64| move |s: i64| baseline * s.min(12) as f64 + slow * (s - 12).max(0) as f64;
    let cpu = |mode| [("cpu_mode", mode)];
    let session = |s: i64, id: i64, user: &str, text: &str| Session {
        observed_at: s * 1_000_000_000,
        source: DB.into(),
        session_id: id,
        user: Some(user.into()),
        true_state: "executing".into(),
        digest_text: Some(text.into()),
        ..Session::default()
    };
    let rows = (0..24).flat_map(|s| {
        let scans = (1..if s < 12 { 1 } else { 5 }).map(move |id| session(s, id, user, "SELECT COUNT(*) FROM note"));
        scans.chain([session(s, 9, "shop", "SELECT name FROM item")]).collect::<Vec<_>>()
    });
    SyntheticRecording::new(24)
        .requests(50, 400)
        .each_request(|n, r| {
            if r.intended_at < 12_000_000_000 {
                r.done_at = r.intended_at + 20_000_000;
            } else if n % 2 == 0 {
                r.outcome = "timeout".into();
            }
        })
        .session_rows(rows.collect())
        .gauge(DB, "mysql_sessions", &[("true_state", "executing")], 1.0)
        .digest("SELECT COUNT(*) FROM note", |s| (10 * (s - 12).max(0), 4_000 * (s - 12).max(0), 0, 0, 0))
        .digest("SELECT name FROM item", |s| (50 * s, 50 * s, 0, 0, 0))
        .setting("pid:7", "comm", "mariadbd")
        .gauge("host", "system_cpu_logical_count", &[], 2.0)
        .counted("host", "system_cpu_time_seconds_total", &cpu("user"), since(0.1, 1.98))
        .counted("host", "system_cpu_time_seconds_total", &cpu("idle"), since(1.9, 0.02))
        .counted("pid:7", "process_cpu_time_seconds_total", &cpu("user"), since(0.1, 1.9))
        .counted("pid:7", "process_run_queue_seconds_total", &[], since(0.01, 0.05))
}

#[test]
fn statements_of_others_that_fill_the_cpus_are_no_demand_of_requests() {
    assert_eq!(scanned("report").explains(&DEFINITION), Some(0.0), "they wait beside them for a millisecond");
    assert!(scanned("shop").explains(&DEFINITION).is_some_and(|ms| ms > 200.0), "nothing tells whose they are");
}

/// 50 requests a second of 20 ms, from the twelfth second on of 400 ms, on two CPUs full of niced work, of which the service's own
/// processes use `own`. Its threads wait for a CPU for `waited` each second then.
fn niced(own: f64, waited: Option<f64>) -> SyntheticRecording {
    let mode = |mode| [("cpu_mode", mode)];
    let made = SyntheticRecording::new(24)
        .requests(50, 400)
        .each_request(|_, r| {
            if r.intended_at < 12_000_000_000 {
                r.done_at = r.intended_at + 20_000_000;
            }
        })
        .counter("host", "system_cpu_time_seconds_total", &mode("user"), 0.1)
        .counter("host", "system_cpu_time_seconds_total", &mode("nice"), 1.89)
        .counter("host", "system_cpu_time_seconds_total", &mode("idle"), 0.01)
        .counter("pid:7", "process_cpu_time_seconds_total", &mode("user"), own);
    let Some(waited) = waited else { return made };
    let queue = move |s: i64| waited * (s - 12).max(0) as f64;
    made.counted("pid:7", "process_run_queue_seconds_total", &[], queue)
}

#[test]
fn niced_work_makes_way_and_what_threads_waited_decides() {
    let niced = |own, waited| niced(own, waited).explains(&DEFINITION);
    assert_eq!(niced(0.1, Some(0.5)), Some(0.0), "10 ms a request");
    assert_eq!(niced(0.1, None), None, "it may be in another cgroup, whose weight counts");
    // Such a cgroup, and a service that is niced itself.
    assert!(niced(0.1, Some(15.0)).is_some_and(|ms| ms > 250.0));
    assert!(niced(1.9, Some(15.0)).is_some_and(|ms| ms > 250.0));
    let busy = |own| self::niced(own, None).with(|case| CpuUse::measure(&case.slow()).map_or(0.0, |cpus| cpus.busy));
    assert!(busy(1.9) > 0.9 && busy(0.1) < 0.1, "{} {}", busy(1.9), busy(0.1));
}
