//! Servers that do everything wrong over HTTP/2: what hits a stream ends one request, what hits the connection ends
//! those on it, and the run goes on with the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::play::{Played, play, scenario};
use crate::servers::http1;
use crate::servers::http2::{
    CONTINUATION, Connection, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS, PING, STATUS_200, frame, redirect_to,
};
use crate::servers::server;

type Http2 = Connection<std::net::TcpStream>;

/// A server that does this with each connection, and how many there were.
fn http2_server(settings: &'static [(u16, u32)], act: impl Fn(Http2) + Send + Sync + 'static) -> (u16, Arc<AtomicU32>) {
    let connections = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&connections);
    let port = server(move |stream| {
        // The check before the run opens one and says nothing on it.
        if let Some(connection) = Connection::accept(stream, settings) {
            count.fetch_add(1, Ordering::Relaxed);
            act(connection);
        }
    });
    (port, connections)
}

/// 40 requests, each of which finds one of 2 connections with 20 streams each.
fn run(port: u16, http: &str) -> Played {
    run_at(port, "rate: 400, duration: 100ms, connections: 2", http)
}

fn run_at(port: u16, load: &str, http: &str) -> Played {
    let more = format!("http: {{version: 2, streams: 20{http}}}");
    play(&scenario(&format!("http://127.0.0.1:{port}"), load, &more), None)
}

/// The same by users who have one connection.
fn run_closed(port: u16, http: &str) -> Played {
    let load = "users: 8, duration: 300ms";
    let more = format!("http: {{version: 2, streams: 8{http}}}");
    play(&scenario(&format!("http://127.0.0.1:{port}"), load, &more), None)
}

#[test]
fn a_server_that_speaks_http1_or_garbage() {
    for response in [&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], &[0xff; 100], &[0; 9]] {
        let port = server(move |s| http1::answer(s, response, || ()));
        run(port, "").all("bad_response");
    }
    let (port, _) = http2_server(&[], |mut c| {
        while let Some(stream) = c.request() {
            c.send(HEADERS, END_HEADERS, stream, &[0xff; 40]);
        }
    });
    run(port, "").all("bad_response");
}

#[test]
fn a_stream_that_is_reset_leaves_the_connection_alone() {
    let (port, connections) = http2_server(&[], |mut c| {
        while let Some(stream) = c.request() {
            if stream / 2 % 2 == 0 {
                c.reset(stream, 2);
            } else {
                c.answer(stream);
            }
        }
    });
    let played = run(port, "");
    let counts = played.outcomes();
    assert_eq!(counts["ok"] + counts["stream_reset"], 40, "{counts:?}");
    assert!(counts["stream_reset"] >= 19 && connections.load(Ordering::Relaxed) <= 2, "{counts:?}");
}

#[test]
fn a_stream_that_is_refused_is_sent_once_more() {
    const REFUSED: u32 = 7;
    let (port, _) = http2_server(&[], |mut c| {
        while let Some(stream) = c.request() {
            if stream / 2 % 3 == 0 {
                c.reset(stream, REFUSED)
            } else {
                c.answer(stream)
            };
        }
    });
    // Every third is refused, and then taken, as the only user's next stream is not refused.
    let load = "users: 1, duration: 300ms";
    let played = play(&scenario(&format!("http://127.0.0.1:{port}"), load, "http: {version: 2}"), None);
    played.all("ok");
    assert!(played.offered() > 1, "{}", played.offered());
    let (port, _) = http2_server(&[], |mut c| {
        while let Some(stream) = c.request() {
            c.reset(stream, REFUSED);
        }
    });
    run(port, "").all("stream_reset");
}

#[test]
fn a_connection_that_goes_away_is_followed_by_another() {
    // It looks at five requests and says so; what was sent after them goes to the next connection.
    let act = |mut c: Http2| {
        let mut last = 0;
        for _ in 0..5 {
            let Some(stream) = c.request() else { return };
            last = stream;
            thread::sleep(Duration::from_millis(2));
            c.answer(stream);
        }
        // With a ping, as servers do that want to know when the client has heard of it: what answers that is for this
        // connection and not for the next.
        let mut all = frame(PING, 0, 0, 8);
        all.extend([1; 8]);
        all.extend(frame(GOAWAY, 0, 0, 8));
        all.extend([last.to_be_bytes(), [0; 4]].concat());
        c.raw(&all);
        // Most go on reading until the client closes.
        while c.read().is_some() {}
    };
    let (port, connections) = http2_server(&[], act);
    run(port, "").all("ok");
    assert!(connections.load(Ordering::Relaxed) >= 8, "{connections:?}");
    let (port, connections) = http2_server(&[], act);
    let played = run_closed(port, "");
    played.all("ok");
    let answered = played.offered() as u32;
    assert!(connections.load(Ordering::Relaxed) >= answered / 5 && answered > 5, "{answered} on {connections:?}");
}

