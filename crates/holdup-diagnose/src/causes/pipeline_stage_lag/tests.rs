//! Stages that fall behind, and lags that show no fault.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const KAFKA: &str = "kafka://broker:9092";
const PAIR: [(&str, &str); 2] = [("group", "index"), ("topic", "orders")];

/// A group by the records that had come and that it had committed at each second, in 180 s.
fn made(come: impl Fn(i64) -> f64, done: impl Fn(i64) -> f64) -> SyntheticRecording {
    let lag = |at: i64| (-900..=at).rev().find(|second| come(*second) <= done(at)).map_or(900, |second| at - second);
    SyntheticRecording::new(180)
        .counted(KAFKA, "kafka_end_offset", &PAIR[1..], &come)
        .counted(KAFKA, "kafka_committed_offset", &PAIR, &done)
        .counted(KAFKA, "kafka_backlog", &PAIR, |s| come(s) - done(s))
        .counted(KAFKA, "kafka_lag_seconds", &PAIR, |s| lag(s) as f64)
}

fn with_members(made: SyntheticRecording, members: impl Fn(i64) -> f64) -> SyntheticRecording {
    made.counted(KAFKA, "kafka_group_members", &PAIR[..1], members)
}

/// The chance (0-1) that the signs give, and the first sentence.
fn seen(made: &SyntheticRecording) -> (f64, String) {
    made.with(|case| {
        let mut signs = Signs::default();
        find(&Facts::read(case.view(case.whole())), &mut signs);
        let weighed = signs.weigh();
        weighed.map_or((0.0, String::new()), |weighed| (weighed.chance, weighed.evidence[0].text.clone()))
    })
}

/// The sentence that clears it.
fn cleared(made: &SyntheticRecording) -> String {
    let Ok(Outcome::Cleared(evidence)) = made.judge(&DEFINITION) else { panic!("not cleared: {:?}", seen(made)) };
    assert_eq!(seen(made).0, 0.0, "{evidence:?}");
    evidence[0].text.clone()
}

fn steady(s: i64) -> f64 {
    100.0 * s as f64
}

/// It kept up for a minute, and takes `rate` since.
fn slower(rate: f64) -> impl Fn(i64) -> f64 {
    move |s| if s <= 60 { steady(s) } else { 6_000.0 + rate * (s - 60) as f64 }
}

#[test]
fn a_stage_that_takes_less_of_the_same_is_found_with_both_rates() {
    let slow = with_members(made(steady, slower(30.0)), |_| 2.0);
    let (chance, text) = seen(&slow);
    assert!(chance >= 0.8, "{chance} {text}");
    assert!(text.contains("100/s come in and it takes 30/s, before 100/s and 9"), "{text}");
    assert!(matches!(slow.judge(&DEFINITION), Ok(Outcome::Uncounted(..))));
    let rebalanced = slow.counted(KAFKA, "kafka_group_rebalances_total", &PAIR[..1], |s| (s / 20) as f64);
    let text = seen(&rebalanced).1;
    assert!(text.contains("; its partitions were given out anew"), "{text}");
}

#[test]
fn a_consumer_that_ended_differs_from_one_that_hangs() {
    let ended = with_members(made(steady, slower(0.0)), |s| if s < 65 { 1.0 } else { 0.0 });
    let (chance, text) = seen(&ended);
    assert!(chance >= 0.8 && text.contains("has stopped: it has no member any more for 1"), "{chance} {text}");
    let hangs = with_members(made(steady, slower(0.0)), |_| 1.0);
    let (chance, text) = seen(&hangs);
    assert!((0.5..0.9).contains(&chance) && text.contains("it commits nothing any more"), "{chance} {text}");
}

#[test]
fn a_burst_that_is_worked_off_is_the_producers() {
    // Three times the rate for 40 s; the group takes half as much again as usual.
    let come = |s: i64| steady(s) + 200.0 * (s - 60).clamp(0, 40) as f64;
    let done = move |s: i64| if s <= 60 { steady(s) } else { (6_000.0 + 150.0 * (s - 60) as f64).min(come(s)) };
    let text = cleared(&with_members(made(come, done), |_| 2.0));
    assert!(
        text.contains("because producers send more") && text.contains("now 300/s come in and it takes 150/s"),
        "{text}"
    );
    // With a stage that got slower meanwhile it is that stage's.
    let both = move |s: i64| if s <= 60 { steady(s) } else { 6_000.0 + 40.0 * (s - 60) as f64 };
    assert!(seen(&with_members(made(come, both), |_| 2.0)).0 >= 0.8);
}

#[test]
fn commits_once_in_a_while_a_backlog_from_before_and_a_left_over_group_are_not_found() {
    // Commits every 5 s and every 50 s.
    for every in [5, 50] {
        cleared(&with_members(made(steady, move |s| steady(s / every * every)), |_| 1.0));
        // By a program that assigns itself its partitions.
        cleared(&with_members(made(steady, move |s| steady(s / every * every)), |_| 0.0));
    }
    // What it was behind at the start is worked off.
    let behind = |s: i64| 20_000.0 + steady(s);
    assert!(cleared(&with_members(made(behind, |s| 180.0 * s as f64), |_| 1.0)).contains("s behind now"));
    let left_over = with_members(made(|s| 20_000.0 + steady(s), |_| 50.0), |_| 0.0);
    assert!(seen(&left_over).0 < 0.5, "{:?}", seen(&left_over));
    // A deployment: no member for 15 s.
    let again = |s: i64| if (60..75).contains(&s) { 6_000.0 } else { steady(s) };
    let deployed = with_members(made(steady, again), |s| if (60..75).contains(&s) { 0.0 } else { 1.0 });
    assert!(seen(&deployed).0 < 0.5, "{:?}", seen(&deployed));
}

#[test]
fn a_lag_that_grows_from_the_first_second_is_likely_at_most() {
    let (chance, text) = seen(&with_members(made(|s| 9_000.0 + steady(s), |s| 30.0 * s as f64), |_| 1.0));
    assert!((0.5..0.7).contains(&chance) && text.contains("how it was before is not recorded"), "{chance} {text}");
}

#[test]
fn without_kafka_it_is_not_judged() {
    assert!(SyntheticRecording::new(3).judge(&DEFINITION).is_err());
}
