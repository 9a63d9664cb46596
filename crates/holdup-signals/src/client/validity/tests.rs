//! Slices of loads that are made up here: ten seconds at 100/s, answered in 20 ms, and one thing wrong with the generator.

use holdup_recording::manifest::{Host, LoadFacts};
use holdup_recording::rows::Sample;
use holdup_recording::{Labels, Phase, RunState};

use super::*;

const S: i64 = 1_000_000_000;
const LENGTH_S: i64 = 10;
const RATE: i64 = 100;

/// What one loop counts in one second, for each of the seconds from 0.
#[derive(Clone, Copy)]
struct Second {
    busy: f64,
    run_queue: f64,
    throttled: f64,
    lag_ms: f64,
    ended: f64,
    capped: f64,
}

const FINE: Second =
    Second { busy: 0.2, run_queue: 0.01, throttled: 0.0, lag_ms: 0.2, ended: RATE as f64, capped: 0.0 };

struct Made {
    manifest: Manifest,
    samples: Vec<Sample>,
    rows: Vec<Request>,
}

impl Made {
    /// A load of `loops` loops (none: from before they had labels) that did `of(loop, second)`.
    fn of(loops: Option<usize>, of: impl Fn(usize, i64) -> Second) -> Self {
        let mut manifest = Manifest::starting("t", 0, Host::default());
        manifest.state = RunState::Complete;
        manifest.load = Some(LoadFacts { connections: 50, wake_quantum_ns: 50_000, ..LoadFacts::default() });
        let rate = RATE as f64;
        let name = String::new();
        manifest.phases.push(Phase { name, from: 0, to: LENGTH_S * S, rate_from: rate, rate_to: rate });
        let mut samples = Vec::new();
        for one in 0..loops.unwrap_or(1) {
            let labels = loops.map_or_else(Labels::none, |_| Labels::new([("loop", one.to_string())]));
            let mut sums = [0.0; 6];
            for second in 0..LENGTH_S {
                let s = of(one, second);
                for (sum, more) in sums.iter_mut().zip([s.busy, s.run_queue, s.ended, 0.0, rate, s.capped]) {
                    *sum += more;
                }
                let metrics = [
                    "busy_seconds",
                    "run_queue_seconds",
                    "requests_completed",
                    "requests_failed",
                    "requests_offered",
                    "requests_capped",
                ];
                let counters = metrics.iter().zip(sums).map(|(name, sum)| (format!("holdup_load_{name}_total"), sum));
                let gauge = ("holdup_load_send_lag_p99_seconds".to_owned(), s.lag_ms / 1e3);
                let at = (second + 1) * S + one as i64 * 1_000;
                samples
                    .extend(counters.chain([gauge]).map(|(metric, value)| sample(at, metric, labels.clone(), value)));
            }
        }
        let mut throttled = 0.0;
        for second in 0..LENGTH_S {
            throttled += of(0, second).throttled;
            let metric = "holdup_load_throttled_seconds_total".to_owned();
            samples.push(sample((second + 1) * S, metric, Labels::none(), throttled));
        }
        let row = |k: i64| {
            let at = k * S / RATE;
            let lag = (of(0, at / S).lag_ms * 1e6) as i64;
            Request {
                intended_at: at,
                ready_at: Some(at),
                sent_at: Some(at + lag),
                done_at: at + lag + 20_000_000,
                outcome: "ok".into(),
                ..Request::default()
            }
        };
        Self { manifest, samples, rows: (0..RATE * LENGTH_S).map(row).collect() }
    }

    fn without(mut self, metric: &str) -> Self {
        self.samples.retain(|s| !s.metric.contains(metric));
        self
    }

    fn judge(&self) -> Validity {
        let rows: Vec<&Request> = self.rows.iter().collect();
        Validity::judge(&self.manifest, &Index::from_samples(&self.samples), &rows, Window { from: 0, to: i64::MAX })
    }
}

fn sample(observed_at: i64, metric: String, labels: Labels, value: f64) -> Sample {
    Sample { observed_at, source: "holdup".into(), metric, labels, value, ..Sample::default() }
}

/// The second from 3 s on is `second`, all others are fine.
fn one(second: Second) -> impl Fn(usize, i64) -> Second {
    move |_, s| if s == 3 { second } else { FINE }
}

/// The limits of the fourth second, and that all others are valid.
fn limits(validity: &Validity) -> Vec<Limit> {
    assert_eq!(validity.slices.len(), LENGTH_S as usize, "{:?}", validity.slices);
    let others = validity.slices.iter().enumerate().filter(|(i, _)| *i != 3);
    others.for_each(|(i, s)| assert_eq!(s.label, Label::Valid, "second {i}: {s:?}"));
    validity.slices[3].reasons.iter().map(|r| r.limit).collect()
}

