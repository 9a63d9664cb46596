//! Episodes of synthetic requests, by their objectives and by their own noise.

use holdup_recording::manifest::{Host, LoadFacts, Manifest, Threshold};
use holdup_recording::rows::Request;
use holdup_recording::tables::Tables;
use holdup_recording::{Recording, objective};

use super::*;
use crate::client::objectives::Run;
use crate::client::operations;

/// `rate` requests a second for `seconds`, each as slow as `ms` says for its second.
fn requests(rate: i64, seconds: i64, ms: impl Fn(i64) -> f64) -> Vec<Request> {
    (0..rate * seconds)
        .map(|k| {
            let intended_at = k * 1_000_000_000 / rate;
            Request {
                intended_at,
                done_at: intended_at + (ms(intended_at / 1_000_000_000) * 1e6) as i64,
                outcome: "ok".into(),
                ..Request::default()
            }
        })
        .collect()
}

fn find(rows: &[Request], threshold: Option<&str>) -> Option<Degradation> {
    let mut manifest = Manifest::starting("t", 0, Host::default());
    let thresholds: Vec<Threshold> = threshold.into_iter().map(|t| objective::parse::<&str>(t, &[]).unwrap()).collect();
    manifest.load = Some(LoadFacts { thresholds, ..LoadFacts::default() });
    let recording = Recording {
        dir: Default::default(),
        manifest,
        tables: Tables::default(),
        latencies: Vec::new(),
        search: None,
        excerpt: None,
    };
    let operations = operations::summarize_rows(rows, i64::MIN);
    let requests: Vec<&Request> = rows.iter().collect();
    let run = Run {
        recording: &recording,
        requests: &requests,
        operations: &operations,
        window: None,
        measured_from: i64::MIN,
    };
    Degradation::find(&ClientView::from_requests(rows), &operations, &run.judge(), None)
}

#[test]
fn a_knee_is_found_without_being_told() {
    let rows = requests(50, 12, |s| if s < 8 { 20.0 } else { 900.0 });
    let symptom = find(&rows, None).unwrap();
    assert_eq!((symptom.slow.from, symptom.slow.to), (8_000_000_000, 12_000_000_000));
    assert_eq!(symptom.baseline.map(|c| c.to), Some(8_000_000_000));
    assert!((symptom.excess_ms() - 880.0).abs() < 1.0);
}

#[test]
fn steady_and_noisy_response_times_are_not_a_symptom() {
    for ms in [|_| 20.0, |s: i64| if s % 4 == 0 { 45.0 } else { 20.0 }] {
        let rows = requests(50, 12, ms);
        assert_eq!(find(&rows, None), None);
    }
}

#[test]
fn an_objective_decides() {
    let rows = requests(50, 12, |_| 300.0);
    assert_eq!(find(&rows, Some("p99 < 400ms")), None);
    let symptom = find(&rows, Some("p99 < 200ms")).unwrap();
    assert_eq!(symptom.text, "p99 was 300 ms, the objective is p99 < 200ms");
    assert_eq!(symptom.baseline, None);
}

#[test]
fn seconds_that_are_left_out_are_in_no_baseline_window() {
    let rows = requests(50, 12, |s| if s < 8 { 20.0 } else { 900.0 });
    let mut view = ClientView::from_requests(&rows);
    view.seconds.remove(2);
    let symptom = Degradation::find(&view, &[], &[], None).unwrap();
    assert_eq!(symptom.baseline, Some(Window { from: 3_000_000_000, to: 8_000_000_000 }));
}

#[test]
fn episodes_that_come_and_go_are_several_and_the_worst_is_looked_at() {
    let slow = |s: i64| (40..80).contains(&s) || (160..240).contains(&s) || (300..330).contains(&s);
    let rows = requests(10, 400, |s| if slow(s) { 900.0 } else { 20.0 });
    let symptom = find(&rows, None).unwrap();
    let windows: Vec<(i64, i64)> =
        symptom.episodes.iter().map(|w| (w.from / 1_000_000_000, w.to / 1_000_000_000)).collect();
    assert_eq!(windows, [(40, 80), (160, 240), (300, 330)]);
    assert_eq!(symptom.slow, symptom.episodes[1]);
    assert_eq!(symptom.baseline.map(|c| (c.from, c.to)), Some((80_000_000_000, 160_000_000_000)));
}

#[test]
fn ten_times_of_little_is_a_symptom_if_it_stays() {
    let rows = requests(20, 120, |s| if (60..100).contains(&s) { 20.0 } else { 2.0 });
    let symptom = find(&rows, None).unwrap();
    assert!(symptom.text.starts_with("response time stood at 20.0 ms for 40 s, against 2.00 ms"), "{}", symptom.text);
    assert_eq!((symptom.slow.from, symptom.slow.to), (60_000_000_000, 100_000_000_000));
    // An objective that is met says how bad it is, not whether something happened.
    let met = find(&rows, Some("p99 < 400ms")).unwrap();
    assert_eq!((met.slow, met.severity), (symptom.slow, Severity::Minor));
    assert!(met.text.ends_with("(every objective was met)"), "{}", met.text);
}

