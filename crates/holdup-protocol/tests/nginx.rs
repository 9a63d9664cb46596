//! Both parsers against a real nginx on private ports: clear text, HTTP/2 with prior knowledge. Without nginx it is
//! skipped and says so; with CI set that is a failure.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use holdup_protocol::http::http1::{self, HeadMemo, Parser, Progress};
use holdup_protocol::http::http2::{Config, Event, Session, Template};
use holdup_protocol::http::{Request, WantedParts};
use holdup_testing::{Nginx, free_port};

const LARGE: usize = 3_000_000;

/// nginx closes an HTTP/2 connection after so many requests, with a GOAWAY.
const REQUESTS_A_CONNECTION: u32 = 250;

struct Server {
    _nginx: Nginx,
    http1_port: u16,
    http2_port: u16,
}

fn start() -> Option<Server> {
    let (http1_port, http2_port) = (free_port(), free_port());
    let http = format!(
        "access_log off;
        client_max_body_size 0;
        server {{
            listen 127.0.0.1:{http1_port};
            root html;
            location /moved {{ add_header Set-Cookie a=1; add_header Set-Cookie b=2; return 302 /small; }}
            location /empty {{ return 204; }}
            location /chunked {{ proxy_pass http://127.0.0.1:{http1_port}/large; gzip on; gzip_types *; gzip_proxied any; }}
            location /ok {{ return 200 ok; }}
        }}
        server {{
            listen 127.0.0.1:{http2_port} http2;
            root html;
            keepalive_requests {REQUESTS_A_CONNECTION};
            http2_max_concurrent_streams 20;
            location /moved {{ add_header Set-Cookie a=1; return 302 /small; }}
            location /empty {{ return 204; }}
            location /upload {{ proxy_pass http://127.0.0.1:{http1_port}/ok; }}
        }}"
    );
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("html")).expect("a folder");
    fs::write(dir.path().join("html/small"), "0123456789").expect("a file");
    fs::write(dir.path().join("html/large"), vec![b'x'; LARGE]).expect("a file");
    let nginx = Nginx::start(dir, 64, &http, http2_port)?;
    Some(Server { _nginx: nginx, http1_port, http2_port })
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("nginx listens");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    stream
}

fn request<'a>(method: &'a str, path: &'a str, body: Option<&'a [u8]>) -> Request<'a> {
    Request { method, scheme: "http", authority: "test.example", path, headers: &[], body }
}

#[test]
fn http1_on_one_connection() {
    let Some(nginx) = start() else { return };
    let mut stream = connect(nginx.http1_port);
    let mut parser = Parser::new();
    let mut memo = HeadMemo::new();
    let gzip = [("Accept-Encoding", "gzip")];
    for round in 0..3 {
        // Buffers of odd sizes cut responses everywhere.
        let mut buffer = vec![0; [7, 1_001, 65_536][round]];
        for (method, path, status, body) in [
            ("GET", "/small", 200, Some(10)),
            ("HEAD", "/small", 200, Some(0)),
            ("GET", "/large", 200, Some(LARGE as u64)),
            ("GET", "/moved", 302, None),
            ("GET", "/empty", 204, Some(0)),
            ("GET", "/none", 404, None),
            ("GET", "/chunked", 200, None),
        ] {
            let request = Request { headers: &gzip, ..request(method, path, None) };
            stream.write_all(&http1::request_bytes(&request, true)).expect("sent");
            let keep = round != 1;
            let body_bytes = if keep { 100_000 } else { 0 };
            parser.begin(
                method == "HEAD",
                WantedParts { location: true, set_cookie: true, head: keep, body_bytes, ..WantedParts::default() },
            );
            loop {
                let count = stream.read(&mut buffer).expect("an answer");
                assert!(count > 0, "closed in the middle of {path}");
                match parser.feed_with(&buffer[..count], &mut memo).expect("a good answer") {
                    Progress::More => {}
                    Progress::Done { used } => {
                        assert_eq!(used, count);
                        break;
                    }
                }
            }
            assert_eq!(parser.status(), status, "{path}");
            assert!(parser.keep_alive(), "{path}");
            if let Some(body) = body {
                assert_eq!(parser.body_bytes(), body, "{path}");
            }
            let server = parser.fields().find(|(name, _)| name.eq_ignore_ascii_case(b"server"));
            assert_eq!(server.is_some_and(|(_, value)| value.starts_with(b"nginx")), keep, "{path}");
            let kept = if keep { parser.body_bytes().min(100_000) } else { 0 };
            assert_eq!(parser.body().len() as u64, kept, "{path}");
            assert_eq!(parser.body_is_cut(), parser.body_bytes() > kept, "{path}");
            if path == "/moved" {
                let head = parser.head();
                assert!(head.location.as_ref().is_some_and(|location| location.ends_with(b"/small")));
                assert_eq!(head.set_cookie.len(), 2);
            }
            if path == "/chunked" {
                assert!(parser.expected_body().is_none() && parser.body_bytes() > 1_000, "it is chunked and gzipped");
            }
        }
    }
}

/// What came of a request: status, body bytes, fields; and whether it is whole.
#[derive(Clone, Debug, Default, PartialEq)]
struct Answer {
    status: u16,
    bytes: usize,
    fields: usize,
    ended: bool,
}

/// Sends `count` requests, as many at once as there is room for, on as many connections as it takes.
fn ask(port: u16, buffer: usize, count: u32, template: impl Fn(u32) -> Template) -> (Vec<Answer>, u32) {
    let wanted = WantedParts { location: true, set_cookie: true, ..WantedParts::default() };
    let config = Config { max_streams: 50, wanted };
    let mut answers: BTreeMap<u32, Answer> = BTreeMap::new();
    let mut open: Vec<u32> = (0..count).rev().collect();
    let mut connections = 0;
    let mut buffer = vec![0; buffer];
    while answers.values().filter(|answer| answer.ended).count() < count as usize {
        connections += 1;
        let mut stream = connect(port);
        let mut session = Session::new(config);
        loop {
            while let (true, Some(&tag)) = (session.room() > 0, open.last()) {
                assert!(session.send(&template(tag), tag));
                open.pop();
            }
            while !session.output().is_empty() {
                // In small pieces, so that what it writes meanwhile is read below and nothing waits for each other.
                let piece = session.output().len().min(100_000);
                stream.write_all(&session.output()[..piece]).expect("sent");
                session.consumed(piece);
            }
            if session.open_streams() == 0 && (open.is_empty() || session.room() == 0) {
                break;
            }
            let read = stream.read(&mut buffer).expect("an answer");
            assert!(read > 0, "closed with {} streams open", session.open_streams());
            let mut sink = |event: Event<'_>| match event {
                Event::Status { tag, status } => answers.entry(tag).or_default().status = status,
                Event::Header { tag, .. } => answers.entry(tag).or_default().fields += 1,
                Event::Data { tag, bytes } => answers.entry(tag).or_default().bytes += bytes.len(),
                Event::End { tag } => answers.entry(tag).or_default().ended = true,
                Event::Refused { tag } => open.push(tag),
                Event::GoAway { code, .. } => assert_eq!(code, 0),
                Event::Reset { tag, code } => panic!("{tag} reset with {code}"),
            };
            session.feed(&buffer[..read], &mut sink).expect("a good answer");
        }
    }
    (answers.into_values().collect(), connections)
}

