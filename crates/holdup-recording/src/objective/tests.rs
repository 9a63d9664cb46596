//! Windows against brute force over the same seconds, and what they say where there is nothing to say.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::*;
use crate::threshold::Threshold;

const OPERATIONS: [&str; 3] = ["search", "shop/cart", "shop/pay"];

/// What ended in a second: successes, failures, response times in milliseconds.
#[derive(Clone, Default)]
struct Given {
    completed: u64,
    failed: u64,
    ms: Vec<u64>,
}

fn given(ms: &[u64], failed: u64) -> Given {
    Given { completed: ms.len() as u64, failed, ms: ms.to_vec() }
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

fn times_of(given: &Given) -> Vec<(u64, u64)> {
    given.ms.iter().map(|ms| (ms * 1_000_000, 1)).collect()
}

fn play(evaluation: &mut Evaluation, load: &[Given]) {
    for (i, given) in load.iter().enumerate() {
        let times = times_of(given);
        let ended = OperationOutcomes {
            operation: OPERATIONS[0],
            completed: given.completed,
            failed: given.failed,
            times: &times,
        };
        evaluation.second(seconds(i as f64), seconds(i as f64 + 1.0), &[ended]);
    }
}

fn threshold(text: &str) -> Threshold {
    parse(text, &OPERATIONS).unwrap()
}

fn judge_over(text: &str, extent: Extent, load: &[Given]) -> Judgement {
    let mut evaluation = Evaluation::new(&threshold(text), extent);
    play(&mut evaluation, load);
    evaluation.result()
}

fn judge(text: &str, load: &[Given]) -> Judgement {
    judge_over(text, Extent::default(), load)
}

fn stretch(from_s: i64, to_s: i64) -> Option<Stretch> {
    Some(Stretch { from_ns: from_s * 1_000_000_000, to_ns: to_s * 1_000_000_000 })
}

/// A load of 90 s without pattern, with seconds in which nothing ended.
fn noise() -> Vec<Given> {
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..90)
        .map(|_| {
            let count = if next(5) == 0 { 0 } else { next(40) };
            given(&(0..count).map(|_| 1 + next(20) * next(20)).collect::<Vec<_>>(), next(3))
        })
        .collect()
}

/// The value over `load`, computed from all of it at once.
fn brute(metric: Metric, load: &[Given]) -> Option<f64> {
    let mut ms: Vec<u64> = load.iter().flat_map(|g| g.ms.iter().copied()).collect();
    ms.sort_unstable();
    let sum = |f: fn(&Given) -> u64| load.iter().map(f).sum::<u64>() as f64;
    let (completed, failed) = (sum(|g| g.completed), sum(|g| g.failed));
    match metric {
        Metric::Errors => (completed + failed > 0.0).then(|| failed / (completed + failed)),
        Metric::Rate => Some(completed / load.len() as f64),
        Metric::Mean => (!ms.is_empty()).then(|| ms.iter().sum::<u64>() as f64 / ms.len() as f64),
        Metric::Max => ms.last().map(|v| *v as f64),
        Metric::Quantile(q) => {
            let rank = (1..=ms.len()).find(|rank| *rank as f64 >= q * ms.len() as f64 - 1e-6)?;
            Some(ms[rank - 1] as f64)
        }
    }
}

