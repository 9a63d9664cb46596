//! A search as the engine plays it: what the controller asks for is put on the schedule, and the seconds that it is told of
//! are those of its steps, whole and in order. Where the knee is, is `holdup-knee`'s to say; of a server of exactly known
//! capacity it must be right.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use holdup_load::engine::search::PlayedSearch;
use holdup_load::model::Load;
use holdup_witness::{ON_THE_WHOLE, Patience};

use crate::play::{Played, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::server;

/// What the server takes for a request, one after the other: 100 in a second.
const SERVICE: Duration = Duration::from_millis(10);
const CAPACITY: f64 = 100.0;
const BUDGET: Duration = Duration::from_secs(20);
const TRIES: usize = 3;

/// A server that is busy with one request at a time. Each has its time set when it comes, so that a sleep that is too long
/// takes nothing from the capacity.
fn one_at_a_time() -> u16 {
    let free_at = Arc::new(Mutex::new(Instant::now()));
    server(move |s| {
        http1::answer(s, OK, || {
            let done = {
                let mut free_at = free_at.lock().unwrap();
                *free_at = (*free_at).max(Instant::now()) + SERVICE;
                *free_at
            };
            thread::sleep(done.saturating_duration_since(Instant::now()));
        });
    })
}

fn search(more: &str, stop_after: Option<Duration>) -> (Played, PlayedSearch) {
    let load = format!("search: {{from: 20, most: 1000, within: {BUDGET:?}}}, connections: 100, timeout: 2s{more}");
    let scenario = scenario(&format!("http://127.0.0.1:{}", one_at_a_time()), &load, "");
    assert!(matches!(&scenario.load, Load::Open(schedule) if schedule.as_live().is_some()));
    let played = play(&scenario, stop_after);
    let searched = played.summary.search.clone().expect("a search leaves what it played");
    (played, searched)
}

/// What holds of every search.
fn check(searched: &PlayedSearch) {
    let mut ended = Duration::ZERO;
    for step in &searched.steps {
        assert!(step.from >= ended, "steps follow each other: {step:?}");
        assert_eq!((step.from.subsec_nanos(), step.to.subsec_nanos()), (0, 0), "whole seconds: {step:?}");
        assert_eq!(step.seconds.len() as u64, (step.to - step.from).as_secs(), "all of them: {step:?}");
        let due: u64 = step.seconds.iter().map(|second| second.due).sum();
        assert!((due as f64 - step.offered * step.seconds.len() as f64).abs() <= 1.0, "{due} due: {step:?}");
        for second in &step.seconds {
            assert!(
                second.response.count <= second.completed && second.service.mean_ns <= second.response.mean_ns * 1.01
            );
        }
        ended = step.to;
    }
    assert!(ended <= BUDGET, "{ended:?}");
}

/// A machine that stalls has a knee of its own, which is what would be found then: so a witness stays beside it.
#[test]
fn the_knee_of_a_server_of_known_capacity_is_found_in_time() {
    let often = Patience { limits: ON_THE_WHOLE, misses: TRIES, attempts: TRIES, within: Duration::from_secs(70) };
    often.judge(|_| {
        let (played, searched) = search("", None);
        check(&searched);
        assert!(played.took < 2 * BUDGET, "{:?}", played.took);
        assert_eq!(searched.config.timeout, Duration::from_secs(2));
        assert_eq!(searched.config.arrivals_variation, 0.0);
        // Every step is a phase of its own name.
        let names: Vec<&str> = played.summary.phases.iter().map(|phase| phase.name.as_str()).collect();
        for (number, step) in searched.steps.iter().enumerate() {
            let begin = format!("step {}: {} ", number + 1, step.purpose.name());
            assert!(names.iter().any(|name| name.starts_with(&begin)), "no {begin} in {names:?}");
        }
        let finding = searched.finding();
        let is_near = finding.knee.is_some_and(|knee| (knee.value / CAPACITY - 1.0).abs() < 0.1);
        if is_near { Ok(()) } else { Err(format!("{finding:#?}")) }
    });
}

#[test]
fn stopped_it_keeps_the_steps_that_were_played() {
    let (played, searched) = search(", arrivals: poisson, seed: 7", Some(Duration::from_secs(8)));
    assert!(played.summary.interrupted && played.took < Duration::from_secs(60), "{:?}", played.took);
    assert!(!searched.steps.is_empty());
    assert_eq!(searched.config.arrivals_variation, 1.0, "the controller knows of the luck of arrivals");
    check(&searched);
}