#[test]
fn a_generator_that_keeps_up_is_valid() {
    for loops in [None, Some(1), Some(3)] {
        let validity = Made::of(loops, |_, _| FINE).judge();
        assert_eq!(validity.slices.len(), 10);
        assert_eq!((validity.seconds(Label::Valid), validity.length()), (10.0, 10.0));
        assert!(validity.is_put_on && validity.limits().is_empty());
    }
}

#[test]
fn each_limit_has_its_figure_and_label() {
    let cases = [
        (Second { lag_ms: 7.0, ..FINE }, vec![Limit::SendLag], 7.0),
        (Second { lag_ms: 4.9, run_queue: 0.14, throttled: 0.015, ..FINE }, vec![], 0.0),
        (Second { run_queue: 0.4, ..FINE }, vec![Limit::RunQueue], 0.4),
        (Second { throttled: 0.35, ..FINE }, vec![Limit::Throttled], 0.35),
        (Second { busy: 0.99, ..FINE }, vec![], 0.0),
        (Second { busy: 0.99, ended: 80.0, ..FINE }, vec![Limit::Busy], 0.99),
        (Second { capped: 30.0, ..FINE }, vec![Limit::InFlight], 0.3),
    ];
    for (second, expected, figure) in cases {
        let validity = Made::of(Some(1), one(second)).judge();
        assert_eq!(limits(&validity), expected, "{figure}");
        let label = match expected.first() {
            None => Label::Valid,
            Some(Limit::InFlight) => Label::Capped,
            Some(_) => Label::GeneratorLimited,
        };
        assert_eq!(validity.slices[3].label, label, "{figure}");
        for (seconds, reason) in validity.limits() {
            assert_eq!(seconds, 1.0);
            assert!((reason.value - figure).abs() < 1e-9, "{reason:?} instead of {figure}");
        }
    }
}

#[test]
fn one_loop_of_several_is_enough_and_is_named() {
    let validity =
        Made::of(Some(2), |l, s| if l == 1 && s == 3 { Second { run_queue: 0.5, ..FINE } } else { FINE }).judge();
    assert_eq!(limits(&validity), [Limit::RunQueue]);
    assert_eq!(validity.limits()[0].1.in_loop, "1");
}

#[test]
fn a_limit_spoils_by_its_size() {
    // 7 ms of 27 is a quarter of response time, 7 ms of 3,007 is nothing.
    let fast = Made::of(Some(1), one(Second { lag_ms: 7.0, ..FINE }));
    assert!(fast.judge().slices[3].spoils);
    let mut slow = Made::of(Some(1), one(Second { lag_ms: 7.0, ..FINE }));
    slow.rows.iter_mut().for_each(|r| r.done_at += 3 * S);
    let validity = slow.judge();
    assert_eq!((validity.slices[3].label, validity.slices[3].spoils), (Label::GeneratorLimited, false));
    assert_eq!(validity.spoiled().count(), 0);
    // What was not put on is not seen in response times at all.
    slow = Made::of(Some(1), one(Second { busy: 1.0, ended: 50.0, ..FINE }));
    assert!(slow.judge().slices[3].spoils && !slow.judge().is_put_on);
}

#[test]
fn a_queue_before_connections_that_are_freed_late_is_the_generators() {
    let mut made = Made::of(Some(1), one(Second { throttled: 0.8, capped: 90.0, ended: 50.0, ..FINE }));
    for row in made.rows.iter_mut().filter(|r| r.intended_at / S == 3) {
        row.ready_at = Some(row.intended_at + S);
        row.sent_at = row.ready_at;
        row.done_at += S;
    }
    let spoiled = made.judge();
    assert!(spoiled.slices[3].spoils);
    let named: Vec<Limit> = spoiled.limits().into_iter().map(|(_, r)| r.limit).collect();
    assert_eq!(named, [Limit::Throttled], "more connections would not help");
    // A service that holds each for three seconds makes that queue itself.
    made.rows.iter_mut().filter(|r| r.intended_at / S == 3).for_each(|r| r.done_at += 3 * S);
    assert!(!made.judge().slices[3].spoils);
}

#[test]
fn a_closed_model_is_limited_by_a_loop_that_never_sleeps() {
    let mut made = Made::of(Some(1), one(Second { busy: 0.97, capped: 50.0, ..FINE }));
    made.manifest.load.as_mut().unwrap().model = Model::Closed;
    let validity = made.judge();
    assert_eq!(limits(&validity), [Limit::Busy], "its users are what is in flight, and no cap");
    assert!(validity.slices[3].spoils && !validity.is_put_on);
}

