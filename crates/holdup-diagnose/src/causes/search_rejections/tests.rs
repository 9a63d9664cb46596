//! Pools that reject, what held them, and nodes that are healthy or were.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const CLUSTER: &str = "opensearch://search:9200";
const NODE: (&str, &str) = ("node", "data-1");
const WRITE: [(&str, &str); 2] = [NODE, ("pool", "write")];
const SEARCH: [(&str, &str); 2] = [NODE, ("pool", "search")];

/// A minute of a node with a pool of two threads and 200 places, which does 100 tasks a second.
fn pool(
    made: SyntheticRecording,
    own: &[(&str, &str)],
    rejected: impl Fn(i64) -> f64,
    queue: f64,
) -> SyntheticRecording {
    made.counter(CLUSTER, "elasticsearch_pool_completed_total", own, 100.0)
        .counted(CLUSTER, "elasticsearch_pool_rejected_total", own, rejected)
        .gauge(CLUSTER, "elasticsearch_pool_queue", own, queue)
        .gauge(CLUSTER, "elasticsearch_pool_queue_limit", own, 200.0)
        .gauge(CLUSTER, "elasticsearch_pool_size", own, 2.0)
        .gauge(CLUSTER, "elasticsearch_pool_active", own, 2.0)
}

fn writes(rejected: impl Fn(i64) -> f64) -> SyntheticRecording {
    let idle = pool(SyntheticRecording::new(60).requests(50, 20), &SEARCH, |_| 7.0, 0.0);
    pool(idle, &WRITE, rejected, 200.0)
}

/// The chance (0-1) that the signs give, and the first sentence.
fn seen(made: &SyntheticRecording) -> (f64, String) {
    made.with(|case| {
        let mut signs = Signs::default();
        find(&Facts::read(case.view(case.whole())), &mut signs);
        signs.weigh().map_or((0.0, String::new()), |of| (of.chance, of.evidence[0].text.clone()))
    })
}

fn uncounted(made: &SyntheticRecording) -> CauseFinding {
    match made.judge(&DEFINITION) {
        Ok(Outcome::Uncounted(found, _)) => found,
        _ => panic!("not found by itself: {:?} {:?}", made.explains(&DEFINITION), made.fails(&DEFINITION)),
    }
}

#[test]
fn rejected_writes_are_named_with_node_pool_queue_and_threads() {
    // Requests of another kind stay fast: a client that indexes was rejected.
    let made = writes(|s| 20.0 * (s - 30).max(0) as f64);
    let found = uncounted(&made);
    let text = &found.evidence[0].text;
    assert!(text.contains("node data-1 rejected 600 of 6,600 write tasks, in 30 of 60 samples"), "{text}");
    assert!(text.ends_with(": up to 200 of 200 waited for its 2 threads"), "{text}");
    assert!(found.evidence[1].text.contains("2.0 of the pool's 2 threads were at work"), "{:?}", found.evidence);
    assert!(found.fixes[1].text.contains("fewer bulk requests"), "{:?}", found.fixes);
    let (chance, text) = seen(&made);
    assert!(chance > 0.8 && text.contains("; meanwhile 2.0 of the pool's 2 threads"), "{chance} {text}");
}

#[test]
fn the_holder_of_the_threads_is_said_and_decides_the_remedy() {
    let made = || writes(|s| 20.0 * s as f64);
    for (metric, label, rate, said, remedy) in [
        (
            "elasticsearch_indexing_throttled_time_seconds_total",
            NODE,
            0.6,
            "merges were behind: 60 %",
            "Refresh less often",
        ),
        (
            "elasticsearch_collection_time_seconds_total",
            ("collector", "old"),
            0.34,
            "heap was collected: 34 %",
            "fills the heap",
        ),
        (
            "elasticsearch_disk_busy_time_seconds_total",
            NODE,
            0.97,
            "disks had a request in flight: 97 %",
            "faster disk",
        ),
        (
            "elasticsearch_operation_time_seconds_total",
            ("operation", "refresh"),
            1.5,
            "refreshed shards, to show new documents: 1.5 s",
            "Refresh less often",
        ),
    ] {
        let found = uncounted(&made().counter(CLUSTER, metric, &[NODE, label], rate));
        assert!(found.evidence[1].text.contains(said), "{:?}", found.evidence);
        assert!(found.fixes[1].text.contains(remedy), "{:?}", found.fixes);
        // As little as any node has of it.
        let found = uncounted(&made().counter(CLUSTER, metric, &[NODE, label], rate / 10.0));
        assert!(!found.fixes[1].text.contains(remedy) && found.evidence.len() == 2, "{:?}", found.evidence);
    }
}

