//! Fixtures with something done to their load generator: what a verdict may still say, and what it may not.

use holdup_diagnose::Cause;
use std::path::Path;

use holdup_diagnose::verdict::Answer;
use holdup_diagnose::{Diagnosis, diagnose};
use holdup_recording::manifest::Model;
use holdup_recording::rows::Sample;
use holdup_recording::{Labels, Recording, metrics};
use holdup_signals::client::validity::{Label, Limit};

const S: i64 = 1_000_000_000;

fn fixture(name: &str) -> Recording {
    Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap()
}

/// The fixture with the generator's samples replaced: loop 0, a sample a second, counters that grow by what `of`
/// gives for each second, by metric.
fn with(name: &str, of: impl Fn(i64) -> Vec<(&'static str, f64)>) -> Recording {
    let mut recording = fixture(name);
    let started = recording.manifest.phases[0].from;
    let length = (recording.manifest.phases.last().unwrap().to - started) / S;
    recording.tables.samples.rows.retain(|s| s.source != "holdup");
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for second in 0..length {
        for (metric, more) in of(second) {
            match sums.iter_mut().find(|(name, _)| *name == metric) {
                Some((_, sum)) if metric.ends_with("_total") => *sum += more,
                Some((_, gauge)) => *gauge = more,
                None => sums.push((metric, more)),
            }
        }
        recording.tables.samples.rows.extend(sums.iter().map(|(metric, value)| Sample {
            observed_at: started + (second + 1) * S,
            source: "holdup".into(),
            metric: format!("holdup_load_{metric}"),
            labels: Labels::new([("loop", "0")]),
            value: *value,
            ..Sample::default()
        }));
    }
    recording
}

/// A second in which `offered` were due.
fn second(offered: f64, ended: f64, busy: f64, capped: f64) -> Vec<(&'static str, f64)> {
    vec![
        ("cpu_seconds_total", busy * 0.9),
        ("busy_seconds_total", busy),
        ("requests_offered_total", offered),
        ("requests_completed_total", ended),
        ("requests_failed_total", 0.0),
        ("requests_capped_total", capped),
        ("send_lag_p99_seconds", 0.000_2),
    ]
}

fn limits(d: &Diagnosis) -> Vec<Limit> {
    d.load.validity.reasons.iter().map(|r| r.limit).collect()
}

#[test]
fn a_culprit_stands_on_a_generator_that_keeps_up() {
    let d = diagnose(&with("demo-faulty", |_| second(180.0, 180.0, 0.3, 0.0)), None);
    assert_eq!(d.culprit.map(Cause::slug), Some("connection_pool_exhausted"), "{}", d.headline);
    assert_eq!((d.load.validity.valid_s.round(), d.load.validity.slices.len()), (15.0, 1));
    assert!(d.load.validity.reasons.is_empty() && !d.load.generator_limited);
}

#[test]
fn a_generator_without_room_names_no_culprit_of_the_service() {
    let d = diagnose(&with("demo-faulty", |_| second(180.0, 120.0, 1.0, 0.0)), None);
    assert_eq!((d.verdict, d.culprit.map(Cause::slug)), (Answer::Undecided, None), "{}", d.headline);
    assert!(d.headline.starts_with("The load generator could not keep up"), "{}", d.headline);
    assert!(d.headline.contains("did not sleep for 100 %"), "{}", d.headline);
    assert_eq!((limits(&d), d.load.generator_limited), (vec![Limit::Busy], true));
    assert!(d.load.validity.fixes.iter().any(|f| f.command.as_ref().is_some_and(|c| c.contains("--loops"))));
    assert!(d.load.validity.fixes.iter().any(|f| f.command.as_ref().is_some_and(|c| c.contains("--shard"))));
}

#[test]
fn a_generator_that_shares_full_cpus_shows_a_service_that_is_slower_than_its_own_delay() {
    // It waits for a CPU, and sends each request late by this share (0-1) of its response time, while all time of the
    // CPUs is of one kind.
    let made = |late: f64, cpu_mode: &str| {
        let mut recording =
            with("demo-faulty", |_| [second(180.0, 180.0, 0.3, 0.0), vec![("run_queue_seconds_total", 0.4)]].concat());
        for row in &mut recording.tables.requests.rows {
            let ready = row.ready_at.unwrap_or(row.intended_at);
            row.sent_at = row.sent_at.map(|_| ready + (late * (row.done_at - ready) as f64) as i64);
        }
        recording.tables.samples.rows.retain(|row| row.metric != metrics::host::CPU_TIME.name);
        let started = recording.manifest.phases[0].from;
        let readings = (0..60).flat_map(|half| ["idle", "user"].map(|mode| (half, mode)));
        recording.tables.samples.rows.extend(readings.map(|(half, mode)| Sample {
            observed_at: started - 5 * S + half * S / 2,
            source: "host".into(),
            metric: metrics::host::CPU_TIME.name.into(),
            labels: Labels::new([("cpu_mode", mode)]),
            value: if mode == cpu_mode { half as f64 } else { 0.0 },
            ..Sample::default()
        }));
        diagnose(&recording, None)
    };
    let idle = made(0.2, "idle");
    assert_eq!(idle.verdict, Answer::Undecided, "{}", idle.headline);
    assert!(idle.headline.starts_with("The load generator could not keep up"), "{}", idle.headline);
    let full = made(0.2, "user");
    assert_eq!((full.verdict, full.load.generator_limited), (Answer::Found, true), "{}", full.headline);
    assert_ne!(full.culprit.map(Cause::slug), Some("load_generator_limit"));
    // Late by most of what a request takes, it shows itself.
    let late = made(0.8, "user");
    assert!(late.culprit.map(Cause::slug).is_none_or(|cause| cause == "load_generator_limit"), "{}", late.headline);
}

#[test]
fn a_few_bad_seconds_are_left_out_and_said() {
    let d = diagnose(
        &with("demo-faulty", |s| {
            second(180.0, if s == 12 { 90.0 } else { 180.0 }, if s == 12 { 1.0 } else { 0.3 }, 0.0)
        }),
        None,
    );
    assert_eq!(d.culprit.map(Cause::slug), Some("connection_pool_exhausted"), "{}", d.headline);
    assert!(d.symptom.as_ref().unwrap().ends_with("1 s in which the load generator could not keep up are left out"));
    assert_eq!(d.load.validity.generator_limited_s, 1.0);
    assert!(!d.load.generator_limited);
}

#[test]
fn a_symptom_of_nothing_but_bad_seconds_is_the_generators() {
    // All that is slow in this one are its last two seconds.
    let mut recording =
        with("demo-fixed", |s| second(180.0, if s >= 13 { 90.0 } else { 180.0 }, if s >= 13 { 1.0 } else { 0.3 }, 0.0));
    let from = recording.manifest.phases[0].from;
    for row in recording.tables.requests.rows.iter_mut().filter(|r| r.intended_at >= from + 13 * S) {
        row.done_at = row.intended_at + S;
    }
    let d = diagnose(&recording, None);
    assert_eq!((d.verdict, d.culprit.map(Cause::slug)), (Answer::Undecided, None), "{}", d.headline);
    assert!(d.headline.starts_with("The load generator"), "{}", d.headline);
}

#[test]
fn a_late_generator_is_named_where_its_delay_is_what_was_slow() {
    let mut recording = with("demo-fixed", |_| {
        let mut second = second(180.0, 180.0, 0.5, 0.0);
        second.retain(|(metric, _)| !metric.starts_with("send_lag"));
        second.extend([("send_lag_p99_seconds", 0.6), ("throttled_seconds_total", 0.5)]);
        second
    });
    for row in &mut recording.tables.requests.rows {
        row.done_at += 400_000_000;
        row.sent_at = row.sent_at.map(|at| at + 400_000_000);
    }
    let d = diagnose(&recording, None);
    assert_eq!(d.culprit.map(Cause::slug), Some("load_generator_limit"), "{}", d.headline);
    let fixes: Vec<&str> = d.findings[0].fixes.iter().map(|f| f.text.as_str()).collect();
    assert!(fixes[0].starts_with("Raise the quota") && fixes[0].contains("kept from 0.50 more"), "{fixes:?}");
    assert!(d.findings[0].evidence.iter().any(|e| e.text.contains("out of quota for up to 50 %")));
    for evidence in &d.findings[0].evidence {
        assert!(evidence.resolves(&recording), "{evidence:?}");
    }
}

#[test]
fn a_culprit_stands_where_connections_ran_out_and_no_rate_is_called_a_limit() {
    let d = diagnose(&with("demo-faulty", |s| second(180.0, 180.0, 0.3, if s >= 10 { 60.0 } else { 0.0 })), None);
    assert_eq!(d.culprit.map(Cause::slug), Some("connection_pool_exhausted"), "{}", d.headline);
    assert_eq!((d.load.validity.capped_s, limits(&d)), (5.0, vec![Limit::InFlight]));
    let text = &d.load.validity.reasons[0].text;
    assert!(
        text.contains("limit of 600 bound in 5 of 15 s") && text.contains("does not show the service's limit"),
        "{text}"
    );
    let healthy = diagnose(&with("demo-fixed", |s| second(180.0, 180.0, 0.3, if s >= 10 { 60.0 } else { 0.0 })), None);
    assert_eq!(healthy.verdict, Answer::Healthy);
    assert!(healthy.headline.contains("600 requests in flight bound"), "{}", healthy.headline);
}

#[test]
fn health_is_said_with_its_caveat_and_only_of_what_was_put_on() {
    // All of the load was put on, if late: the service is at least as good as it looks.
    let late = |_| vec![("run_queue_seconds_total", 0.5)].into_iter().chain(second(180.0, 180.0, 0.6, 0.0)).collect();
    let mut recording = with("demo-fixed", late);
    for row in &mut recording.tables.requests.rows {
        row.done_at += 8_000_000;
        row.sent_at = row.sent_at.map(|at| at + 8_000_000);
    }
    let d = diagnose(&recording, None);
    assert_eq!(d.verdict, Answer::Healthy);
    assert!(d.headline.contains("include the load generator's own delay"), "{}", d.headline);
    assert!(d.load.generator_limited && limits(&d) == [Limit::RunQueue]);
    // Half of it was not.
    let d = diagnose(&with("demo-fixed", |_| second(180.0, 90.0, 1.0, 0.0)), None);
    assert_eq!(d.verdict, Answer::Undecided, "{}", d.headline);
    // The users of a closed model wait for the generator, unseen.
    let mut closed = with("demo-fixed", |_| second(180.0, 180.0, 0.99, 0.0));
    closed.manifest.load.as_mut().unwrap().model = Model::Closed;
    let d = diagnose(&closed, None);
    assert_eq!((d.verdict, d.load.model), (Answer::Undecided, Some(Model::Closed)), "{}", d.headline);
    assert!(d.headline.contains("the service may carry more"), "{}", d.headline);
}

#[test]
fn a_generator_that_said_nothing_is_not_valid() {
    let d = diagnose(&with("demo-faulty", |_| Vec::new()), None);
    let validity = &d.load.validity;
    assert_eq!(
        (validity.valid_s, validity.not_judged_s.round(), validity.slices[0].label),
        (0.0, 15.0, Label::NotJudged)
    );
}
