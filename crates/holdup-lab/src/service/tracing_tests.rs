//! Spans of the whole service, as they arrive at a receiver that only keeps bodies.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::Value;

use crate::service::server::Server;
use crate::service::service_tests::{Client, options, start};

/// Takes bodies until no more connections come, for one exporter over one connection.
fn bodies(listener: &TcpListener) -> Vec<Value> {
    let (mut stream, _) = listener.accept().expect("it connects");
    let mut bodies = Vec::new();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count) = stream.read(&mut piece) {
        if count == 0 {
            break;
        }
        bytes.extend(&piece[..count]);
        while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            let whole = end + 4 + length.parse::<usize>().expect("a number");
            if bytes.len() < whole {
                break;
            }
            bodies.push(serde_json::from_slice(&bytes[end + 4..whole]).expect("JSON"));
            bytes.drain(..whole);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").expect("it reads");
        }
    }
    bodies
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let attributes = span["attributes"].as_array()?;
    attributes.iter().find(|attribute| attribute["key"] == key)?["value"]["stringValue"].as_str()
}

#[test]
fn each_wait_of_a_request_is_a_span_of_its_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("vacancy.sqlite").display());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("its address"));
    let receiver = thread::spawn(move || bodies(&listener));
    let server = start(&[
        "--database",
        &database,
        "--rows",
        "10",
        "--hold-ms",
        "20",
        "--pool-checkout-delay",
        "30ms",
        "--otlp",
        &endpoint,
        "--response-timing",
    ]);
    let mut client = Client::connect(server.listen);
    let parent = "traceparent: 00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01\r\n";
    let (head, _) = client.ask_whole("GET", "/vacancy", parent, "");
    let timing = head.lines().find_map(|line| line.strip_prefix("Server-Timing: ")).expect("where the time went");
    let duration = |name: &str| {
        let found = timing.split(", ").find_map(|part| part.strip_prefix(&format!("{name};dur=")));
        found.and_then(|ms| ms.parse::<f64>().ok()).expect("milliseconds")
    };
    assert!(duration("pool") >= 30.0 && duration("http") >= 20.0 && duration("db") > 0.0, "{timing}");
    assert!(duration("total") >= duration("pool") + duration("db") + duration("http"), "{timing}");
    drop(client);
    server.stop();
    let bodies = receiver.join().expect("no panic");
    let spans: Vec<&Value> = bodies
        .iter()
        .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans"))
        .collect();
    let named = |name: &str| *spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let request = named("GET /vacancy");
    assert_eq!((spans.len(), &request["parentSpanId"], &request["kind"]), (4, &"c532cb4098ac3dd2".into(), &2.into()));
    let time = |span: &Value, key: &str| span[key].as_str().and_then(|ns| ns.parse::<u64>().ok()).expect("nanoseconds");
    for name in ["connection_pool.checkout", "SELECT", "GET"] {
        let span = named(name);
        assert_eq!(
            (&span["traceId"], &span["parentSpanId"]),
            (&"5bd66ef5095369c7b0d1f8f4bd33716a".into(), &request["spanId"])
        );
        let within = time(span, "startTimeUnixNano") >= time(request, "startTimeUnixNano")
            && time(span, "endTimeUnixNano") <= time(request, "endTimeUnixNano");
        assert!(within, "{name} is not within its request");
    }
    assert_eq!(attribute(named("SELECT"), "db.system.name"), Some("sqlite"));
    assert!(attribute(named("SELECT"), "db.query.text").is_some_and(|text| text.starts_with("SELECT id")));
}

#[test]
fn a_receiver_that_is_away_delays_no_request() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let server = start(&["--otlp", &format!("http://{closed}")]);
    let mut client = Client::connect(server.listen);
    for _ in 0..50 {
        assert_eq!(client.get("/vacancy").0, 200);
    }
    drop(client);
    server.stop();
    assert!(Server::start(&options(&["--otlp", "127.0.0.1:4318"])).is_err(), "no URL");
}