#[test]
fn one_late_request_is_chance() {
    let mut made = Made::of(Some(1), one(Second { lag_ms: 20.0, ..FINE }));
    let mut fourth: Vec<&mut Request> = made.rows.iter_mut().filter(|r| r.intended_at / S == 3).collect();
    fourth.iter_mut().skip(2).for_each(|r| r.sent_at = r.ready_at);
    assert_eq!(limits(&made.judge()), []);
    made.rows.iter_mut().filter(|r| r.intended_at / S == 3).for_each(|r| r.weight = 2);
    assert_eq!(limits(&made.judge()), [Limit::SendLag], "two rows that stand for four");
}

#[test]
fn a_slower_pace_is_allowed_more_lag() {
    let mut made = Made::of(Some(1), one(Second { lag_ms: 7.0, ..FINE }));
    made.manifest.load.as_mut().unwrap().wake_quantum_ns = 500_000;
    assert_eq!(limits(&made.judge()), []);
}

#[test]
fn a_quota_is_told_with_what_is_missing() {
    let validity = Made::of(Some(1), one(Second { throttled: 0.6, ..FINE })).judge();
    // It has no CPU time in these samples: what it was kept from is known.
    let (used, kept) = validity.quota.unwrap();
    assert!(used == 0.0 && (kept - 0.6).abs() < 1e-9, "{used} {kept}");
}

#[test]
fn connections_that_would_do_follow_from_littles_law() {
    let mut made = Made::of(Some(1), one(Second { capped: 40.0, ..FINE }));
    for row in made.rows.iter_mut().filter(|r| r.intended_at / S == 3) {
        row.done_at = row.intended_at + 2 * S;
    }
    let validity = made.judge();
    assert_eq!(validity.connections_wanted, Some(200.0));
}

#[test]
fn rows_stand_in_for_what_was_not_counted() {
    // From before the generator counted these: neither metric is anywhere in the recording.
    let old = |second| Made::of(None, one(second)).without("lag").without("capped").without("throttled");
    assert_eq!(limits(&old(FINE).judge()), []);
    assert_eq!(limits(&old(Second { lag_ms: 12.0, ..FINE }).judge()), [Limit::SendLag]);
    let mut waiting = old(FINE);
    for row in waiting.rows.iter_mut().filter(|r| r.intended_at / S == 3).take(10) {
        row.ready_at = Some(row.intended_at + 5_000_000);
        row.sent_at = row.ready_at;
    }
    assert_eq!(limits(&waiting.judge()), [Limit::InFlight]);
    // One row in ten says so, but stands for next to none.
    waiting.rows.iter_mut().filter(|r| r.ready_at == Some(r.intended_at)).for_each(|r| r.weight = 1_000);
    assert_eq!(limits(&waiting.judge()), []);
}

#[test]
fn without_samples_nothing_is_judged_and_nothing_is_valid() {
    let fine = || Made::of(Some(1), |_, _| FINE);
    for made in [fine().without("holdup_load"), fine().without("busy")] {
        let validity = made.judge();
        assert_eq!((validity.seconds(Label::NotJudged), validity.seconds(Label::Valid)), (10.0, 0.0));
    }
    let mut cut = fine();
    cut.samples.retain(|s| s.observed_at <= 6 * S);
    let validity = cut.judge();
    assert_eq!((validity.seconds(Label::Valid), validity.seconds(Label::NotJudged)), (6.0, 4.0));
}

#[test]
fn a_machine_without_ports_is_the_generators() {
    let mut made = Made::of(Some(1), |_, _| FINE);
    made.rows.iter_mut().filter(|r| r.intended_at / S == 3).take(5).for_each(|r| r.outcome = NO_LOCAL_PORT.into());
    assert_eq!(limits(&made.judge()), [Limit::LocalPorts]);
}

#[test]
fn users_who_are_nearly_always_with_the_service_hardly_wait_for_the_generator() {
    let spoils = |users: u32, busy: f64| {
        let mut made = Made::of(Some(1), one(Second { run_queue: 0.4, busy, ..FINE }));
        let load = made.manifest.load.as_mut().unwrap();
        (load.model, load.connections) = (Model::Closed, users);
        made.rows.iter_mut().for_each(|r| r.done_at = r.intended_at + S / 2);
        let slice = &made.judge().slices[3];
        assert_eq!(slice.label, Label::GeneratorLimited);
        slice.spoils
    };
    // 100 a second of half a second each are 50 users, who do nothing else.
    assert!(!spoils(52, 0.2));
    assert!(spoils(60, 0.2), "a sixth of their time is not with the service");
    assert!(spoils(52, 0.97), "a loop that never sleeps is what they wait for");
}
