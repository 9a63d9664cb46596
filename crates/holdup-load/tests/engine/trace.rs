//! Trace ids as servers see them: each request has its own, which its row has too, whatever it is sent in, how often and
//! by how many loops. And what a server says of its own time is beside the request's row.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use holdup_load::scenario::Scenario;

use crate::play::{Played, play, scenario};
use crate::servers::http1::{self, Asked, OK};
use crate::servers::http2::{Connection, HEADERS, STATUS_200};
use crate::servers::server;

type Log = Arc<Mutex<Vec<Asked>>>;

fn logged(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> (String, Log) {
    let log = Log::default();
    let own = Arc::clone(&log);
    let port = server(move |stream| {
        http1::serve(stream, |asked| {
            own.lock().unwrap().push(asked.clone());
            answer(asked)
        });
    });
    (format!("http://127.0.0.1:{port}"), log)
}

/// Trace id and span id of a good `traceparent`.
fn ids(value: &str) -> (String, String) {
    let parts: Vec<&str> = value.split('-').collect();
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let is_set = |text: &str| text.bytes().any(|b| b != b'0');
    assert!(matches!(parts[..], ["00", t, s, "01"] if t.len() == 32 && s.len() == 16), "{value}");
    assert!(parts[1..3].iter().all(|id| is_hex(id) && is_set(id)), "{value}");
    (parts[1].to_owned(), parts[2].to_owned())
}

/// What the server was sent is what the rows say, and nothing comes twice.
fn check(played: &Played, log: &Log) -> BTreeSet<String> {
    let log = log.lock().unwrap();
    let sent: Vec<(String, String)> = log.iter().map(|a| ids(a.header("traceparent").expect("an id"))).collect();
    let traces: BTreeSet<String> = sent.iter().map(|(trace, _)| trace.clone()).collect();
    let spans: BTreeSet<&str> = sent.iter().map(|(_, span)| span.as_str()).collect();
    assert_eq!(spans.len(), sent.len(), "each sending is a span of its own");
    let rows: BTreeSet<String> = played.rows.iter().map(|r| r.trace_id.clone().expect("an id")).collect();
    assert_eq!((rows.len(), &rows), (played.rows.len(), &traces));
    traces
}

#[test]
fn every_request_has_its_own_in_every_run() {
    let mut seen = BTreeSet::new();
    let operations = "operations: [{name: a, get: /}, {name: b, post: /, body: x}]";
    for loops in [1, 2] {
        let (target, log) = logged(|_| OK.to_vec());
        let mut scenario = scenario(&target, "rate: 200, duration: 500ms, connections: 4, timeout: 30s", operations);
        scenario.generator.loops = Some(loops);
        let played = play(&scenario, None);
        played.all("ok");
        let traces = check(&played, &log);
        assert_eq!(traces.len(), 100);
        seen.extend(traces);
    }
    assert_eq!(seen.len(), 200, "another run has others");
}

/// A body that goes out in many pieces still has one id in front of it, and all of its bytes.
#[test]
fn large_bodies_are_sent_whole() {
    let bodies = Arc::new(Mutex::new(BTreeMap::new()));
    let own = Arc::clone(&bodies);
    let port = server(move |mut stream| {
        while let Some(asked) = http1::read_head(&mut stream) {
            let mut body = vec![0; asked.body];
            stream.read_exact(&mut body).unwrap();
            own.lock().unwrap().insert(ids(asked.header("traceparent").unwrap()).0, body);
            std::io::Write::write_all(&mut stream, OK).unwrap();
        }
    });
    let text: String = (0..300_000).map(|i| char::from(b'a' + (i % 23) as u8)).collect();
    let operations = format!("operations: [{{name: op, post: /, body: {text}}}]");
    let load = "rate: 100, duration: 200ms, connections: 8, timeout: 30s";
    let played = play(&scenario(&format!("http://127.0.0.1:{port}"), load, &operations), None);
    played.all("ok");
    let bodies = bodies.lock().unwrap();
    assert_eq!(bodies.len(), 20);
    assert!(bodies.values().all(|body| body == text.as_bytes()));
    assert!(played.rows.iter().all(|r| bodies.contains_key(r.trace_id.as_deref().unwrap())));
}

#[test]
fn a_redirect_keeps_the_trace_and_is_another_span() {
    for sessions in [false, true] {
        let (target, log) = logged(|asked| match asked.path.as_str() {
            "/end" => OK.to_vec(),
            _ => b"HTTP/1.1 307 On\r\nLocation: /end\r\nContent-Length: 0\r\n\r\n".to_vec(),
        });
        let what =
            if sessions { "steps: [{post: '/${session()}', body: x}]" } else { "operations: [{post: /x, body: x}]" };
        let text = format!("target: {target}\nload: {{rate: 50, duration: 200ms, timeout: 30s}}\n{what}\n");
        let played = play(&Scenario::parse(&text, "t.yaml").unwrap_or_else(|e| panic!("{e}")), None);
        played.all("ok");
        assert_eq!((check(&played, &log).len(), log.lock().unwrap().len()), (10, 20));
    }
}

#[test]
fn the_scenarios_own_trace_id_wins() {
    const OWN: &str = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-00";
    let load = "load: {rate: 50, duration: 100ms, timeout: 30s}";
    for (more, sent, row) in [
        (format!("headers: {{Traceparent: {OWN}}}\noperations: [get: /]"), Some(OWN), Some(&OWN[3..35])),
        (format!("headers: {{Traceparent: {OWN}}}\nsteps: [get: '/${{session()}}']"), Some(OWN), Some(&OWN[3..35])),
        ("headers: {traceparent: mine}\noperations: [get: /]".to_owned(), Some("mine"), None),
        ("trace: false\noperations: [get: /]".to_owned(), None, None),
        ("trace: false\nsteps: [get: /]".to_owned(), None, None),
    ] {
        let (target, log) = logged(|_| OK.to_vec());
        let text = format!("target: {target}\n{load}\n{more}\n");
        let played = play(&Scenario::parse(&text, "t.yaml").unwrap_or_else(|e| panic!("{e}")), None);
        played.all("ok");
        for asked in log.lock().unwrap().iter() {
            let all: Vec<&str> = asked.headers.iter().filter(|(n, _)| n == "traceparent").map(|(_, v)| &**v).collect();
            assert_eq!(all, Vec::from_iter(sent), "{more}");
        }
        assert!(!played.rows.is_empty() && played.rows.iter().all(|r| r.trace_id.as_deref() == row), "{more}");
    }
}

/// Frames of HTTP/2, the first of a connection too, which begins with a byte more.
#[test]
fn http2_has_it_in_its_frames() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let port = server(move |stream| {
        let Some(mut connection) = Connection::accept(stream, &[]) else { return };
        while let Some(frame) = connection.read() {
            if frame.kind == HEADERS {
                let text = String::from_utf8_lossy(&frame.payload).into_owned();
                let from = text.find("traceparent").expect("an id") + "traceparent".len() + 1;
                own.lock().unwrap().push(text[from..from + 55].to_owned());
                connection.send(HEADERS, 5, frame.stream, STATUS_200);
            }
        }
    });
    let more = "http: {version: 2, streams: 4, cookies: true}";
    let load = "rate: 200, duration: 200ms, connections: 2, timeout: 30s";
    let played = play(&scenario(&format!("http://127.0.0.1:{port}"), load, more), None);
    played.all("ok");
    let sent: BTreeSet<String> = seen.lock().unwrap().iter().map(|value| ids(value).0).collect();
    let rows: BTreeSet<String> = played.rows.iter().filter_map(|r| r.trace_id.clone()).collect();
    assert_eq!((rows.len(), rows), (40, sent));
}

