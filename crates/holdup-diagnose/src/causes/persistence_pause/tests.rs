//! Forks and stops of the append-only file, and look-alikes.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};
use holdup_recording::rows::Statement;

const CACHE: &str = "redis://cache:6379";

/// 100 requests a second of 4 commands each, of 10 ms, and from the tenth second on of 110. The server forks
/// `every` so many seconds then, for `fork_s`.
fn made(every: i64, fork_s: f64) -> SyntheticRecording {
    // The objective is a tenth of what they are made with: 40 ms.
    let made = SyntheticRecording::new(30).requests(100, 400).each_request(|n, row| {
        row.done_at = row.intended_at + if n >= 1_000 { 110_000_000 } else { 10_000_000 };
    });
    made.counter(CACHE, "redis_info_total_commands_processed", &[], 400.0)
        .counted(CACHE, "redis_info_total_forks", &[], move |s| ((s - 10).max(0) / every) as f64)
        .counted(CACHE, "redis_latest_fork_seconds", &[], move |s| if s < 10 + every { 0.0 } else { fork_s })
}

#[test]
fn commands_wait_for_the_rest_of_a_fork() {
    // Four forks of 0.5 s in 20 s: an arriving command waits 4 * 0.25 / 40 = 25 ms, four of them 100.
    let made = made(5, 0.5);
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((85.0..115.0).contains(&explained), "{explained}");
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    assert!(found.evidence[0].text.contains("of them forks, 500 ms at most"), "{:?}", found.evidence);
    assert_eq!(made.diagnose().culprit, Some(DEFINITION.cause), "{}", made.diagnose().headline);
}

#[test]
fn a_server_that_does_not_count_forks_tells_them_by_their_length() {
    let made = made(5, 0.5).without("redis_info_total_forks");
    let lengths = made.without("redis_latest_fork_seconds");
    let made = lengths
        .counted(CACHE, "redis_latest_fork_seconds", &[], |s| if s < 15 { 0.0 } else { 0.5 + (s / 5) as f64 * 1e-6 });
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((85.0..115.0).contains(&explained), "{explained}");
}

#[test]
fn short_forks_and_none_clear_it() {
    assert_eq!(made(5, 0.001).explains(&DEFINITION), Some(0.0), "a snapshot that costs nothing");
    let before =
        made(1_000, 0.0).without("redis_latest_fork_seconds").gauge(CACHE, "redis_latest_fork_seconds", &[], 0.9);
    assert_eq!(before.explains(&DEFINITION), Some(0.0), "a long fork of before");
    assert_eq!(made(1_000, 0.0).explains(&DEFINITION), Some(0.0));
}

#[test]
fn stops_of_the_append_only_file_count_by_the_servers_monitor() {
    let delayed = made(1_000, 0.0).counted(CACHE, "redis_info_aof_delayed_fsync", &[], |s| (s / 4) as f64);
    assert_eq!(delayed.explains(&DEFINITION), None, "how long they were is not known");
    let stop = [("what", "aof-write"), ("seconds", "0.5")];
    // The same stop once more, by what was the matter.
    let again = [("what", "aof-write-pending-fsync"), ("seconds", "0.5")];
    let timed = delayed.events(
        &[14, 18, 22, 26]
            .map(|s| [(s, CACHE, "server_stall", &stop[..]), (s, CACHE, "server_stall", &again[..])])
            .concat(),
    );
    let explained = timed.explains(&DEFINITION).unwrap();
    assert!((85.0..115.0).contains(&explained), "{explained}");
}

#[test]
fn save_is_a_stop_for_persistence_and_no_slow_command() {
    let made = made(1_000, 0.0).tables(|tables| {
        tables.statements.present = true;
        tables.statements.rows.extend([15, 25].map(|second| Statement {
            observed_at: second * 1_000_000_000,
            source: CACHE.to_owned(),
            kind: "execution".to_owned(),
            digest: "d".to_owned(),
            digest_text: "SAVE".to_owned(),
            calls: 1,
            duration_ns: 700_000_000,
            ..Statement::default()
        }));
    });
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((85.0..115.0).contains(&explained), "{explained}");
    assert_eq!(made.explains(Cause::SlowCommand.definition()), Some(0.0));
}

#[test]
fn stops_cost_no_more_than_they_took() {
    // Requests of 4,000 commands each: they wait for 25 s by the formula, and all stops together took 2 s.
    let many = made(5, 0.5).without("redis_info_total_commands_processed");
    let many = many.counter(CACHE, "redis_info_total_commands_processed", &[], 400_000.0);
    let Ok(Outcome::Found(found)) = many.judge(&DEFINITION) else { panic!("not found") };
    assert!(found.explains_ms <= 2_001.0, "{}", found.explains_ms);
}

#[test]
fn without_a_watched_server_it_is_not_judged() {
    assert_eq!(made(5, 0.5).without("redis_latest_fork_seconds").explains(&DEFINITION), None);
}
