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

#[test]
fn a_slow_log_that_is_there_is_not_asked_for() {
    let asks = |made: SyntheticRecording| {
        made.with(|case| !(DEFINITION.is_answered)(&crate::instant::facts::Facts::read(case.view(case.whole()))))
    };
    assert!(asks(made(0)), "its commands are counted, and its slow log is unknown");
    assert!(!asks(made(300)), "watched");
    assert!(!asks(made(0).setting("redis://pasted", "slowlog.KEYS", "2")), "pasted");
}

/// The same requests, and from the tenth second on a command of `each_ms` that keeps the thread for `share` of the time.
fn busy(share: f64, each_ms: f64, clients: f64) -> SyntheticRecording {
    let grown = move |s: i64| (s - 10).max(0) as f64 * share;
    let of = [("command", "sort")];
    made(0)
        .counted(SOURCE, "redis_command_time_seconds_total", &of, grown)
        .counted(SOURCE, "redis_command_calls_total", &of, move |s| grown(s) * 1e3 / each_ms)
        .counter(SOURCE, "redis_command_time_seconds_total", &[("command", "get")], 0.001)
        .counter(SOURCE, "redis_command_calls_total", &[("command", "get")], 400.0)
        .gauge(SOURCE, "redis_info_connected_clients", &[], clients)
}

#[test]
fn a_command_too_short_for_the_slow_log_is_found_by_what_it_takes_of_the_thread() {
    // 8 ms each for 80 % of the time: an arriving command waits 0.8 * 8 / 2 / 0.2 = 16 ms, four of them 64.
    let made = busy(0.8, 8.0, 200.0);
    let explained = made.explains(&DEFINITION).unwrap();
    assert!((50.0..80.0).contains(&explained), "{explained}");
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    let text = &found.evidence[0].text;
    assert!(text.starts_with("SORT kept the one thread of redis://cache:6379 for"), "{text}");
    // With two clients one command at most stands in front.
    let explained = busy(0.8, 8.0, 2.0).explains(&DEFINITION).unwrap();
    assert!(explained < 30.0, "{explained}");
}

#[test]
fn a_thread_that_short_commands_keep_busy_and_a_quiet_one_clear_it() {
    assert_eq!(busy(0.95, 0.004, 200.0).explains(&DEFINITION), Some(0.0), "demand");
    assert_eq!(busy(0.2, 4.0, 200.0).explains(&DEFINITION), Some(0.0), "room");
}

#[test]
fn a_busy_thread_is_a_sign_without_response_time() {
    let chance = |made: SyntheticRecording| {
        made.with(|case| {
            let mut found = crate::instant::Signs::default();
            let window = holdup_signals::Window { from: 10_000_000_000, ..case.whole() };
            signs::find(&crate::instant::facts::Facts::read(case.view(window)), &mut found);
            found.weigh().map_or(0.0, |weighed| weighed.chance)
        })
    };
    assert!(chance(busy(0.95, 4.0, 200.0)) > 0.6);
    assert_eq!(chance(busy(0.95, 0.004, 200.0)), 0.0, "many short commands");
    assert_eq!(chance(busy(0.2, 4.0, 200.0)), 0.0);
}
