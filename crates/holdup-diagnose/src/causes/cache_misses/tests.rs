//! A cache that evicts, and look-alikes.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const CACHE: &str = "redis://cache:6379";

/// In each second: look-ups that miss, and keys that are evicted.
type Second = (f64, f64);

/// 100 requests a second of 10 look-ups each, and from 30 s on of 60 ms instead of 10. The database runs
/// `statements` of 10 ms for each request before and after.
fn made(before: Second, after: Second, statements: (i64, i64)) -> SyntheticRecording {
    let sum = move |s: i64, (before, after): (f64, f64)| s.min(30) as f64 * before + (s - 30).max(0) as f64 * after;
    let calls = move |s: i64| 100 * (s.min(30) * statements.0 + (s - 30).max(0) * statements.1);
    SyntheticRecording::new(60)
        .requests(100, 60)
        .p99_below(30.0)
        .each_request(|n, row| {
            if n < 3_000 {
                row.done_at = row.intended_at + 10_000_000;
            }
        })
        .counted(CACHE, "redis_info_keyspace_misses", &[], move |s| sum(s, (before.0, after.0)))
        .counted(CACHE, "redis_info_keyspace_hits", &[], move |s| sum(s, (1e3 - before.0, 1e3 - after.0)))
        .counted(CACHE, "redis_info_evicted_keys", &[], move |s| sum(s, (before.1, after.1)))
        .digest("SELECT body FROM page WHERE id = ?", move |s| (calls(s), 10 * calls(s), calls(s), calls(s), 0))
}

#[test]
fn keys_that_are_evicted_and_asked_for_again_are_what_the_database_does_more() {
    let made = made((20.0, 0.0), (510.0, 500.0), (1, 6));
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((47.0..52.0).contains(&explained), "five statements of 10 ms: {explained}");
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    let text = &found.evidence[0].text;
    assert!(text.contains("51 % of the look-ups missed, 2 % in the baseline window"), "{text}");
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{}", diagnosis.headline);
}

#[test]
fn evictions_account_for_no_more_than_their_keys() {
    // Of 500 further misses a second 100 can be of evicted keys.
    let explained = made((10.0, 0.0), (510.0, 100.0), (1, 6)).explains(&DEFINITION).unwrap();
    assert!((9.0..11.0).contains(&explained), "{explained}");
}

#[test]
fn a_usual_miss_rate_a_cold_cache_and_an_idle_database_clear_it() {
    let cleared = |made: SyntheticRecording| made.explains(&DEFINITION) == Some(0.0);
    assert!(cleared(made((300.0, 300.0), (300.0, 300.0), (4, 9))), "a full cache that evicts as ever");
    assert!(cleared(made((10.0, 0.0), (510.0, 0.0), (1, 6))), "it was emptied, or its keys expired");
    assert!(cleared(made((10.0, 0.0), (10.0, 500.0), (1, 6))), "keys that nothing asks for are evicted");
    assert!(cleared(made((10.0, 0.0), (510.0, 500.0), (1, 1))), "the database runs no statement more");
}

#[test]
fn without_a_fact_it_is_not_judged() {
    let whole = made((10.0, 0.0), (510.0, 500.0), (1, 6));
    for gone in ["redis_info_keyspace_misses", "redis_info_keyspace_hits", "redis_info_evicted_keys"] {
        assert_eq!(whole.clone().without(gone).explains(&DEFINITION), None, "{gone}");
    }
    assert_eq!(whole.tables(|t| t.statements.rows.clear()).explains(&DEFINITION), None, "the database");
}