#[test]
fn a_full_memory_for_writes_rejects_before_any_queue_is_full() {
    let made = pool(SyntheticRecording::new(60).requests(50, 20), &WRITE, |_| 0.0, 3.0)
        .counter(CLUSTER, "elasticsearch_indexing_pressure_rejections_total", &[NODE, ("stage", "primary")], 0.0)
        .counter(CLUSTER, "elasticsearch_indexing_pressure_rejections_total", &[NODE, ("stage", "coordinating")], 15.0)
        .gauge(CLUSTER, "elasticsearch_indexing_pressure_bytes", &[NODE], 104_857_600.0)
        .gauge(CLUSTER, "elasticsearch_indexing_pressure_limit_bytes", &[NODE], 104_857_600.0);
    let text = uncounted(&made).evidence[0].text.clone();
    assert!(text.contains("rejected 900 of 6,900 writes") && text.contains("took up to 100"), "{text}");
}

#[test]
fn failed_searches_are_those_that_were_rejected() {
    // From 30 s on every second request fails, and as many searches are rejected.
    let failing = |rejected: f64| {
        let made = SyntheticRecording::new(60).requests(50, 20).each_request(|n, row| {
            row.outcome = if n >= 1_500 && n % 2 == 0 { "http_status" } else { "ok" }.into();
        });
        pool(made, &SEARCH, move |s| rejected * (s - 30).max(0) as f64, 150.0)
    };
    let made = failing(25.0);
    assert!(made.fails(&DEFINITION).is_some_and(|share| share > 0.9), "{:?}", made.fails(&DEFINITION));
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::SearchRejections), "{}", diagnosis.headline);
    // One rejection for each hundred failures is not why they failed.
    assert!(failing(0.25).fails(&DEFINITION).is_none_or(|share| share < 0.1));
}

#[test]
fn a_stage_that_indexes_falls_behind_because_its_writes_are_rejected() {
    // A consumer group that took 100 records a second takes 30 since the node rejects its writes.
    let lagging = |rejected: f64| {
        let pair = [("group", "index"), ("topic", "orders")];
        let done = |s: i64| if s <= 60 { 100.0 * s as f64 } else { 6_000.0 + 30.0 * (s - 60) as f64 };
        let come = |s: i64| 100.0 * s as f64;
        let made = SyntheticRecording::new(180)
            .counted("kafka://broker:9092", "kafka_end_offset", &pair[1..], come)
            .counted("kafka://broker:9092", "kafka_committed_offset", &pair, done)
            .counted("kafka://broker:9092", "kafka_backlog", &pair, move |s| come(s) - done(s))
            .counted("kafka://broker:9092", "kafka_lag_seconds", &pair, |s| 0.7 * (s - 60).max(0) as f64);
        pool(made, &WRITE, move |s| rejected * (s - 60).max(0) as f64, 200.0).diagnose()
    };
    let root = lagging(20.0);
    assert_eq!(root.culprit, Some(Cause::SearchRejections), "{}", root.headline);
    let chain: Vec<Cause> = root.chain.iter().map(|link| link.cause).collect();
    assert_eq!(chain, [Cause::SearchRejections, Cause::PipelineStageLag], "{}", root.headline);
    assert_eq!(lagging(0.0).culprit, Some(Cause::PipelineStageLag), "{}", lagging(0.0).headline);
}

#[test]
fn requests_wait_behind_a_full_queue() {
    // From 30 s on 100 requests a second take 510 ms, and 50 searches wait: half a second each.
    let made = SyntheticRecording::new(60).requests(100, 510).p99_below(100.0).each_request(|n, row| {
        if n < 3_000 {
            row.done_at = row.intended_at + 10_000_000;
        }
    });
    let made = pool(made, &SEARCH, |s| 5.0 * (s - 30).max(0) as f64, 0.0).without("elasticsearch_pool_queue");
    let made = made.counted(CLUSTER, "elasticsearch_pool_queue", &SEARCH, |s| if s < 30 { 0.0 } else { 50.0 });
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((480.0..520.0).contains(&explained), "{explained}");
}

#[test]
fn an_old_count_a_short_burst_and_a_few_clear_it() {
    for (what, made) in [
        ("an earlier time", writes(|_| 81_234.0)),
        ("one burst that is sent again", writes(|s| if s < 30 { 0.0 } else { 900.0 })),
        ("fewer than one in a hundred", writes(|s| 0.9 * s as f64)),
        ("a restart begins at zero", writes(|s| if s < 30 { 5_000.0 } else { 0.0 })),
    ] {
        assert_eq!(made.explains(&DEFINITION), Some(0.0), "{what}");
        assert!(seen(&made).0 < 0.5, "{what}: {:?}", seen(&made));
        assert_ne!(made.diagnose().culprit, Some(Cause::SearchRejections), "{what}");
    }
    let text = match writes(|_| 0.0).judge(&DEFINITION) {
        Ok(Outcome::Cleared(evidence)) => evidence[0].text.clone(),
        _ => panic!("not cleared"),
    };
    assert!(text.contains("node data-1 rejected no"), "{text}");
}

#[test]
fn without_a_watched_cluster_it_is_not_judged() {
    assert!(writes(|_| 0.0).without("elasticsearch_pool_rejected_total").judge(&DEFINITION).is_err());
}