#[test]
fn every_window_is_what_its_seconds_are_together() {
    let load = noise();
    for (name, limit) in
        [("p50", "40ms"), ("p99", "300ms"), ("p99.9", "350ms"), ("p7", "3ms"), ("max", "361ms"), ("mean", "90ms")]
            .into_iter()
            .chain([("errors", "7%"), ("rate", "12")])
    {
        let metric = Metric::parse(name).unwrap();
        let sign = if metric == Metric::Rate { '>' } else { '<' };
        for window in [1, 3, 10, 90] {
            let text = format!("{name} {sign} {limit} for {window}s");
            let judged = judge(&text, &load);
            let values: Vec<(usize, f64)> = (0..=load.len() - window)
                .filter_map(|from| Some((from, brute(metric, &load[from..from + window])?)))
                .collect();
            let missed: Vec<usize> =
                values.iter().filter(|(_, v)| metric.misses(*v, judged.limit)).map(|(from, _)| *from).collect();
            let span = |from: usize| stretch(from as i64, (from + window) as i64);
            assert_eq!((judged.windows, judged.windows_missed), (values.len() as u64, missed.len() as u64), "{text}");
            assert_eq!(judged.first_window, missed.first().and_then(|from| span(*from)), "{text}");
            let worse = |a: (usize, f64), b: &(usize, f64)| if metric.is_worse(b.1, a.1) { *b } else { a };
            let worst = values.iter().fold(values[0], worse);
            assert!((judged.value.unwrap() - worst.1).abs() < 1e-9, "{text}: {judged:?} is not {worst:?}");
            assert_eq!(judged.state, if missed.is_empty() { State::Met } else { State::Missed }, "{text}");
        }
    }
}

#[test]
fn percentiles_of_merged_histograms_are_those_of_one() {
    let record = |values: &[u64]| {
        let mut histogram: Histogram<u64> = Histogram::new_with_bounds(64, 4_096, 3).unwrap();
        histogram.auto(true);
        values.iter().for_each(|v| histogram.record(*v).unwrap());
        histogram
    };
    let parts: Vec<Vec<u64>> = (1..=20_u64).map(|s| (1..=300).map(|v| v * v * s * 977).collect()).collect();
    for q in ["p50", "p90", "p99", "p99.9", "p75"] {
        let mut evaluation = Evaluation::new(&threshold(&format!("{q} < 1ns for 20s")), Extent::default());
        for (i, part) in parts.iter().enumerate() {
            let times = times(&record(part));
            let ended = OperationOutcomes { operation: "search", completed: 300, failed: 0, times: &times };
            evaluation.second(seconds(i as f64), seconds(i as f64 + 1.0), &[ended]);
        }
        let whole = record(&parts.concat());
        let Metric::Quantile(share) = Metric::parse(q).unwrap() else { panic!("{q}") };
        let expected = whole.value_at_quantile(share) as f64 / 1e6;
        assert_eq!(evaluation.result().value, Some(expected), "{q}");
    }
}

#[test]
fn one_bad_second_is_found_where_it_is_and_no_longer_than_it_lasts() {
    let mut load = vec![given(&[10; 20], 0); 30];
    load[12] = given(&[900; 20], 0);
    let judged = judge("p50 < 500ms for 1s", &load);
    assert_eq!((judged.state, judged.windows, judged.windows_missed), (State::Missed, 30, 1));
    assert_eq!((judged.first_window, judged.worst_window), (stretch(12, 13), stretch(12, 13)));
    // A third of ten seconds is not half of them.
    assert_eq!(judge("p50 < 500ms for 10s", &load).state, State::Met);
    assert_eq!(judge("p95 < 500ms for 10s", &load).first_window, stretch(3, 13));
    assert_eq!(judge("p50 < 500ms", &load).state, State::Met);
}

#[test]
fn a_window_without_requests_says_nothing_of_their_times() {
    let mut load = vec![given(&[10; 5], 0); 4];
    load.extend(vec![Given::default(); 6]);
    load.extend(vec![given(&[10; 5], 0); 4]);
    let judged = judge("p99 < 500ms for 3s", &load);
    // 12 windows, of which those from 4 to 7 are empty.
    assert_eq!((judged.state, judged.windows), (State::Met, 8));
    assert_eq!(judge("errors < 1% for 3s", &load).windows, 8);
    let rate = judge("rate > 1 for 3s", &load);
    assert_eq!((rate.state, rate.value, rate.first_window), (State::Missed, Some(0.0), stretch(4, 7)));
    // The same if seconds in which nothing ended are not even reported.
    let mut evaluation = Evaluation::new(&threshold("rate > 1 for 3s"), Extent::default());
    for (i, given) in load.iter().enumerate().filter(|(_, g)| g.completed > 0) {
        let ended = OperationOutcomes { operation: "search", completed: given.completed, failed: 0, times: &[] };
        evaluation.second(seconds(i as f64), seconds(i as f64 + 1.0), &[ended]);
    }
    assert_eq!(evaluation.result(), rate);
}

