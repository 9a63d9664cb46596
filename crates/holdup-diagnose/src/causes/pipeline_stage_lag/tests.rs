//! Stages that fall behind, and lags that show no fault.

use holdup_recording::Labels;
use holdup_recording::pipeline::{Intake, Output, Stage};

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
    all_cleared(made).swap_remove(0)
}

/// The sentences that clear it.
fn all_cleared(made: &SyntheticRecording) -> Vec<String> {
    let Ok(Outcome::Cleared(evidence)) = made.judge(&DEFINITION) else { panic!("not cleared: {:?}", seen(made)) };
    assert_eq!(seen(made).0, 0.0, "{evidence:?}");
    evidence.into_iter().map(|piece| piece.text).collect()
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
    assert!(text.ends_with("; at this pace its backlog is gone in 41 s"), "{text}");
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

/// A stage that reads a topic of its own name by a group of its own name.
fn reading(name: &str) -> Stage {
    Stage { name: name.into(), input: Intake::Topic { topic: name.into(), group: name.into() }, out: None }
}

/// The figures of such a stage, by what had come and what it had committed.
fn read_by(
    made: SyntheticRecording,
    name: &'static str,
    come: impl Fn(i64) -> f64,
    done: impl Fn(i64) -> f64,
) -> SyntheticRecording {
    let pair = [("group", name), ("topic", name)];
    let lag = |at: i64| (-900..=at).rev().find(|second| come(*second) <= done(at)).map_or(900, |second| at - second);
    made.counted(KAFKA, "kafka_end_offset", &pair[1..], &come)
        .counted(KAFKA, "kafka_committed_offset", &pair, &done)
        .counted(KAFKA, "kafka_backlog", &pair, |s| come(s) - done(s))
        .counted(KAFKA, "kafka_lag_seconds", &pair, |s| lag(s) as f64)
}

/// A stage with a queue in a broker whose exporter tells length and work done.
fn queued(name: &str) -> Stage {
    let labels = Labels::new([("queue", name)]);
    let out = Some(Output::Counter { metric: "jobs_done_total".into(), labels: labels.clone() });
    Stage { name: name.into(), input: Intake::Waiting { metric: "jobs_waiting".into(), labels }, out }
}

const BROKER: &str = "prometheus:http://broker/metrics";

/// `apply` takes what `index` lets it, whose queue has this room and which does `rate` after a minute.
fn bounded(come: impl Fn(i64) -> f64, rate: f64, room: f64) -> SyntheticRecording {
    let indexed = slower(rate);
    let applied = |s: i64| come(s).min(indexed(s) + room);
    let queue = [("queue", "index")];
    read_by(SyntheticRecording::new(180), "apply", &come, applied)
        .counted(BROKER, "jobs_waiting", &queue, |s| applied(s) - indexed(s).min(applied(s)))
        .counted(BROKER, "jobs_done_total", &queue, |s| indexed(s).min(applied(s)))
        .pipeline(vec![reading("apply"), queued("index")])
}

/// The texts in order, and the chance of the first.
fn texts(made: &SyntheticRecording) -> (f64, Vec<String>) {
    let shown = made.with(|case| shown(&case.view(case.whole())));
    assert!(matches!(made.judge(&DEFINITION), Ok(Outcome::Uncounted(..))));
    (shown[0].0.chance(), shown.into_iter().map(|(_, evidence)| evidence.text).collect())
}

#[test]
fn a_slow_stage_in_the_middle_binds_while_the_next_one_starves() {
    let made = read_by(SyntheticRecording::new(180), "enrich", steady, steady);
    let made = read_by(made, "apply", steady, slower(30.0));
    let made = read_by(made, "index", slower(30.0), slower(30.0));
    let (chance, texts) = texts(&made.pipeline(vec![reading("enrich"), reading("apply"), reading("index")]));
    assert!(chance >= 0.8 && texts[0].starts_with("apply does not keep up"), "{chance} {texts:?}");
    assert!(texts[0].contains("its backlog still grows; the next stage, index, gets 30/s, before 9"), "{texts:?}");
    assert!(texts[1..].iter().all(|text| text.contains("is at most")), "{texts:?}");
}

#[test]
fn a_stage_before_a_full_queue_is_held_back_and_not_slow() {
    let (chance, found) = texts(&bounded(steady, 20.0, 500.0));
    assert!(chance >= 0.8, "{chance} {found:?}");
    let holds =
        "index does not keep up and holds back apply: its queue is full (500 items) and 20/s leave it, before 9";
    assert!(found[0].starts_with(holds), "{found:?}");
    assert!(found[0].ends_with("; apply is 91 s behind; its backlog still grows"), "{found:?}");
    assert!(found[1].starts_with("apply waits for index: its queue is full"), "{found:?}");
    // One that needs half a minute to fill.
    let (chance, found) = texts(&bounded(steady, 20.0, 2_400.0));
    assert!(chance >= 0.5 && found[0].starts_with("index does not keep up and holds back apply"), "{found:?}");
    // A queue that grows on takes all that comes: the stage before it is slow by itself.
    let made = read_by(SyntheticRecording::new(180), "apply", steady, slower(50.0));
    let made = read_by(made, "index", slower(50.0), slower(20.0));
    let (_, both) = texts(&made.pipeline(vec![reading("apply"), reading("index")]));
    assert!(
        both[0].starts_with("index does not keep up: ") && both[1].starts_with("apply does not keep up: "),
        "{both:?}"
    );
}

#[test]
fn a_burst_before_a_queue_that_is_always_full_is_the_producers() {
    let come = |s: i64| steady(s) + 200.0 * (s - 60).clamp(0, 40) as f64;
    let texts = all_cleared(&bounded(come, 100.0, 500.0)).join("\n");
    assert!(texts.contains("apply is at least") && texts.contains("because producers send more"), "{texts}");
    cleared(&bounded(steady, 100.0, 500.0));
}

/// The slot of a pipeline, by bytes confirmed.
fn slot(confirmed: impl Fn(i64) -> f64) -> SyntheticRecording {
    let (server, labels) = ("postgresql://db", [("slot", "cdc"), ("active", "1")]);
    SyntheticRecording::new(180)
        .counted(server, "postgresql_wal_position_bytes", &[], |s| 1e6 * s as f64)
        .counted(server, "postgresql_replication_slot_unconfirmed_bytes", &labels, |s| 1e6 * s as f64 - confirmed(s))
        .pipeline(vec![Stage { name: "send".into(), input: Intake::Slot { slot: "cdc".into() }, out: None }])
}

#[test]
fn a_stage_that_reads_a_slot_has_stopped_or_keeps_up() {
    let (chance, found) = texts(&slot(|s| 1e6 * s.min(60) as f64));
    assert!((0.7..0.8).contains(&chance), "{chance} {found:?}");
    let stopped = "send has stopped: it takes nothing any more for 119 s, while 1 MB/s come in; it is 119 s behind";
    assert!(found[0].starts_with(stopped), "{found:?}");
    assert_eq!(cleared(&slot(|s| 1e6 * (s - 2).max(0) as f64)), "send is at most 2 s behind");
}

#[test]
fn a_gap_in_what_counts_the_work_is_not_a_stop() {
    let mut made = bounded(steady, 100.0, 500.0).tables(|tables| {
        let is_late = |at: i64| at > 100_000_000_000;
        tables.samples.rows.retain(|row| row.metric != "jobs_done_total" || !is_late(row.observed_at));
        tables
            .samples
            .rows
            .iter_mut()
            .filter(|row| row.metric == "jobs_waiting" && is_late(row.observed_at))
            .for_each(|row| row.value = (row.observed_at / 1_000_000_000) as f64);
    });
    cleared(&made);
    // A restart sets a counter back.
    made = bounded(steady, 100.0, 500.0).tables(|tables| {
        for row in tables.samples.rows.iter_mut().filter(|row| row.metric == "jobs_done_total") {
            row.value -= if row.observed_at > 100_000_000_000 { 10_000.0 } else { 0.0 };
        }
    });
    cleared(&made);
}

#[test]
fn named_stages_without_figures_are_not_judged() {
    let made = made(steady, steady).pipeline(vec![reading("index")]);
    assert!(made.judge(&DEFINITION).is_err_and(|missing| missing.what.contains("stages that the pipeline names")));
}

#[test]
fn the_table_tells_when_a_backlog_is_gone() {
    let come = |s: i64| steady(s) + 200.0 * (s - 60).clamp(0, 40) as f64;
    let done = move |s: i64| if s <= 60 { steady(s) } else { 6_000.0 + 150.0 * (s - 60) as f64 };
    let made = read_by(SyntheticRecording::new(180), "apply", come, done);
    let made = made.pipeline(vec![reading("apply"), queued("index")]);
    let rows = made.with(crate::stages::report);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.in_per_second, row.out_per_second, row.backlog), (Some(100.0), Some(150.0), 2_050.0));
    assert_eq!((row.outlook.as_str(), row.gone_in_s, row.lag_s), ("gone", Some(41.0), 21.0));
    assert_eq!(row.wait_s, Some(13.667));
    let held_back = bounded(steady, 20.0, 500.0).with(crate::stages::report);
    assert_eq!(held_back.iter().map(|row| row.outlook.as_str()).collect::<Vec<_>>(), ["grows", "stays"]);
    let well = bounded(steady, 100.0, 500.0).with(crate::stages::report);
    assert!(well.iter().all(|row| row.outlook == "keeps_up" && row.gone_in_s.is_none()), "{well:?}");
    let table = crate::stages::table(&rows);
    assert!(table.contains("apply") && table.contains("150/s") && table.ends_with("gone in 41 s\n"), "{table}");
}