#[test]
fn those_who_are_sent_on_come_before_lanes_that_only_might_be_used() {
    // Eight of thirty are on their way when the first connection goes away; the second has room for eight, of a hundred.
    let first = AtomicU32::new(0);
    let (port, _) = http2_server(&[(MAX_CONCURRENT_STREAMS, 8)], move |mut c| {
        if first.fetch_add(1, Ordering::Relaxed) == 0 {
            let streams: Vec<u32> = (0..8).map_while(|_| c.request()).collect();
            c.answer(streams[0]);
            c.send(GOAWAY, 0, 0, &[streams[0].to_be_bytes(), [0; 4]].concat());
        }
        while let Some(stream) = c.request() {
            c.answer(stream);
        }
    });
    let load = "rate: 3000, duration: 10ms, connections: 1, timeout: 20s";
    let more = "http: {version: 2, streams: 100}";
    play(&scenario(&format!("http://127.0.0.1:{port}"), load, more), None).all("ok");
}

#[test]
fn one_that_closes_between_requests_costs_none() {
    // No GOAWAY, only the end; whoever had just sent a request could not know.
    let (port, connections) = http2_server(&[], |mut c| {
        for _ in 0..5 {
            let Some(stream) = c.request() else { return };
            c.answer(stream);
        }
    });
    // One stream on each: of several, some could meet such an end twice, and they are sent again once.
    let load = "rate: 400, duration: 100ms, connections: 4";
    play(&scenario(&format!("http://127.0.0.1:{port}"), load, "http: {version: 2}"), None).all("ok");
    assert!(connections.load(Ordering::Relaxed) >= 8, "{connections:?}");
}

#[test]
fn one_that_closes_or_dies_in_the_middle_of_a_response() {
    let (port, _) = http2_server(&[], |mut c| {
        if let Some(stream) = c.request() {
            c.send(HEADERS, END_HEADERS, stream, STATUS_200);
            c.send(DATA, 0, stream, b"half");
            c.end();
        }
    });
    run(port, "").all("connection_closed");
}

#[test]
fn nothing_at_all_is_timeout_and_the_connection_is_kept() {
    let (port, connections) = http2_server(&[], |mut c| while c.read().is_some() {});
    run_at(port, "rate: 400, duration: 100ms, connections: 2, timeout: 1s", "").all("timeout");
    assert!(connections.load(Ordering::Relaxed) <= 2, "streams are given up, not connections: {connections:?}");
}

#[test]
fn a_body_without_end_is_given_up_and_the_connection_is_kept() {
    let (port, connections) = http2_server(&[], |mut c| {
        let chunk = vec![b'x'; 16_000];
        while let Some(stream) = c.request() {
            let mut going = c.send(HEADERS, END_HEADERS, stream, STATUS_200);
            for _ in 0..10 {
                going = going && c.send(DATA, 0, stream, &chunk);
            }
        }
    });
    run(port, ", max_response: 100kB").all("response_too_large");
    assert!(connections.load(Ordering::Relaxed) <= 2, "{connections:?}");
}

#[test]
fn a_body_above_the_limit_ends_its_own_request_and_no_other() {
    // Whole responses that come in one piece: of each two, one is too large.
    let (port, _) = http2_server(&[(MAX_CONCURRENT_STREAMS, 8)], |mut c| {
        loop {
            let mut all = Vec::new();
            for _ in 0..2 {
                let Some(stream) = c.request() else { return };
                let body = vec![b'x'; if stream / 2 % 2 == 0 { 2_000 } else { 900 }];
                for (kind, flags, payload) in [(HEADERS, END_HEADERS, STATUS_200), (DATA, END_STREAM, &body)] {
                    all.extend(frame(kind, flags, stream, payload.len()));
                    all.extend(payload);
                }
            }
            c.raw(&all);
        }
    });
    // An even number, so that the last has its pair as well.
    let played = run_at(port, "rate: 400, duration: 100ms, connections: 1", ", max_response: 1kB");
    let counts = played.outcomes();
    assert_eq!((counts["ok"], counts["response_too_large"]), (20, 20), "{counts:?}");
    assert!(played.rows.iter().all(|r| (r.response_bytes <= 1_000) == (r.outcome == "ok")));
}