#[test]
fn nothing_is_said_of_nothing() {
    let judged = judge("p99 < 500ms for 30s", &vec![given(&[1], 0); 8]);
    assert_eq!((judged.state, judged.value), (State::NotJudged, None));
    assert_eq!(judged.why.as_deref(), Some("the run was 8.0 s long, but a window takes 30 s"));
    let extent = Extent { warm_up: seconds(2.5), due_until: None };
    let judged = judge_over("p99 < 500ms for 6s", extent, &vec![given(&[1], 0); 8]);
    assert_eq!(judged.why.as_deref(), Some("the run, after the warm-up, was 5.5 s long, but a window takes 6 s"));
    for text in ["shop/pay p99 < 1s for 2s", "shop/pay p99 < 1s", "shop/ errors < 1%"] {
        let judged = judge(text, &vec![given(&[1], 0); 8]);
        assert_eq!(judged.state, State::NotJudged, "{text}");
        assert!(judged.why.is_some_and(|why| why.contains("none of its requests ended")), "{text}");
    }
    assert_eq!(Evaluation::new(&threshold("p99 < 1s"), Extent::default()).result().state, State::NotJudged);
    let unknown = Threshold { metric: "p42nd".to_owned(), ..threshold("p99 < 1s") };
    assert_eq!(Evaluation::new(&unknown, Extent::default()).result().state, State::NotJudged);
}

#[test]
fn windows_begin_after_the_warm_up() {
    let mut load = vec![given(&[800; 10], 5); 4];
    load.extend(vec![given(&[10; 10], 0); 16]);
    let extent = Extent { warm_up: seconds(3.2), due_until: None };
    for text in ["p99 < 500ms for 5s", "errors < 1% for 5s"] {
        assert_eq!(judge_over(text, extent, &load).state, State::Met, "{text}");
        assert_eq!(judge(text, &load).first_window, stretch(0, 5), "{text}");
    }
    assert_eq!(judge_over("rate > 1 for 5s", extent, &load).windows, 12);
    // Without a window it is left out of times, not of counts.
    let whole = Extent { warm_up: seconds(4.0), due_until: None };
    assert_eq!(judge_over("p99 < 500ms", whole, &load).state, State::Met);
    assert_eq!(judge_over("errors < 1%", whole, &load).state, State::Missed);
}

/// Responses that come after the last request was due are judged; that there are fewer of them is no fall of the rate.
#[test]
fn the_end_of_the_run() {
    let mut load = vec![given(&[10; 10], 0); 10];
    load.extend([given(&[], 0), given(&[5_000], 0)]);
    let extent = Extent { warm_up: Duration::ZERO, due_until: Some(seconds(10.4)) };
    assert_eq!(judge_over("rate > 9 for 2s", extent, &load).state, State::Met);
    assert_eq!(judge_over("max < 4s for 2s", extent, &load).first_window, stretch(10, 12));
    // A last second that was cut off counts as one, but not of a rate.
    let mut evaluations = ["rate > 9 for 2s", "max < 4s for 2s"].map(|t| Evaluation::new(&threshold(t), extent));
    for evaluation in &mut evaluations {
        play(evaluation, &load[..5]);
        let ended = OperationOutcomes { operation: "search", completed: 1, failed: 0, times: &[(5_000_000_000, 1)] };
        evaluation.second(seconds(5.0), seconds(5.1), &[ended]);
    }
    let [rate, max] = evaluations.map(|mut e| e.result());
    assert_eq!((rate.state, rate.windows), (State::Met, 4));
    assert_eq!((max.state, max.first_window), (State::Missed, stretch(4, 6)));
}

