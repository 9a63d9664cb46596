//! A slow command among fast ones, and look-alikes.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const SOURCE: &str = "redis://cache:6379";

/// 100 requests a second of 4 commands each; from the tenth second on they take 210 ms instead of 10, and each second a
/// command of `slow_ms` ends.
fn made(slow_ms: i64) -> SyntheticRecording {
    // The objective is a tenth of what they are made with: 40 ms.
    let made = SyntheticRecording::new(20).requests(100, 400).each_request(|n, row| {
        row.done_at = row.intended_at + if n >= 1_000 { 210_000_000 } else { 10_000_000 };
    });
    made.counter(SOURCE, "redis_info_total_commands_processed", &[], 400.0).tables(|tables| {
        tables.statements.present = true;
        tables.statements.rows.extend((10..20).filter(|_| slow_ms > 0).map(|second| Statement {
            observed_at: second * 1_000_000_000 + 900_000_000,
            source: SOURCE.to_owned(),
            kind: "execution".to_owned(),
            digest: "d".to_owned(),
            digest_text: "KEYS ?".to_owned(),
            calls: 1,
            duration_ns: slow_ms * 1_000_000,
            ..Statement::default()
        }));
    })
}

#[test]
fn commands_wait_for_the_rest_of_the_slow_one() {
    // 0.3 s of each second: an arriving command waits 0.3 * 0.3 / 2 = 45 ms, four of them 180, and 3 ms for the command
    // itself over 100 requests.
    let made = made(300);
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((175.0..195.0).contains(&explained), "{explained}");
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    assert!(found.evidence[0].text.contains("KEYS ? took 300 ms"), "{:?}", found.evidence);
}

#[test]
fn short_commands_and_an_empty_slow_log_clear_it() {
    assert_eq!(made(20).explains(&DEFINITION), Some(0.0), "20 ms a second make a wait of 0.2 ms");
    assert_eq!(made(0).explains(&DEFINITION), Some(0.0));
}

#[test]
fn without_a_watched_server_it_is_not_judged() {
    assert_eq!(made(300).without("redis_info_total_commands_processed").explains(&DEFINITION), None);
}