#[test]
fn a_stall_of_two_seconds_is_minor_where_objectives_allow_it() {
    let stall = |at: i64| if (20..22).contains(&at) { 400.0 } else { 3.0 };
    let rows = requests(40, 60, stall);
    let found = find(&rows, Some("p50 < 200ms")).unwrap();
    assert_eq!((found.slow.from, found.slow.to), (20_000_000_000, 22_000_000_000), "{}", found.text);
    assert!(found.severity == Severity::Minor && found.text.contains(EVERY_MET), "{}", found.text);
    let hiccup = |at: i64| if at == 20 { 400.0 } else { 3.0 };
    assert!(find(&requests(40, 60, hiccup), Some("p50 < 200ms")).is_none(), "one second");
}

#[test]
fn two_seconds_in_which_a_crowd_stands_are_an_episode() {
    let stall = |rate: i64, usual_ms: f64, ms: f64| {
        find(&requests(rate, 30, |s| if (20..22).contains(&s) { ms } else { usual_ms }), None)
    };
    // 1,000 a second of 9 ms are nine at a time.
    let found = stall(1_000, 0.2, 9.0).expect("a crowd");
    assert_eq!((found.slow.from, found.slow.to, found.severity), (20_000_000_000, 22_000_000_000, Severity::Minor));
    assert!(found.text.contains("a median of 9.00 ms"), "{}", found.text);
    assert_eq!(stall(100, 0.2, 9.0), None, "one at a time");
    assert_eq!(stall(1_000, 9.0, 36.0), None, "slower by less than five times");
}

/// A tenth of the requests waits for a throttled disk: neither the middle nor a level of it shows.
#[test]
fn two_seconds_in_which_a_part_of_the_requests_is_late_are_an_episode() {
    let stall = |from: i64, to: i64, late_ms: f64| {
        let mut rows = requests(60, 30, |_| 3.0);
        for (n, row) in rows.iter_mut().enumerate() {
            let second = row.intended_at / 1_000_000_000;
            if (from..to).contains(&second) && n % 10 == 0 {
                row.done_at = row.intended_at + (late_ms * 1e6) as i64;
            }
        }
        find(&rows, None)
    };
    let found = stall(20, 22, 80.0).expect("a stall");
    assert_eq!((found.slow.from, found.slow.to, found.severity), (20_000_000_000, 22_000_000_000, Severity::Minor));
    assert!(found.text.starts_with("p95 rose to 80"), "{}", found.text);
    assert_eq!(stall(20, 21, 80.0), None, "one second");
    assert_eq!(stall(0, 3, 80.0), None, "it warmed up");
    assert_eq!(stall(20, 22, 16.0), None, "a slice of a shared CPU");
}

/// A twentieth of the requests waits for a lock: the middle of the seconds does not move.
#[test]
fn a_mean_that_doubles_is_an_episode_and_a_drift_is_none() {
    let slow = |s: i64, n: i64| if (20..40).contains(&s) && n % 20 == 0 { 60.0 } else { 3.0 };
    let mut rows = requests(40, 60, |_| 3.0);
    for (n, row) in rows.iter_mut().enumerate() {
        let second = row.intended_at / 1_000_000_000;
        row.done_at = row.intended_at + (slow(second, n as i64) * 1e6) as i64;
    }
    let found = find(&rows, None).unwrap();
    assert_eq!((found.slow.from, found.slow.to), (20_000_000_000, 40_000_000_000));
    let drift = requests(40, 60, |s| 3.0 * 1.2_f64.powi(s as i32 / 10));
    assert_eq!(find(&drift, None), None);
    // What is slow first and then quick has warmed up.
    let warmed = requests(40, 60, |s| if s < 10 { 6.0 } else { 3.0 });
    assert_eq!(find(&warmed, None), None);
}

#[test]
fn failures_are_no_slowness() {
    let mut rows = requests(50, 4, |_| 2.0);
    for row in &mut rows {
        row.outcome = "http_status".into();
    }
    let symptom = find(&rows, None).unwrap();
    assert_eq!(symptom.text, "200 of 200 requests failed (200 http_status) (no objective was given)");
    assert_eq!((symptom.is_slow, symptom.excess_ms()), (false, 0.0));
}

#[test]
fn a_baseline_second_that_only_warms_up_hides_nothing() {
    let rows = requests(50, 24, |s| match s {
        0 => 40.0,
        1..12 => 1.0,
        _ => 4.0,
    });
    let excess_ms = find(&rows, None).unwrap().excess_ms();
    assert!((excess_ms - 3.0).abs() < 0.1, "{excess_ms}");
    // Half of the baseline is no exception.
    let rows = requests(50, 24, |s| {
        if s >= 12 {
            90.0
        } else if s % 2 == 0 {
            1.0
        } else {
            12.0
        }
    });
    let excess_ms = find(&rows, None).unwrap().excess_ms();
    assert!((excess_ms - 83.5).abs() < 1.0, "{excess_ms}");
}