#[test]
fn server_timing_is_recorded() {
    let (target, _) = logged(|asked| {
        let timing = match asked.path.as_str() {
            "/some" => "Server-Timing: db;dur=1.5, pool;dur=2\r\nServer-Timing: db;dur=1, total;dur=9, x;dur=1\r\n",
            _ => "",
        };
        format!("HTTP/1.1 200 OK\r\n{timing}Content-Length: 0\r\n\r\n").into_bytes()
    });
    let operations = "operations: [{name: some, get: /some}, {name: none, get: /none}]";
    let load = "rate: 100, duration: 200ms, timeout: 30s";
    for more in ["", "trace: false\n"] {
        let played = play(&scenario(&target, load, &format!("{more}{operations}")), None);
        played.all("ok");
        let of_it: Vec<_> = played.rows.iter().filter(|r| r.operation == "some").collect();
        if !more.is_empty() {
            assert_eq!(played.spans, [], "without an id nobody would know whose they are");
            continue;
        }
        assert_eq!((of_it.len(), played.spans.len()), (10, 40));
        for row in of_it {
            let said = played.spans.iter().filter(|s| Some(&s.trace_id) == row.trace_id.as_ref());
            let said = said.map(|s| {
                assert_eq!((Some(s.started_at), s.source.as_str()), (row.sent_at, "server_timing"));
                (s.resource.as_str(), s.duration_ns / 1_000)
            });
            let expected = [("database", 2_500), ("other", 1_000), ("pool", 2_000), ("request", 9_000)];
            assert_eq!(said.collect::<BTreeSet<_>>(), BTreeSet::from(expected));
        }
    }
}