#[test]
fn seconds_that_can_not_be_told_apart_are_at_no_end_of_a_window() {
    let mut evaluation = Evaluation::new(&threshold("rate > 9 for 2s"), Extent::default());
    let times = [(1_000_000, 1)];
    let ended = |completed| OperationOutcomes { operation: "search", completed, failed: 0, times: &times };
    evaluation.second(seconds(0.0), seconds(1.0), &[ended(10)]);
    // The generator was not running: three seconds in one.
    evaluation.second(seconds(1.0), seconds(4.0), &[ended(30)]);
    for i in 4..8 {
        evaluation.second(seconds(f64::from(i)), seconds(f64::from(i) + 1.0), &[ended(10)]);
    }
    // 4-6, 5-7, 6-8; neither 0-2 nor 3-5, which are cut through, nor 1-3 and 2-4.
    let judged = evaluation.result();
    assert_eq!((judged.state, judged.windows), (State::Met, 3));
}

#[test]
fn operations_are_told_apart_and_groups_put_together() {
    let slow = [(900_000_000, 1)];
    let fast = [(1_000_000, 1)];
    let judge = |text: &str| {
        let mut evaluation = Evaluation::new(&threshold(text), Extent::default());
        for i in 0..4 {
            let ended = [
                OperationOutcomes { operation: "search", completed: 5, failed: 0, times: &fast },
                OperationOutcomes { operation: "shop/cart", completed: 3, failed: 1, times: &fast },
                OperationOutcomes { operation: "shop/pay", completed: 2, failed: 1, times: &slow },
            ];
            evaluation.second(seconds(f64::from(i)), seconds(f64::from(i) + 1.0), &ended);
        }
        evaluation.result()
    };
    assert_eq!(judge("search max < 500ms for 2s").state, State::Met);
    assert_eq!(judge("shop/ max < 500ms for 2s").state, State::Missed);
    assert_eq!(judge("shop/ rate > 4 for 2s").value, Some(5.0));
    assert_eq!(judge("rate > 4 for 2s").value, Some(10.0));
    assert_eq!(judge("shop/ errors < 1% for 2s").value, Some(2.0 / 7.0));
    assert_eq!(judge("rate > 4").value, Some(10.0));
}

#[test]
fn the_run_is_ended_as_soon_as_a_window_after_the_grace_is_missed() {
    let abort = |text: &str, after_s: i64| Threshold {
        abort: true,
        abort_after_ns: after_s * 1_000_000_000,
        ..threshold(text)
    };
    let ends_at = |threshold: &Threshold, load: &[Given]| {
        let mut evaluation = Evaluation::new(threshold, Extent::default());
        (0..load.len()).find(|i| {
            let times = times_of(&load[*i]);
            let (completed, failed) = (load[*i].completed, load[*i].failed);
            let ended = OperationOutcomes { operation: "search", completed, failed, times: &times };
            evaluation.second(seconds(*i as f64), seconds(*i as f64 + 1.0), &[ended]);
            evaluation.ends_the_run().is_some()
        })
    };
    let mut load = vec![given(&[10; 10], 0); 20];
    load.extend(vec![given(&[10; 10], 10); 20]);
    // Of three seconds one with half its requests failed is a fifth.
    assert_eq!(ends_at(&abort("errors < 20% for 3s", 0), &load), Some(20));
    assert_eq!(ends_at(&abort("errors < 45% for 3s", 0), &load), Some(22));
    assert_eq!(ends_at(&abort("errors < 45% for 3s", 30), &load), Some(32));
    assert_eq!(ends_at(&threshold("errors < 45% for 3s"), &load), None);
    // Without a window it is the run so far.
    assert_eq!(ends_at(&abort("errors < 10%", 0), &load), Some(22));
    assert_eq!(ends_at(&abort("errors < 10%", 35), &load), Some(34));
    assert_eq!(ends_at(&abort("rate > 11", 5), &load), Some(4));
}