#[test]
fn http2_many_requests_over_connections_that_end() {
    let Some(nginx) = start() else { return };
    let paths = ["/small", "/empty", "/moved", "/none", "/small"];
    let templates = paths.map(|path| Template::new(&request("GET", path, None)));
    let head = Template::new(&request("HEAD", "/small", None));
    for buffer in [13, 65_536] {
        let (answers, connections) = ask(nginx.http2_port, buffer, 2_000, |tag| {
            if tag % 7 == 0 { head.clone() } else { templates[tag as usize % 5].clone() }
        });
        assert!(connections >= 2_000 / REQUESTS_A_CONNECTION, "{connections}");
        for (tag, answer) in answers.iter().enumerate() {
            let whole = |status, bytes, fields| Answer { status, bytes, fields, ended: true };
            match paths[tag % 5] {
                _ if tag % 7 == 0 => assert_eq!(*answer, whole(200, 0, 0)),
                "/small" => assert_eq!(*answer, whole(200, 10, 0)),
                "/empty" => assert_eq!(*answer, whole(204, 0, 0)),
                "/moved" => assert_eq!((answer.status, answer.fields), (302, 2)),
                _ => assert_eq!((answer.status, answer.ended), (404, true)),
            }
        }
    }
}

#[test]
fn http2_large_bodies_both_ways() {
    let Some(nginx) = start() else { return };
    let large = Template::new(&request("GET", "/large", None));
    let body = vec![b'u'; 400_000];
    let upload = Template::new(&request("POST", "/upload", Some(&body)));
    let small = Template::new(&request("POST", "/upload", Some(b"hello")));
    let (answers, _) = ask(nginx.http2_port, 50_000, 60, |tag| [&large, &upload, &small][tag as usize % 3].clone());
    for (tag, answer) in answers.iter().enumerate() {
        assert_eq!((answer.status, answer.bytes), (200, [LARGE, 2, 2][tag % 3]), "{tag}");
    }
}
