//! Large bodies both ways, slow readers, and servers that answer before they have read: nothing is lost, nothing stalls,
//! and what does not fit into the socket waits without being copied.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use holdup_load::scenario::Scenario;

use crate::play::{play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::http2::{Connection, DATA, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE};
use crate::servers::server;
use crate::servers::tls::{tls_server, trusting};

const UPLOAD: usize = 5_000_000;

/// Four uploads over two connections.
fn upload(target: &str, more: &str) -> Scenario {
    let more = format!("{more}\noperations: [{{name: op, post: /, body: x}}]");
    let mut scenario = scenario(target, "rate: 20, duration: 200ms, connections: 2", &more);
    scenario.operations[0].body = Some("x".repeat(UPLOAD));
    scenario
}

/// Reads requests slowly: some 60 kB, a pause, and so on. Bytes of bodies so far.
fn read_slowly(mut stream: impl Read + Write, total: &AtomicU64) {
    while let Some(asked) = http1::read_head(&mut stream) {
        let mut left = asked.body;
        let mut buffer = vec![0; 60_000];
        while left > 0 {
            let room = left.min(buffer.len());
            let Ok(count @ 1..) = stream.read(&mut buffer[..room]) else { return };
            left -= count;
            total.fetch_add(count as u64, Ordering::Relaxed);
            thread::sleep(Duration::from_micros(500));
        }
        if stream.write_all(OK).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

#[test]
fn uploads_to_a_slow_reader() {
    let total = Arc::new(AtomicU64::new(0));
    let (plain, encrypted) = (Arc::clone(&total), Arc::clone(&total));
    let port = server(move |s| read_slowly(s, &plain));
    play(&upload(&format!("http://127.0.0.1:{port}"), ""), None).all("ok");
    assert_eq!(total.swap(0, Ordering::Relaxed), 4 * UPLOAD as u64);
    let port = tls_server(&["http/1.1"], move |s| read_slowly(s, &encrypted));
    play(&upload(&format!("https://127.0.0.1:{port}"), &trusting("")), None).all("ok");
    assert_eq!(total.load(Ordering::Relaxed), 4 * UPLOAD as u64);
}

/// The connection's window, and each stream's, that the server gives: all at once, or bit by bit.
fn take_uploads(stream: impl Read + Write, at_once: bool, total: &AtomicU64) {
    let settings: &[(u16, u32)] = if at_once { &[(INITIAL_WINDOW_SIZE, 1 << 30)] } else { &[] };
    let Some(mut connection) = Connection::accept(stream, settings) else { return };
    if at_once {
        connection.widen(0, 1 << 30);
    }
    while let Some(frame) = connection.read() {
        if !matches!(frame.kind, HEADERS | DATA) {
            continue;
        }
        if frame.kind == DATA {
            total.fetch_add(frame.payload.len() as u64, Ordering::Relaxed);
        }
        if frame.flags & END_STREAM != 0 {
            connection.answer(frame.stream);
        }
        if frame.kind == DATA && !at_once && !frame.payload.is_empty() {
            connection.widen(0, frame.payload.len() as u32);
            if frame.flags & END_STREAM == 0 {
                connection.widen(frame.stream, frame.payload.len() as u32);
            }
        }
    }
}

#[test]
fn uploads_over_http2_as_the_windows_allow() {
    for at_once in [true, false] {
        let total = Arc::new(AtomicU64::new(0));
        let (plain, encrypted) = (Arc::clone(&total), Arc::clone(&total));
        let port = server(move |s| take_uploads(s, at_once, &plain));
        play(&upload(&format!("http://127.0.0.1:{port}"), "http: {version: 2, streams: 2}"), None).all("ok");
        assert_eq!(total.swap(0, Ordering::Relaxed), 4 * UPLOAD as u64);
        let port = tls_server(&["h2"], move |s| take_uploads(s, at_once, &encrypted));
        play(&upload(&format!("https://127.0.0.1:{port}"), &trusting("version: 2, streams: 2")), None).all("ok");
        assert_eq!(total.load(Ordering::Relaxed), 4 * UPLOAD as u64);
    }
}

#[test]
fn a_server_that_answers_before_it_has_read() {
    let full = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // One that closes well, and one that closes with unread bytes, which is a reset for whoever still writes.
    for closes_well in [true, false] {
        let port = server(move |mut stream| {
            if http1::read_head(&mut stream).is_some() {
                let _ = stream.write_all(full);
                if closes_well {
                    let _ = stream.shutdown(Shutdown::Write);
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            }
        });
        let played = play(&upload(&format!("http://127.0.0.1:{port}"), ""), None);
        played.all("http_status");
        assert!(played.rows.iter().all(|r| r.status == Some(413)));
    }
    // One that says nothing of closing, and goes on: the rest of the body is no part of another request.
    let port = server(|mut stream| {
        while let Some(asked) = http1::read_head(&mut stream) {
            assert_eq!(asked.body, UPLOAD, "a request that is none");
            if stream.write_all(OK).is_err()
                || std::io::copy(&mut (&mut stream).take(UPLOAD as u64), &mut std::io::sink()).is_err()
            {
                return;
            }
        }
    });
    play(&upload(&format!("http://127.0.0.1:{port}"), ""), None).all("ok");
}

#[test]
fn a_stream_that_is_answered_before_its_body_is_there() {
    const NO_ERROR: u32 = 0;
    let port = server(|stream| {
        let Some(mut connection) = Connection::accept(stream, &[]) else { return };
        while let Some(frame) = connection.read() {
            if frame.kind == HEADERS {
                connection.answer(frame.stream);
                connection.reset(frame.stream, NO_ERROR);
            }
        }
    });
    play(&upload(&format!("http://127.0.0.1:{port}"), "http: {version: 2, streams: 2}"), None).all("ok");
}

const DOWNLOAD: usize = 200_000_000;

fn give(mut stream: impl Read + Write) {
    let chunk = vec![b'x'; 100_000];
    while http1::read(&mut stream).is_some() {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {DOWNLOAD}\r\n\r\n");
        let mut going = stream.write_all(head.as_bytes()).is_ok();
        for _ in 0..DOWNLOAD / chunk.len() {
            going = going && stream.write_all(&chunk).is_ok();
        }
        if !going {
            return;
        }
        let _ = stream.flush();
    }
}

/// Over HTTP/2, where windows come into it, nginx gives it: see `nginx`.
#[test]
fn a_large_response_is_read_whole() {
    let load = "rate: 10, duration: 100ms, connections: 1";
    for (target, more) in [
        (format!("http://127.0.0.1:{}", server(give)), String::new()),
        (format!("https://127.0.0.1:{}", tls_server(&[], give)), trusting("")),
    ] {
        let played = play(&scenario(&target, load, &more), None);
        played.all("ok");
        assert!(played.rows.iter().all(|r| (DOWNLOAD..DOWNLOAD + 100).contains(&(r.response_bytes as usize))));
    }
}