#[test]
fn floods_of_frames_are_bounded() {
    let flood = |kind: u8, flags: u8, payload: &'static [u8]| {
        let (port, _) = http2_server(&[], move |mut c| {
            if c.request().is_some() {
                let mut bytes = frame(kind, flags, 0, payload.len());
                bytes.extend(payload);
                let many = bytes.repeat(1_000);
                while c.raw(&many) {}
            }
        });
        run(port, "").all("bad_response");
    };
    flood(PING, 0, &[7; 8]);
    flood(4, 0, &[]);
    flood(0xbe, 0, b"unknown");
    let (port, _) = http2_server(&[], |mut c| {
        if let Some(stream) = c.request() {
            c.send(HEADERS, 0, stream, STATUS_200);
            while c.send(CONTINUATION, 0, stream, &[0; 8_000]) {}
        }
    });
    run(port, "").all("head_too_large");
}

#[test]
fn a_redirect_by_a_connection_that_then_goes() {
    // Each connection redirects once, answers no more, and ends; with and without a word.
    for farewell in [true, false] {
        let redirected = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&redirected);
        let (port, _) = http2_server(&[], move |mut c| {
            let Some(stream) = c.request() else { return };
            if count.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
                c.answer(stream);
                while let Some(stream) = c.request() {
                    c.answer(stream);
                }
                return;
            }
            let block = redirect_to("/next");
            let mut all = frame(HEADERS, END_HEADERS | END_STREAM, stream, block.len());
            all.extend(block);
            if farewell {
                all.extend(frame(GOAWAY, 0, 0, 8));
                all.extend([stream.to_be_bytes(), [0; 4]].concat());
            }
            c.raw(&all);
        });
        let load = "rate: 50, duration: 400ms, connections: 1";
        let more = "http: {version: 2}";
        play(&scenario(&format!("http://127.0.0.1:{port}"), load, more), None).all("ok");
    }
}

/// More streams than the server takes at once: the rest wait, in the client's queue, and none is lost.
#[test]
fn streams_beyond_the_servers_limit_wait_for_their_turn() {
    const LIMIT: u32 = 4;
    let (port, connections) =
        http2_server(&[(MAX_CONCURRENT_STREAMS, LIMIT), (INITIAL_WINDOW_SIZE, 1 << 20)], |mut c| {
            let mut open = Vec::new();
            // It answers four at a time, 20 ms after the last of them came.
            while let Some(stream) = c.request() {
                open.push(stream);
                if open.len() == LIMIT as usize {
                    thread::sleep(Duration::from_millis(20));
                    for stream in open.drain(..) {
                        c.answer(stream);
                    }
                }
            }
        });
    let load = "rate: 500, duration: 400ms, connections: 1";
    let more = "http: {version: 2, streams: 50}";
    let played = play(&scenario(&format!("http://127.0.0.1:{port}"), load, more), None);
    played.all("ok");
    assert_eq!((played.offered(), connections.load(Ordering::Relaxed)), (200, 1));
    // 4 every 20 ms are 200/s of the 500/s: the last of 200 requests waits some 0.6 s, and the typical one 0.3 s.
    let latencies = &played.operation().latencies;
    let ms = |ns: u64| ns as f64 / 1e6;
    let (response, lag) =
        (ms(latencies.response.value_at_quantile(0.5)), ms(latencies.send_lag.value_at_quantile(0.5)));
    assert!(response > 200.0 && lag < response / 4.0, "the median takes {response} ms, the send lag is {lag} ms");
    let queued = played.rows.iter().filter(|r| r.ready_at.unwrap() - r.intended_at > 100_000_000).count();
    assert!(queued > 120, "{queued} of 200 waited for a stream");
}

#[test]
fn users_beyond_the_servers_limit_wait_for_their_turn() {
    let (port, connections) = http2_server(&[(MAX_CONCURRENT_STREAMS, 3)], |mut c| {
        while let Some(stream) = c.request() {
            c.answer(stream);
        }
    });
    let played = run_closed(port, "");
    played.all("ok");
    assert!(played.offered() > 8 && connections.load(Ordering::Relaxed) == 1, "{} requests", played.offered());
}
