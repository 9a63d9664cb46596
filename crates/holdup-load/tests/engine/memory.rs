//! Whatever a server sends and however slowly it reads, the engine's memory stays as it was. It is the process's that is
//! measured: these tests rely on their runner to give each test a process of its own, as cargo-nextest does.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::play::{play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::http2::{Connection, DATA, END_HEADERS, HEADERS, RST_STREAM, STATUS_200};
use crate::servers::server;
use crate::servers::tls::{tls_server, trusting};

/// Most that a run may add, buffers and threads of the server in the same process included.
const MOST_BYTES: u64 = 12_000_000;

/// The most memory the process ever had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

/// Fails if `run` makes the process larger than it was after an ordinary run.
fn bounded(what: &str, run: impl FnOnce()) {
    let port = server(|s| http1::answer(s, OK, || ()));
    let load = "rate: 200, duration: 200ms, connections: 10";
    play(&scenario(&format!("http://127.0.0.1:{port}"), load, ""), None).all("ok");
    let before = peak_bytes();
    run();
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < MOST_BYTES, "{what}: {grown} bytes more than before");
}

/// Sends `begin` and then `part` for as long as it is taken.
fn flood(begin: &'static [u8], part: Vec<u8>) -> u16 {
    server(move |mut stream| {
        if http1::read(&mut stream).is_some() {
            let mut going = stream.write_all(begin).is_ok();
            while going {
                going = stream.write_all(&part).is_ok();
            }
        }
    })
}

/// Begins a response without an end.
fn begin(connection: &mut Connection<TcpStream>, streams: &mut Vec<u32>, stream: u32) -> bool {
    streams.push(stream);
    connection.send(HEADERS, END_HEADERS, stream, STATUS_200)
}

#[test]
fn floods() {
    let load = "rate: 50, duration: 200ms, connections: 10, open_all: true";
    let run = |port: u16, http: &str, outcome: &str| {
        let more = format!("http: {{max_response: 40MB, {http}}}");
        bounded(outcome, || play(&scenario(&format!("http://127.0.0.1:{port}"), load, &more), None).all(outcome));
    };
    let chunk = [&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    run(flood(chunked, chunk), "redirects: 0", "response_too_large");
    run(flood(b"HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 50_000]), "redirects: 0", "response_too_large");
    run(flood(b"HTTP/1.1 200 OK\r\nX: ", vec![b'x'; 50_000]), "redirects: 0", "head_too_large");
    let cookies = b"Set-Cookie: a=0123456789012345678901234567890123456789; Path=/\r\n".repeat(700);
    run(flood(b"HTTP/1.1 200 OK\r\n", cookies), "cookies: true", "head_too_large");
    let port = server(|stream| {
        let Some(mut connection) = Connection::accept(stream, &[]) else { return };
        // It reads what the client sends meanwhile: a client whose window updates are not taken stops reading at
        // some time. One connection may carry several requests: each gets its part in turn until it is reset.
        let Some(first) = connection.request() else { return };
        let mut streams = Vec::new();
        let mut going = begin(&mut connection, &mut streams, first);
        let part = [b'x'; 16_000];
        while going {
            going = streams.iter().all(|stream| connection.send(DATA, 0, *stream, &part));
            while going && (streams.is_empty() || connection.has_more()) {
                let Some(frame) = connection.any_frame() else { return };
                match frame.kind {
                    HEADERS => going = begin(&mut connection, &mut streams, frame.stream),
                    RST_STREAM => streams.retain(|stream| *stream != frame.stream),
                    _ => {}
                }
            }
        }
    });
    run(port, "version: 2", "response_too_large");
}

/// Eight bodies of 10 MB on their way at once, to servers that read slowly: there is one copy of it.
#[test]
fn uploads() {
    const BODY: usize = 10_000_000;
    fn slowly(mut stream: impl std::io::Read + std::io::Write) {
        let mut buffer = vec![0; 50_000];
        while stream.read(&mut buffer).is_ok_and(|n| n > 0) {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let plain = format!("http://127.0.0.1:{}", server(slowly));
    let (http1, http2) = (tls_server(&["http/1.1"], slowly), tls_server(&["h2"], slowly));
    for (target, more) in [
        (plain, String::new()),
        (format!("https://127.0.0.1:{http1}"), trusting("")),
        (format!("https://127.0.0.1:{http2}"), trusting("version: 2")),
    ] {
        let load = "rate: 80, duration: 100ms, connections: 8, timeout: 500ms";
        let more = format!("{more}\noperations: [{{name: op, post: /, body: x}}]");
        let mut scenario = scenario(&target, load, &more);
        scenario.operations[0].body = Some("x".repeat(BODY));
        // The body in its laid-out form, beside the text it is made of, is the scenario's and not a connection's.
        let laid_out = vec![1_u8; BODY];
        assert!(laid_out.iter().all(|b| *b == 1));
        drop(laid_out);
        bounded(&target, || {
            play(&scenario, None).all("timeout");
        });
    }
}
