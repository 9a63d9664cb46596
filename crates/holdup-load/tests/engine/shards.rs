//! Several processes, here engines, that each take their part of one schedule: together they are exactly that schedule.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use holdup_load::model::Load;
use holdup_load::scenario::Scenario;
use holdup_load::schedule::{Replay, ReplayedRequest, Schedule, Share};

use crate::play::{Played, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::server;

/// A server, and how often it was asked for each path.
fn counting() -> (u16, Arc<Mutex<BTreeMap<String, u32>>>) {
    let counts: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let own = Arc::clone(&counts);
    let port = server(move |s| {
        http1::serve(s, |asked| {
            *own.lock().unwrap().entry(asked.path.clone()).or_default() += 1;
            OK.to_vec()
        });
    });
    (port, counts)
}

/// Runs all three shards at once, from the same moment on, with two loops each.
fn in_three(scenario: &Scenario) -> Vec<Played> {
    let start = holdup_recording::clock::now_ns() + 500_000_000;
    let shard = |index: u32| {
        let mut own = scenario.clone();
        own.shard = Share { index, of: 3 };
        own.generator.loops = Some(2);
        own.start_at = Some(start);
        move || {
            let played = play(&own, None);
            assert!(played.summary.started_at >= start);
            played
        }
    };
    let threads: Vec<_> = (0..3).map(|index| thread::spawn(shard(index))).collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

#[test]
fn a_replayed_log_is_replayed_once() {
    const COUNT: u64 = 601;
    let (port, counts) = counting();
    let mut scenario = scenario(&format!("http://127.0.0.1:{port}"), "rate: 1, duration: 1s, connections: 6", "");
    // Irregular, and with several at the same moment.
    let due: Vec<u64> = (0..COUNT).map(|k| k / 3 * 3_000_000 + k % 2 * (k % 3) * 100_000).collect();
    let mut times = due.clone();
    times.sort_unstable();
    let requests = (0..COUNT).map(|k| ReplayedRequest { method: "GET", path: format!("/{k}").into(), operation: 0 });
    let replay =
        Replay::new(times.clone(), (0..COUNT as u32).collect(), requests.collect(), vec!["op".to_owned()], Vec::new());
    scenario.load = Load::Open(Schedule::replayed(replay, "log".to_owned(), Duration::from_millis(700)));
    let played = in_three(&scenario);
    let counts = counts.lock().unwrap();
    let gaps: Vec<u64> = (0..COUNT).filter(|k| counts.get(&format!("/{k}")) != Some(&1)).collect();
    assert!(gaps.is_empty() && counts.len() as u64 == COUNT, "not asked for exactly once: {gaps:?}");
    // When each was due, to the nanosecond, from the start of its own shard.
    let mut intended: Vec<u64> = Vec::new();
    for part in &played {
        part.all("ok");
        assert!(part.offered().abs_diff(COUNT / 3) <= 1);
        intended.extend(part.rows.iter().map(|r| (r.intended_at - part.summary.started_at) as u64));
    }
    intended.sort_unstable();
    assert_eq!(intended, times);
}

#[test]
fn weights_hold_and_add_up() {
    let operations = "operations: [{name: a, get: /a, weight: 5}, {name: b, get: /b}, {name: c, get: /c}]";
    let (port, counts) = counting();
    let load = "rate: 1400, duration: 500ms, connections: 9";
    let scenario = scenario(&format!("http://127.0.0.1:{port}"), load, operations);
    let parts = in_three(&scenario);
    let sharded = std::mem::take(&mut *counts.lock().unwrap());
    play(&scenario, None).all("ok");
    assert_eq!(sharded, *counts.lock().unwrap(), "three shards ask for what one process asks for");
    for (path, weight) in [("/a", 5), ("/b", 1), ("/c", 1)] {
        assert!(sharded[path].abs_diff(weight * 100) <= 5, "{sharded:?}");
        for part in &parts {
            let own = part.summary.operations.iter().find(|o| o.operation == path[1..]).unwrap().offered as u32;
            assert!(own.abs_diff(weight * 100 / 3) <= 8, "{own} of {path} in one shard");
        }
    }
}

#[test]
fn a_ramp_and_poisson_arrivals_are_shared_exactly() {
    for load in
        ["ramp: {from: 100, to: 1500}, duration: 600ms", "rate: 900, duration: 600ms, arrivals: poisson, seed: 7"]
    {
        let (port, _) = counting();
        let scenario = scenario(&format!("http://127.0.0.1:{port}"), &format!("{load}, connections: 9"), "");
        let Load::Open(schedule) = &scenario.load else { panic!("it is open") };
        let whole: Vec<i64> = schedule.arrivals(Share::WHOLE).map(|a| a.due_ns).collect();
        let mut intended = Vec::new();
        for part in in_three(&scenario) {
            part.all("ok");
            intended.extend(part.rows.iter().map(|r| r.intended_at - part.summary.started_at));
        }
        intended.sort_unstable();
        assert_eq!(intended, whole, "{load}");
    }
}
