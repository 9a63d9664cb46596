//! Servers that do everything wrong over HTTP/1.1: each has an outcome of its own, and the run goes on to its end.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::play::{Played, at_once, keep_going, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::{closed_port, reset, server};

/// 20 requests over 10 connections.
fn run(port: u16, more: &str) -> Played {
    let target = format!("http://127.0.0.1:{port}");
    play(&scenario(&target, "rate: 200, duration: 100ms, connections: 10", more), None)
}

/// 20 requests over as many connections, which are not answered in the second that each has.
fn times_out(port: u16) {
    let target = format!("http://127.0.0.1:{port}");
    play(&scenario(&target, "rate: 200, duration: 100ms, connections: 20, timeout: 1s", ""), None).all("timeout");
}

/// A server that does this with each connection once it has a request.
fn upon_request(act: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    server(move |mut stream| {
        if http1::read(&mut stream).is_some() {
            act(stream);
        }
    })
}

fn says(response: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync + 'static {
    move |mut stream| {
        let _ = stream.write_all(response);
        // It is the client who ends it, if it does not like what it hears.
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// Keeps sending `part` with `pause` in between, after `begin`, until the client goes.
fn without_end(begin: &'static [u8], part: Vec<u8>, pause: Duration) -> impl Fn(TcpStream) + Send + Sync + 'static {
    move |mut stream| {
        let mut going = stream.write_all(begin).is_ok();
        while going {
            thread::sleep(pause);
            going = stream.write_all(&part).is_ok();
        }
    }
}

#[test]
fn a_response_cut_short_is_connection_closed() {
    for part in [&b""[..], b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
        let port = upon_request(move |mut stream| stream.write_all(part).unwrap());
        run(port, "").all("connection_closed");
    }
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    run(upon_request(move |mut stream| stream.write_all(chunked).unwrap()), "").all("connection_closed");
}

#[test]
fn a_reset_is_connection_reset() {
    run(upon_request(reset), "").all("connection_reset");
    let port = upon_request(|mut stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").unwrap();
        thread::sleep(Duration::from_millis(20));
        reset(stream);
    });
    run(port, "").all("connection_reset");
}

#[test]
fn garbage_is_bad_response() {
    let responses: [&[u8]; 8] = [
        b"220 mail.example ESMTP\r\n",
        b"\x00\x01\x02\x03\xff\xff\xff\xff",
        b"\r\n\r\n\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot hex\r\n",
    ];
    at_once(responses, |response| run(upon_request(says(response)), "").all("bad_response"));
}

#[test]
fn a_server_that_speaks_first_is_a_bad_response() {
    // It has spoken before it is asked, so that the request meets a connection that is out of step already.
    let port = server(|mut stream| {
        let _ = stream.write_all(b"220 ready\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    run(port, "").all("bad_response");
}

#[test]
fn a_head_without_end() {
    let line = b"X-Filler: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n".to_vec();
    let begin: &[u8] = b"HTTP/1.1 200 OK\r\n";
    run(upon_request(without_end(begin, line.clone(), Duration::ZERO)), "").all("head_too_large");
    run(upon_request(without_end(begin, vec![b'a'; 10_000], Duration::ZERO)), "").all("head_too_large");
    // A field every 50 ms is no end either, but too little to be too much: the deadline ends it.
    times_out(upon_request(without_end(begin, line, Duration::from_millis(50))));
}

#[test]
fn interim_responses_without_end() {
    let interim = b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec();
    run(upon_request(without_end(b"", interim.clone(), Duration::ZERO)), "").all("head_too_large");
    times_out(upon_request(without_end(b"", interim, Duration::from_millis(50))));
    let few: &'static [u8] =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    run(server(move |s| http1::answer(s, few, || ())), "").all("ok");
}

#[test]
fn a_body_that_is_announced_as_too_large_is_given_up_at_once() {
    let port = upon_request(says(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\nand so on"));
    let played = run(port, "");
    played.all("response_too_large");
    assert!(played.rows.iter().all(|r| r.response_bytes < 1_000), "what came with the head is all that was taken");
}

#[test]
fn a_body_without_end_is_given_up_at_the_limit() {
    let chunk = [&b"2000\r\n"[..], &[b'x'; 0x2000], b"\r\n"].concat();
    let port =
        upon_request(without_end(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk, Duration::ZERO));
    let played = run(port, "http: {max_response: 1MB}");
    played.all("response_too_large");
    let taken = played.rows.iter().map(|r| r.response_bytes);
    assert!(taken.clone().all(|n| (1_000_000..2_000_000).contains(&n)), "{:?}", taken.collect::<Vec<_>>());
}

#[test]
fn the_limit_holds_for_a_body_that_comes_at_once() {
    for body in ["Content-Length: 5\r\n\r\nabcde", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"] {
        let response = format!("HTTP/1.1 200 OK\r\n{body}");
        let port = server(move |s| http1::answer(s, response.as_bytes(), || ()));
        run(port, "http: {max_response: 4B}").all("response_too_large");
        run(port, "http: {max_response: 5B}").all("ok");
    }
}

#[test]
fn silence_is_timeout() {
    times_out(upon_request(says(b"")));
}

#[test]
fn a_server_that_never_accepts_is_timeout() {
    // A queue of one; once the kernel has filled it, it drops what comes, and the client goes on asking.
    let listener = deaf_listener();
    times_out(listener.local_addr().unwrap().port());
}

/// A listener with the shortest queue there is.
fn deaf_listener() -> TcpListener {
    use std::os::fd::AsRawFd as _;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: it is an open socket; listening again changes its queue.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    listener
}

#[test]
fn a_closed_port_is_connect_failed() {
    let scenario = scenario(&format!("http://127.0.0.1:{}", closed_port()), "rate: 200, duration: 100ms", "");
    play(&keep_going(scenario), None).all("connect_failed");
}

#[test]
fn a_name_without_address_is_name_unresolved() {
    // RFC 6761: no name under .invalid ever has one.
    let scenario = scenario("http://holdup.invalid", "rate: 200, duration: 100ms", "");
    play(&keep_going(scenario), None).all("name_unresolved");
}

#[test]
fn http_statuses_are_errors_whose_connection_is_kept() {
    let port = server(|s| {
        let mut count = 0;
        http1::serve(s, |_| {
            count += 1;
            let status = ["404 Not Found", "500 Oops", "503 Busy", "200 OK"][count % 4];
            format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nno").into_bytes()
        });
    });
    let target = format!("http://127.0.0.1:{port}");
    let played = play(&scenario(&target, "rate: 100, duration: 400ms, connections: 1", ""), None);
    let counts = played.outcomes();
    assert_eq!((counts["ok"], counts["http_status"]), (10, 30), "one connection counted on: {counts:?}");
}

#[test]
fn one_server_that_does_all_of_it() {
    let port = server(|mut stream| {
        // What a connection does follows from the client's port, which the kernel picks at random.
        let kind = stream.peer_addr().map_or(0, |a| a.port() / 2 % 15);
        if http1::read(&mut stream).is_none() {
            return;
        }
        let flood = |stream: TcpStream, begin: &'static [u8]| {
            without_end(begin, vec![b'a'; 10_000], Duration::ZERO)(stream);
        };
        match kind {
            0 => {}
            1 => reset(stream),
            2 => says(b"garbage\r\n\r\n")(stream),
            3 => flood(stream, b"HTTP/1.1 200 OK\r\nX: "),
            4 => says(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")(stream),
            5 => flood(stream, b"HTTP/1.1 200 OK\r\n\r\n"),
            6 => says(b"")(stream),
            7 => says(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")(stream),
            8 => says(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")(stream),
            9 => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
            }
            _ => {
                // Fine, for one response or two, and then gone without a word.
                let _ = stream.write_all(OK);
                if kind % 2 == 0 && http1::read(&mut stream).is_some() {
                    let _ = stream.write_all(OK);
                }
            }
        }
    });
    let target = format!("http://127.0.0.1:{port}");
    let load = "rate: 500, duration: 1s, connections: 100, timeout: 1s";
    let played = play(&scenario(&target, load, "http: {max_response: 1MB}"), None);
    let counts = played.outcomes();
    for kind in ["ok", "connection_closed", "connection_reset", "bad_response", "head_too_large", "response_too_large"]
    {
        assert!(counts.contains_key(kind), "no {kind}: {counts:?}");
    }
    assert!(counts.contains_key("timeout") && counts.contains_key("http_status"), "{counts:?}");
    assert_eq!(played.offered(), 500);
}
