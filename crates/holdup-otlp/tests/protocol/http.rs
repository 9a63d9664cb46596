//! OTLP/HTTP over HTTP/1.1.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use holdup_otlp::{Bounds, Refusal, RefusedBodies};

use super::{JSON, counter, protobuf, receiver, small};

/// Sends bytes as they are; everything that comes back until the connection ends.
fn send(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    // It may be refused before it is sent to the end.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn request(method: &str, path: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.into_bytes(), body.to_vec()].concat()
}

fn post(address: SocketAddr, path: &str, fields: &str, body: &[u8]) -> (u16, String) {
    let answer = send(address, &request("POST", path, fields, body));
    (answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default(), answer.to_ascii_lowercase())
}

const AS_JSON: &str = "Content-Type: application/json; charset=utf-8\r\n";
const AS_PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

#[test]
fn both_encodings_are_taken() {
    let (receiver, address) = receiver(Bounds::default());
    let (status, answer) = post(address, "/v1/traces", AS_JSON, JSON.as_bytes());
    assert!(status == 200 && answer.ends_with("\r\n\r\n{}"), "{answer}");
    let (status, answer) = post(address, "/v1/traces", AS_PROTOBUF, &protobuf());
    assert!(status == 200 && answer.contains("content-length: 0"), "{answer}");
    let chunked = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{AS_JSON}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{JSON}\r\n0\r\n\r\n",
        JSON.len()
    );
    assert!(send(address, chunked.as_bytes()).starts_with("HTTP/1.1 200"));
    let (status, answer) = post(address, "/v1/metrics", AS_JSON, b"{}");
    assert_eq!((status, answer.ends_with("{}")), (200, true));
    assert_eq!(receiver.drain().spans.len(), 3);
}

#[test]
fn refusals_have_a_status_of_their_own_and_a_body() {
    let (receiver, address) = receiver(small());
    let gzip = "Content-Encoding: gzip\r\n";
    let large = vec![b' '; 20_000];
    for (path, fields, body, status, code) in [
        ("/v1/traces", AS_JSON.to_owned(), &b"{"[..], 400, 3),
        ("/v1/traces", format!("{AS_JSON}{gzip}"), b"no gzip", 400, 3),
        ("/v1/logs", AS_JSON.to_owned(), b"{}", 404, 12),
        ("/v1/traces", AS_JSON.to_owned(), &large, 413, 8),
        ("/v1/traces", "Content-Type: text/plain\r\n".to_owned(), b"{}", 415, 3),
        ("/v1/traces", String::new(), b"{}", 415, 3),
        ("/v1/traces", format!("{AS_JSON}Content-Encoding: br\r\n"), b"{}", 415, 12),
        // gRPC's own framing needs HTTP/2.
        ("/v1/traces", "Content-Type: application/grpc\r\n".to_owned(), b"\0\0\0\0\0", 415, 3),
    ] {
        let (given, answer) = post(address, path, &fields, body);
        assert_eq!(given, status, "{path} {fields}: {answer}");
        assert!(answer.contains(&format!("{{\"code\":{code},\"message\":\"")), "{answer}");
    }
    let (status, answer) = post(address, "/v1/traces", AS_PROTOBUF, b"\x0a\xff");
    assert!(
        status == 400 && answer.contains("content-type: application/x-protobuf") && answer.contains("\x08\x03\x12"),
        "{answer}"
    );
    let answer = send(address, &request("GET", "/v1/traces", AS_JSON, b""));
    assert!(answer.starts_with("HTTP/1.1 405") && answer.to_ascii_lowercase().contains("allow: post"), "{answer}");
    let waits = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{AS_JSON}Content-Length: 9999999\r\n\r\n"
    );
    assert!(send(address, waits.as_bytes()).starts_with("HTTP/1.1 413"));
    assert_eq!(counter(&receiver, "otlp_refused_bodies_total"), 11.0);
    // Not the logs, and not who asked without sending anything.
    assert_eq!(receiver.refused_bodies(), RefusedBodies { bodies: 9, why: Some(Refusal::TooLarge) });
    assert_eq!(counter(&receiver, "otlp_spans_total"), 0.0);
}

#[test]
fn without_room_a_client_is_told_when_to_try_again() {
    let (receiver, address) = receiver(Bounds { queue_bytes_max: 1, ..Bounds::default() });
    assert_eq!(post(address, "/v1/traces", AS_JSON, JSON.as_bytes()).0, 200, "the first always fits");
    let (status, answer) = post(address, "/v1/traces", AS_JSON, JSON.as_bytes());
    assert!(status == 429 && answer.contains("retry-after: 1"), "{answer}");
    assert_eq!(receiver.refused_bodies(), RefusedBodies { bodies: 1, why: Some(Refusal::NoRoom) });
    assert_eq!(counter(&receiver, "otlp_refused_spans_total"), 1.0);
    assert_eq!(post(address, "/v1/traces", AS_JSON, JSON.as_bytes()).0, 200, "there is room again");
    let (receiver, address) = super::receiver(Bounds { pending_bytes_max: 10, ..Bounds::default() });
    assert_eq!(post(address, "/v1/traces", AS_JSON, JSON.as_bytes()).0, 429, "too much is on the way");
    assert_eq!(receiver.refused_bodies(), RefusedBodies { bodies: 1, why: Some(Refusal::NoRoom) });
    assert_eq!(counter(&receiver, "otlp_refused_bodies_total"), 1.0);
}

#[test]
fn a_client_that_stops_sending_is_dropped() {
    let (receiver, address) = receiver(small());
    let half = format!("POST /v1/traces HTTP/1.1\r\nHost: x\r\n{AS_JSON}Content-Length: 100\r\n\r\n{{");
    assert!(send(address, half.as_bytes()).starts_with("HTTP/1.1 408"));
    for silent in [&b""[..], b"PO", b"PRI ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST /v1/traces HTTP/1.1\r\nHost"] {
        // What matters is that the connection ends.
        send(address, silent);
    }
    assert_eq!(post(address, "/v1/traces", AS_JSON, JSON.as_bytes()).0, 200);
    assert_eq!(receiver.drain().spans.len(), 1);
}

#[test]
fn one_connection_too_many_is_closed() {
    let (receiver, address) = receiver(Bounds { connections_max: 2, ..Bounds::default() });
    let mut held: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    // That they are accepted is only sure once they are answered.
    for stream in &mut held {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
        assert!(stream.read(&mut [0; 1000]).expect("an answer") > 0);
    }
    assert_eq!(send(address, &request("GET", "/", "", b"")), "");
    assert_eq!(counter(&receiver, "otlp_refused_connections_total"), 1.0);
    drop(held);
    let mut left = 1_000;
    while post(address, "/v1/traces", AS_JSON, JSON.as_bytes()).0 != 200 {
        left -= 1;
        assert!(left > 0, "places are not given back");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_receiver_that_is_dropped_gives_its_port_back() {
    let (first, address) = receiver(Bounds::default());
    let held = TcpStream::connect(address).expect("it listens");
    assert!(holdup_otlp::Receiver::start("otlp", &[address], Bounds::default()).is_err(), "the port is taken");
    drop(first);
    assert!(holdup_otlp::Receiver::start("otlp", &[address], Bounds::default()).is_ok());
    drop(held);
}
