//! Connections that a server closes between requests. A request that was on its way just then is sent once more, on a
//! new connection, if that can do no harm (RFC 9110, section 9.2.2); its time counts from when it was due all the same.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::play::{Played, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::server;
use crate::servers::tls::{tls_server, trusting};

fn run(target: &str, load: &str, operation: &str, more: &str) -> Played {
    play(&scenario(target, load, &format!("{more}\noperations: [{operation}]")), None)
}

const GET: &str = "{get: /}";
const POST: &str = "{post: /, body: x}";

/// A server that answers `n` requests on each connection and closes it when the next has arrived, unanswered: to the
/// client that is a connection which was closed while its request was on the way. Requests it has seen in all.
fn closes_after(n: u32) -> (u16, Arc<AtomicU32>) {
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let port = server(move |mut stream| {
        for i in 0..=n {
            if http1::read(&mut stream).is_none() {
                return;
            }
            count.fetch_add(1, Ordering::Relaxed);
            if i < n && stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    (port, seen)
}

const LOAD: &str = "rate: 400, duration: 250ms, connections: 4";

#[test]
fn idempotent_requests_are_sent_again() {
    for operation in [GET, "{head: /}"] {
        let (port, seen) = closes_after(3);
        let port = if operation == GET { port } else { head_server(&seen) };
        let played = run(&format!("http://127.0.0.1:{port}"), LOAD, operation, "");
        played.all("ok");
        let seen = seen.load(Ordering::Relaxed) as u64;
        // Every fourth is seen twice.
        assert!((125..=140).contains(&seen), "{seen} seen of {}", played.offered());
    }
}

/// As [`closes_after`] three, without bodies.
fn head_server(seen: &Arc<AtomicU32>) -> u16 {
    let count = Arc::clone(seen);
    server(move |mut stream| {
        for i in 0..=3 {
            if http1::read(&mut stream).is_none() {
                return;
            }
            count.fetch_add(1, Ordering::Relaxed);
            if i < 3 && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").is_err() {
                return;
            }
        }
    })
}

#[test]
fn other_requests_are_not_sent_again() {
    let (port, seen) = closes_after(3);
    let played = run(&format!("http://127.0.0.1:{port}"), LOAD, POST, "");
    let counts = played.outcomes();
    assert_eq!(u64::from(seen.load(Ordering::Relaxed)), played.offered(), "each was seen once");
    assert!((15..=25).contains(&counts["connection_closed"]) && counts["ok"] >= 75, "{counts:?}");
}

#[test]
fn a_new_connection_that_breaks_is_the_servers_failure() {
    let (port, seen) = closes_after(0);
    let played = run(&format!("http://127.0.0.1:{port}"), LOAD, GET, "");
    played.all("connection_closed");
    assert_eq!(u64::from(seen.load(Ordering::Relaxed)), played.offered(), "each was seen once");
}

#[test]
fn it_is_tried_once_and_not_for_ever() {
    // The first connection answers once; all others, and it, then break.
    let connections = AtomicU32::new(0);
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let port = server(move |mut stream| {
        if http1::read(&mut stream).is_none() {
            return;
        }
        count.fetch_add(1, Ordering::Relaxed);
        if connections.fetch_add(1, Ordering::Relaxed) == 0 {
            stream.write_all(OK).unwrap();
            http1::read(&mut stream);
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let load = "rate: 100, duration: 100ms, connections: 1";
    let counts = run(&format!("http://127.0.0.1:{port}"), load, GET, "").outcomes();
    assert_eq!((counts["ok"], counts["connection_closed"]), (1, 9), "{counts:?}");
    assert_eq!(seen.load(Ordering::Relaxed), 11, "one was sent twice");
}

#[test]
fn a_response_that_has_begun_is_not_asked_for_again() {
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let port = server(move |mut stream| {
        for response in [OK, b"HTTP/1.1 2"] {
            if http1::read(&mut stream).is_some() {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(response);
            }
        }
    });
    let played = run(&format!("http://127.0.0.1:{port}"), LOAD, GET, "");
    let counts = played.outcomes();
    assert!((40..=50).contains(&counts["connection_closed"]), "{counts:?}");
    assert_eq!(u64::from(seen.load(Ordering::Relaxed)), played.offered());
}

#[test]
fn its_time_counts_from_when_it_was_due() {
    // The second request on each connection costs 100 ms before the connection is closed, and 10 ms on the next.
    let port = server(|mut stream| {
        if http1::read(&mut stream).is_some() {
            thread::sleep(Duration::from_millis(10));
            let _ = stream.write_all(OK);
            if http1::read(&mut stream).is_some() {
                thread::sleep(Duration::from_millis(100));
            }
        }
    });
    let load = "rate: 4, duration: 1s, connections: 1";
    let played = run(&format!("http://127.0.0.1:{port}"), load, GET, "");
    played.all("ok");
    let slow = |row: &&holdup_recording::rows::Request| row.done_at - row.intended_at >= 109_000_000;
    let mut rows: Vec<_> = played.rows.iter().collect();
    rows.sort_by_key(|row| row.intended_at);
    assert!(rows.len() == 4 && rows[1..].iter().all(slow), "all but the first: {rows:?}");
    let service = &played.operation().latencies.service;
    assert!(service.max() >= 109_000_000, "and so does what is measured from the send");
}

#[test]
fn a_server_that_answers_and_closes_without_a_word() {
    // It closes at once, so that the end comes with the response, or a moment later, or under the next request.
    let at_once = |mut stream: std::net::TcpStream| {
        if http1::read(&mut stream).is_some() {
            let _ = stream.write_all(OK);
        }
    };
    let target = format!("http://127.0.0.1:{}", server(at_once));
    run(&target, LOAD, GET, "").all("ok");
    let closed = run(&target, "users: 1, duration: 500ms", GET, "");
    closed.all("ok");
    assert!(closed.goes_on_at_once(), "users who are answered do not pause: {:?}", closed.pauses());
    let later = |mut stream: std::net::TcpStream| {
        // Together with the next request, due every 10 ms, in one case or another.
        let mut wait = u64::from(stream.peer_addr().map_or(0, |a| a.port()));
        while http1::read(&mut stream).is_some() {
            wait = wait * 7 % 1_013;
            let _ = stream.write_all(OK);
            if wait.is_multiple_of(3) {
                thread::sleep(Duration::from_micros(9_500 + wait));
                return;
            }
        }
    };
    let target = format!("http://127.0.0.1:{}", server(later));
    run(&target, "rate: 400, duration: 500ms, connections: 4", GET, "").all("ok");
}

#[test]
fn over_tls_as_well() {
    let port = tls_server(&["http/1.1"], |mut stream| {
        for _ in 0..3 {
            if http1::read(&mut stream).is_none() {
                return;
            }
            let _ = stream.write_all(OK).and_then(|()| stream.flush());
        }
        // The fourth arrives and is not answered.
        http1::read(&mut stream);
    });
    run(&format!("https://127.0.0.1:{port}"), LOAD, GET, &trusting("")).all("ok");
}

#[test]
fn connections_are_kept_as_long_as_the_server_keeps_them() {
    let requests: Arc<Mutex<HashMap<u16, u32>>> = Arc::default();
    let log = Arc::clone(&requests);
    let port = server(move |stream| {
        let client = stream.peer_addr().map_or(0, |a| a.port());
        http1::serve(stream, |_| {
            *log.lock().unwrap().entry(client).or_default() += 1;
            OK.to_vec()
        });
    });
    run(&format!("http://127.0.0.1:{port}"), LOAD, GET, "").all("ok");
    let requests = requests.lock().unwrap();
    assert!(requests.len() <= 4 && requests.values().sum::<u32>() == 100, "{requests:?}");
}
