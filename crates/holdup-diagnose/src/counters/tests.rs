//! Recordings in which nobody measured response time: what their counters say, and that they say nothing where nothing is.

use crate::cause::Cause;
use holdup_signals::time::counters::Signal;

use crate::testing::{Judged as _, SyntheticRecording};
use crate::verdict::Answer;
use holdup_signals::time::counters::Table;

/// Length, and the stretch in which something happens, seconds.
const LENGTH: i64 = 120;
const FROM: i64 = 50;
const TO: i64 = 80;

/// A value for baseline seconds and one for those of the stretch, with a little noise that is the same every time.
fn between(baseline: f64, stretch: f64) -> impl Fn(i64) -> f64 {
    move |second| {
        let noise = 1.0 + 0.04 * ((second * 7_919 % 13) as f64 / 6.0 - 1.0);
        noise * if (FROM..TO).contains(&second) { stretch } else { baseline }
    }
}

/// The same of a counter, a second.
fn grown(baseline: f64, stretch: f64) -> impl Fn(i64) -> f64 {
    let rate = between(baseline, stretch);
    move |second| (0..second).map(&rate).sum()
}

const DB: &str = "mysql://db";

/// A host of two CPUs and a MySQL server on it, `hog` CPUs of which somebody takes for a while.
fn watched(hog: f64) -> SyntheticRecording {
    let mode = |mode| [("cpu_mode", mode)];
    let idle = 1.2 - hog.min(1.15);
    let server = if hog > 0.0 { 0.5 } else { 0.7 };
    let status = |made: SyntheticRecording, name: &str, baseline: f64, stretch: f64| {
        made.counted(DB, &format!("mysql_global_status_{name}"), &[], grown(baseline, stretch))
    };
    let mut made = SyntheticRecording::new(LENGTH)
        .setting("pid:7", "comm", "mysqld")
        .counted("host", "system_cpu_time_seconds_total", &mode("user"), grown(0.7, 0.7 + hog))
        .counted("host", "system_cpu_time_seconds_total", &mode("system"), grown(0.1, 0.1))
        .counted("host", "system_cpu_time_seconds_total", &mode("idle"), grown(1.2, idle))
        .counted("host", "system_threads", &[("state", "R")], between(1.0, 1.0 + 6.0 * hog))
        .counted("host", "system_context_switches_total", &[], grown(4_000.0, 4_000.0))
        .counted("pid:7", "process_cpu_time_seconds_total", &mode("user"), grown(0.7, server))
        .counted(DB, "mysql_global_status_threads_running", &[], between(3.0, if hog > 0.0 { 8.0 } else { 3.0 }))
        .counted(DB, "mysql_global_status_threads_connected", &[], between(20.0, 20.0));
    let slower = if hog > 0.0 { 0.7 } else { 1.0 };
    for (name, rate) in [
        ("questions", 900.0),
        ("com_commit", 100.0),
        ("handler_read_key", 2_000.0),
        ("handler_read_next", 3_000.0),
        ("innodb_rows_inserted", 80.0),
        ("innodb_rows_updated", 120.0),
        ("innodb_rows_deleted", 20.0),
        ("innodb_os_log_written", 200_000.0),
        ("innodb_pages_written", 90.0),
        ("innodb_buffer_pool_read_requests", 40_000.0),
        ("innodb_data_written", 3_000_000.0),
    ] {
        made = status(made, name, rate, rate * slower);
    }
    made
}

#[test]
fn a_cpu_neighbour_is_named_without_response_times() {
    let diagnosis = watched(1.15).diagnose();
    assert_eq!(diagnosis.verdict, Answer::Found, "{}", diagnosis.headline);
    assert_eq!(diagnosis.culprit, Some(Cause::CpuSaturated), "{}", diagnosis.headline);
    let span = diagnosis.episode.unwrap();
    assert!((span.from_s - FROM as f64).abs() <= 5.0 && (span.to_s - TO as f64).abs() <= 5.0, "{span:?}");
    let root = &diagnosis.findings[0];
    assert!(root.explains_ms == 0.0 && root.confidence <= 0.8 && !root.evidence.is_empty(), "{root:?}");
    let told = diagnosis.by_counters.unwrap();
    assert_eq!(told.episodes[0].named[0], Cause::CpuSaturated);
    assert!(told.episodes[0].suspects.iter().any(|s| s.votes.iter().any(|v| v.part == "refutes")));
    assert!(diagnosis.split.is_some_and(|s| s.rivals[0] == Cause::CpuSaturated));
}

#[test]
fn nothing_is_named_where_nothing_stands_out() {
    let diagnosis = watched(0.0).diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Undecided, None), "{}", diagnosis.headline);
    assert!(diagnosis.findings.is_empty() && diagnosis.episode.is_none(), "{}", diagnosis.headline);
}

/// A restart sets counters back, and a collector that stumbles leaves a hole: neither is work.
#[test]
fn restarts_and_holes_are_blank() {
    let restarted = |second: i64| if second < 40 { 1_000.0 * second as f64 } else { 1_000.0 * (second - 40) as f64 };
    let made = watched(0.0).counted(DB, "mysql_global_status_innodb_log_writes", &[], restarted).tables(|t| {
        t.samples.rows.retain(|r| {
            r.metric != "mysql_global_status_innodb_log_writes" || !(60..70).contains(&(r.observed_at / 1_000_000_000))
        });
    });
    made.with(|case| {
        let table = Table::new(&case.view(case.whole())).unwrap();
        let values = table.frame.get(Signal::LogWrites).unwrap();
        assert!((values[10] - 1_000.0).abs() < 1e-6, "{}", values[10]);
        assert!(values[39].is_nan(), "a fall is a restart: {}", values[39]);
        assert!(values[60..69].iter().all(|v| v.is_nan()), "{:?}", &values[58..72]);
        assert!((values[75] - 1_000.0).abs() < 1e-6);
        // Shares of the CPUs add up, and commits are those that were said.
        let share = |signal| table.frame.get(signal).unwrap()[20];
        let all = share(Signal::CpuUser) + share(Signal::CpuSystem) + share(Signal::CpuIdle);
        assert!((all - 1.0).abs() < 1e-9, "{all}");
        assert!((share(Signal::ServerCpu) - 70.0).abs() < 4.0 && share(Signal::Commits) > 90.0);
    });
}

/// Where requests were measured their milliseconds decide, and counters stand beside.
#[test]
fn milliseconds_are_never_overruled() {
    let measured = watched(1.15).requests(50, 20);
    let diagnosis = measured.diagnose();
    assert!(diagnosis.culprit.is_none_or(|c| c != Cause::CpuSaturated), "{}", diagnosis.headline);
    assert!(diagnosis.findings.iter().all(|f| f.cause != Cause::CpuSaturated));
}
