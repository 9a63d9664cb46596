//! The closed model: users who wait for their response and think. As many as there are and no more, for as long as was
//! said, and a service that is broken is not hammered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use holdup_load::scenario::Scenario;
use holdup_load::schedule::Share;

use crate::play::{at_once, keep_going, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::{closed_port, server};

/// What a server has seen of its users.
#[derive(Default)]
struct Seen {
    now: AtomicU32,
    most: AtomicU32,
    by_connection: Mutex<HashMap<u16, u32>>,
    /// From a response to the next request on the same connection.
    pauses: Mutex<Vec<Duration>>,
}

/// A server that takes `work` for each request, and keeps the first ones until `together` are there at once.
fn watching(work: Duration, together: u32) -> (u16, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let own = Arc::clone(&seen);
    let port = server(move |mut stream| {
        let client = stream.peer_addr().map_or(0, |a| a.port());
        let mut answered: Option<Instant> = None;
        while http1::read(&mut stream).is_some() {
            own.pauses.lock().unwrap().extend(answered.map(|a| a.elapsed()));
            own.most.fetch_max(own.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            *own.by_connection.lock().unwrap().entry(client).or_default() += 1;
            thread::sleep(work);
            while own.most.load(Ordering::SeqCst) < together {
                thread::sleep(Duration::from_millis(1));
            }
            own.now.fetch_sub(1, Ordering::SeqCst);
            // Before it is sent: a pause that the server sees is never shorter than the user's.
            answered = Some(Instant::now());
            if std::io::Write::write_all(&mut stream, OK).is_err() {
                return;
            }
        }
    });
    (port, seen)
}

fn users(port: u16, load: &str) -> Scenario {
    let mut scenario = scenario(&format!("http://127.0.0.1:{port}"), load, "");
    scenario.generator.loops = Some(2);
    scenario
}

#[test]
fn each_waits_and_all_take_part() {
    let (port, seen) = watching(Duration::from_millis(5), 7);
    let played = play(&users(port, "users: 7, duration: 600ms"), None);
    played.all("ok");
    let by_connection = seen.by_connection.lock().unwrap();
    let (most, counts) = (seen.most.load(Ordering::SeqCst), by_connection.values());
    assert_eq!((most, by_connection.len()), (7, 7), "in flight, and users");
    assert_eq!(u64::from(counts.clone().sum::<u32>()), played.offered());
    // One asks again when it has its answer, which takes 5 ms: 120 times at most.
    assert!(counts.max().is_some_and(|most| *most <= 121), "{by_connection:?}");
}

#[test]
fn they_think() {
    const THINK: Duration = Duration::from_millis(40);
    let (port, seen) = watching(Duration::ZERO, 0);
    let played = play(&users(port, "users: 4, duration: 500ms, think: 40ms"), None);
    played.all("ok");
    assert!(seen.pauses.lock().unwrap().iter().all(|pause| *pause >= THINK), "{:?}", seen.pauses);
    // The first at once, and one after each 40 ms of thought.
    assert!((5..=4 * 13).contains(&played.offered()), "{}", played.offered());
    // A response time is the service's alone: thinking is no part of it.
    for row in &played.rows {
        assert_eq!(Some(row.intended_at), row.ready_at, "{row:?}");
    }
}

#[test]
fn they_stop_when_it_is_over() {
    let (port, _) = watching(Duration::from_millis(150), 0);
    let played = play(&users(port, "users: 4, duration: 400ms"), None);
    played.all("ok");
    let ends = played.summary.started_at + 400_000_000;
    assert!(played.rows.iter().all(|r| r.intended_at < ends), "nobody asks after the end");
    assert!(played.rows.iter().any(|r| r.done_at > ends), "who has asked by then gets the answer");
    assert!((4..=4 * 3).contains(&played.offered()), "{}", played.offered());
    // Someone who thinks for longer than is left is not waited for.
    let begun = Instant::now();
    play(&users(port, "users: 4, duration: 400ms, think: 60s"), None).all("ok");
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
}

#[test]
fn a_broken_service_is_not_hammered() {
    let closed = closed_port();
    let cases = [
        (server(|mut s| drop(http1::read(&mut s))), "connection_closed"),
        (
            server(|mut s| {
                http1::read(&mut s);
                crate::servers::reset(s)
            }),
            "connection_reset",
        ),
        (server(|s| http1::answer(s, b"garbage\r\n\r\n", || ())), "bad_response"),
        (closed, "connect_failed"),
    ];
    at_once(cases, |(port, outcome)| {
        let played = play(&keep_going(users(port, "users: 5, duration: 350ms")), None);
        played.all(outcome);
        // Each tries at once, and again every 100 ms.
        assert!((5..=5 * 4).contains(&played.offered()), "{outcome}: {}", played.offered());
    });
    let nowhere = scenario("http://holdup.invalid", "users: 5, duration: 350ms", "");
    let played = play(&keep_going(nowhere), None);
    played.all("name_unresolved");
    assert!((5..=5 * 4).contains(&played.offered()), "{}", played.offered());
}

#[test]
fn a_service_that_answers_with_errors_has_answered() {
    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let port = server(|mut stream| {
        if http1::read(&mut stream).is_some() {
            thread::sleep(Duration::from_millis(5));
            let _ = std::io::Write::write_all(&mut stream, busy);
        }
    });
    let played = play(&users(port, "users: 1, duration: 500ms"), None);
    played.all("http_status");
    assert!(played.goes_on_at_once(), "users do not pause after an answer: {:?}", played.pauses());
}

#[test]
fn a_shard_has_its_part_of_the_users() {
    let mut all = 0;
    for index in 0..3 {
        let (port, seen) = watching(Duration::from_millis(5), 0);
        let mut scenario = users(port, "users: 8, duration: 400ms");
        scenario.shard = Share { index, of: 3 };
        play(&scenario, None).all("ok");
        all += seen.by_connection.lock().unwrap().len();
    }
    assert_eq!(all, 8);
}

#[test]
fn users_come_and_go_by_stages() {
    let (port, seen) = watching(Duration::from_millis(5), 6);
    let stages = "users: [{ramp: {from: 0, to: 6}, for: 600ms}, {users: 6, for: 300ms}, {users: 2, for: 600ms}]";
    let played = play(&users(port, stages), None);
    played.all("ok");
    assert_eq!(seen.most.load(Ordering::SeqCst), 6);
    let phases: Vec<&str> = played.summary.phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(phases, ["0 to 6 users", "6 users", "2 users"]);
    // Two are in the last stage: what overlaps in the second half of it are their requests alone.
    let last = played.summary.phases[2].from + 300_000_000;
    let of_it: Vec<_> = played.rows.iter().filter(|r| r.intended_at > last).collect();
    let most = of_it
        .iter()
        .map(|a| of_it.iter().filter(|b| b.intended_at <= a.intended_at && a.intended_at < b.done_at).count());
    assert_eq!(most.max(), Some(2), "{} requests", of_it.len());
    assert!(of_it.iter().all(|r| r.phase == "2 users"));
}
