//! Servers that began anew, and those that only seem to.

use super::*;
use crate::testing::{EventRow, Judged as _, SyntheticRecording};

const DB: &str = "mysql://db";

fn chance(made: &SyntheticRecording) -> f64 {
    made.with(|case| {
        let mut signs = Signs::default();
        find(&Facts::read(case.view(case.whole())), &mut signs);
        signs.weigh().map_or(0.0, |weighed| weighed.chance)
    })
}

fn up(value: impl Fn(i64) -> f64) -> SyntheticRecording {
    SyntheticRecording::new(120).counted(DB, "mysql_global_status_uptime", &[], value)
}

#[test]
fn an_uptime_that_fell_is_a_restart() {
    let fell = up(|s| if s < 60 { 9e5 + s as f64 } else { (s - 58) as f64 });
    assert!(chance(&fell) >= 0.9);
    // A server that started just before it was watched, and one whose uptime is rounded.
    assert_eq!(chance(&up(|s| (s + 3) as f64)), 0.0);
    assert_eq!(chance(&up(|s| (s / 10 * 10 + 500) as f64)), 0.0);
}

#[test]
fn logs_and_clouds_say_why() {
    let restart = |why: &'static str| {
        let rows: [EventRow<'_>; 1] = [(30, DB, "restart", &[])];
        SyntheticRecording::new(60).events(&rows).tables(|tables| {
            for event in &mut tables.events.rows {
                event.labels = holdup_recording::Labels::new([("why", why)]);
            }
        })
    };
    assert!(chance(&restart("crash")) >= 0.9 && chance(&restart("failover")) >= 0.9);
    assert!((0.7..0.8).contains(&chance(&restart("unknown"))), "{}", chance(&restart("unknown")));
    assert!(chance(&restart("requested")) < 0.6);
    // A reason that is known takes its place.
    let killed = restart("crash").events(&[(29, "host", "out_of_memory_kill", &[("process", "mysqld")])]);
    assert!(chance(&killed) < 0.3);
}

#[test]
fn requests_without_answer_after_it_are_its_cost() {
    let made = |second: i64| {
        let rows: [EventRow<'_>; 1] = [(second, DB, "restart", &[("why", "crash")])];
        SyntheticRecording::new(60).requests(50, 20).refused(30 * 50..40 * 50).events(&rows)
    };
    assert!(made(29).fails(&DEFINITION).is_some_and(|share| share > 0.95));
    assert_eq!(made(50).fails(&DEFINITION), Some(0.0), "it restarted after they had failed");
    assert_eq!(SyntheticRecording::new(9).fails(&DEFINITION), None);
}
