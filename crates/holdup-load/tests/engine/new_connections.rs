//! `keep_alive: false`: every request has a connection of its own, which costs it the time of connecting, and which
//! holdup closes after the answer whether or not the server does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdup_load::scenario::Scenario;

use crate::play::{Played, at_once, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::{http2, server};

const LOAD: &str = "rate: 400, duration: 250ms, connections: 4";
const USERS: &str = "users: 2, duration: 300ms";

/// What a server saw of its connections, by the client's port. It keeps each open for as long as the client does.
#[derive(Default)]
struct Seen {
    requests: Mutex<BTreeMap<u16, Vec<http1::Asked>>>,
    ended: AtomicU32,
}

impl Seen {
    /// Connections that carried a request: the check before the load sends none.
    fn used(&self) -> Vec<Vec<http1::Asked>> {
        self.requests.lock().unwrap().values().cloned().collect()
    }

    fn each_carried_one(&self, played: &Played) {
        let used = self.used();
        assert!(used.iter().all(|asked| asked.len() == 1), "{:?}", used.iter().map(Vec::len).collect::<Vec<_>>());
        assert_eq!(used.len() as u64, played.offered(), "{}", played.against);
        assert!(played.rows.iter().all(|row| row.connect_ns > 0), "the time of connecting is counted");
        // The server closes nothing itself.
        let begun = Instant::now();
        while self.ended.load(Ordering::Relaxed) < used.len() as u32 {
            assert!(begun.elapsed() < Duration::from_secs(60), "holdup closes each connection");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn watching(answer: impl Fn(&http1::Asked) -> Vec<u8> + Send + Sync + 'static) -> (String, Arc<Seen>) {
    let seen = Arc::<Seen>::default();
    let log = Arc::clone(&seen);
    let port = server(move |stream| {
        let client = stream.peer_addr().map_or(0, |address| address.port());
        let mut asked = Vec::new();
        http1::serve(stream, |request| {
            asked.push(request.clone());
            // A port may come again.
            log.requests.lock().unwrap().entry(client).or_default().push(request.clone());
            answer(request)
        });
        log.ended.fetch_add(u32::from(!asked.is_empty()), Ordering::Relaxed);
    });
    (format!("http://127.0.0.1:{port}"), seen)
}

fn run(target: &str, load: &str, more: &str) -> Played {
    play(&scenario(target, load, more), None)
}

#[test]
fn each_request_has_its_own_connection() {
    at_once([LOAD, USERS], |load| {
        let (target, seen) = watching(|_| OK.to_vec());
        let played = run(&target, load, "http: {keep_alive: false}");
        played.all("ok");
        seen.each_carried_one(&played);
        let asked = seen.used().concat();
        assert!(asked.iter().all(|asked| asked.header("connection") == Some("close")), "{:?}", asked[0]);
    });
}

#[test]
fn a_stream_of_http2_has_its_own_connection() {
    at_once([LOAD, USERS], |load| {
        let connections = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&connections);
        let port = server(move |stream| {
            let Some(mut connection) = http2::Connection::accept(stream, &[]) else { return };
            count.fetch_add(1, Ordering::Relaxed);
            let mut requests = 0;
            while let Some(stream) = connection.request() {
                requests += 1;
                assert_eq!(requests, 1, "one request a connection");
                // Every fifth is reset, which leaves the connection as it was.
                if count.load(Ordering::Relaxed).is_multiple_of(5) {
                    connection.reset(stream, 2);
                } else {
                    connection.answer(stream);
                }
            }
        });
        let played = run(&format!("http://127.0.0.1:{port}"), load, "http: {version: 2, keep_alive: false}");
        let counts = played.outcomes();
        assert_eq!(counts["ok"] + counts["stream_reset"], played.offered(), "{counts:?}");
        assert_eq!(u64::from(connections.load(Ordering::Relaxed)), played.offered());
        assert!(played.rows.iter().all(|row| row.connect_ns > 0));
    });
}

#[test]
fn sessions_and_users_keep_their_cookies() {
    let answer = |asked: &http1::Asked| match asked.path.as_str() {
        "/in" => b"HTTP/1.1 200 OK\r\nSet-Cookie: id=7\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        _ => OK.to_vec(),
    };
    let steps = "steps: [{name: in, get: /in}, {name: op, get: /home}]";
    for load in ["rate: 100, duration: 200ms", "users: 2, iterations: 9, duration: 60s"] {
        let (target, seen) = watching(answer);
        let text = format!("target: {target}\nload: {{{load}}}\nhttp: {{keep_alive: false}}\n{steps}\n");
        let played = play(&Scenario::parse(&text, "test.yaml").unwrap(), None);
        played.all("ok");
        seen.each_carried_one(&played);
        let asked = seen.used().concat();
        let home: Vec<_> = asked.iter().filter(|asked| asked.path == "/home").collect();
        assert!(!home.is_empty() && home.iter().all(|asked| asked.header("cookie") == Some("id=7")), "{home:?}");
    }
}

#[test]
fn a_redirect_is_followed_on_another_connection() {
    let (target, seen) = watching(|asked| match asked.path.as_str() {
        "/" => b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => OK.to_vec(),
    });
    let played = run(&target, LOAD, "http: {keep_alive: false}");
    played.all("ok");
    let used = seen.used();
    assert!(used.iter().all(|asked| asked.len() == 1) && used.len() as u64 == 2 * played.offered(), "{}", used.len());
}

#[test]
fn a_user_whose_check_failed_goes_on_at_once() {
    let (target, _) = watching(|_| OK.to_vec());
    let more = "http: {keep_alive: false}\noperations: [{name: op, get: /, check: body contains no}]";
    let played = run(&target, "users: 1, duration: 500ms", more);
    played.all("check_failed");
    assert!(played.goes_on_at_once(), "{:?}", played.pauses());
}

#[test]
fn settings_that_need_lasting_connections_are_refused() {
    for (load, http, words) in [
        ("rate: 5, duration: 1s", "version: 2, streams: 9", "remove \"streams\""),
        ("rate: 5, duration: 1s, open_all: true", "version: 2", "remove \"open_all\""),
        ("rate: 5, duration: 1s", "cookies: true", "use \"sessions\" or \"steps\", or remove \"cookies\""),
    ] {
        let text = format!(
            "target: http://h\nload: {{{load}}}\nhttp:\n  {{{http},\n  keep_alive: false}}\noperations: [get: /]"
        );
        let error = Scenario::parse(&text, "s.yaml").unwrap_err().to_string();
        assert!(error.starts_with("s.yaml:5: http.keep_alive: ") && error.contains(words), "{error}");
    }
    let users = "target: http://h\nload: {users: 5, duration: 1s}\nhttp: {cookies: true, keep_alive: false}\noperations: [get: /]";
    assert!(Scenario::parse(users, "s.yaml").is_ok(), "a user keeps cookies over connections");
}
