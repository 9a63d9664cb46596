//! A session against a server that is played by the test. What comes out must not depend on how the server's bytes
//! were cut; what a server may send must not take memory without bound.

mod floods;
mod flow;
mod wanted;

use super::*;
use crate::http::http2::frame::{FrameHeader, HEADER_BYTES, flag};
use crate::http::http2::hpack::{put_integer, put_string};
use crate::http::{Request, WantedParts};

const WANTED: WantedParts =
    WantedParts { location: true, set_cookie: true, server_timing: true, head: false, body_bytes: 0 };

fn config() -> Config {
    Config { max_streams: 10, wanted: WANTED }
}

fn template(body: Option<&[u8]>) -> Template {
    let method = if body.is_some() { "POST" } else { "GET" };
    Template::new(&Request { method, scheme: "http", authority: "a.example", path: "/x", headers: &[], body })
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = FrameHeader { length: payload.len(), kind, flags, stream }.bytes().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        pairs.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(kind::SETTINGS, 0, 0, &payload)
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        put_integer(&mut block, 0, 4, 0);
        put_string(&mut block, name.as_bytes());
        put_string(&mut block, value.as_bytes());
    }
    block
}

fn head(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block(fields))
}

fn data(stream: u32, flags: u8, bytes: usize) -> Vec<u8> {
    frame(kind::DATA, flags, stream, &vec![b'x'; bytes])
}

/// A session with `count` requests sent, tagged 100, 101, ..., and its bytes taken.
fn session(count: u32) -> Session {
    let mut session = Session::new(config());
    session.allowed_streams = u32::MAX;
    for tag in 100..100 + count {
        assert!(session.send(&template(None), tag));
    }
    let waiting = session.output().len();
    session.consumed(waiting);
    session
}

/// The events as lines, body bytes of one stream in a row as one.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    body: Option<(u32, usize)>,
}

impl Log {
    fn add(&mut self, event: Event<'_>) {
        if let Event::Data { tag, bytes } = event {
            assert!(!bytes.is_empty());
            match &mut self.body {
                Some((of, sum)) if *of == tag => *sum += bytes.len(),
                _ => {
                    self.flush();
                    self.body = Some((tag, bytes.len()));
                }
            }
            return;
        }
        self.flush();
        self.lines.push(match event {
            Event::Status { tag, status } => format!("{tag} {status}"),
            Event::Header { tag, name, value } => {
                format!("{tag} {}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
            }
            Event::End { tag } => format!("{tag} end"),
            Event::Reset { tag, code } => format!("{tag} reset {code}"),
            Event::GoAway { last_stream_id, code } => format!("goaway {last_stream_id} {code}"),
            Event::Refused { tag } => format!("{tag} refused"),
            Event::Data { .. } => String::new(),
        });
    }

    fn flush(&mut self) {
        if let Some((tag, bytes)) = self.body.take() {
            self.lines.push(format!("{tag} body {bytes}"));
        }
    }
}

/// Feeds `bytes` in pieces that end at `cuts`: the events, the result last, and what waits to be written.
fn feed_cut(mut session: Session, bytes: &[u8], cuts: impl Iterator<Item = usize>) -> (Vec<String>, Vec<u8>) {
    let mut log = Log::default();
    let mut from = 0;
    for to in cuts.chain([bytes.len()]) {
        let result = session.feed(&bytes[from..to], &mut |event| log.add(event));
        from = to;
        if let Err(error) = result {
            log.flush();
            log.lines.push(error.to_string());
            break;
        }
    }
    log.flush();
    (log.lines, session.output().to_vec())
}

/// The events of `bytes` on a session with `count` requests: the same whole, byte by byte, and cut at each byte.
fn events(count: u32, bytes: &[u8]) -> Vec<String> {
    let whole = feed_cut(session(count), bytes, std::iter::empty());
    assert_eq!(feed_cut(session(count), bytes, 1..bytes.len()), whole, "byte by byte");
    for cut in (1..bytes.len()).filter(|cut| bytes.len() < 1_000 || cut % 97 == 0) {
        assert_eq!(feed_cut(session(count), bytes, std::iter::once(cut)), whole, "cut at {cut}");
    }
    whole.0
}

/// After the server's settings.
fn settled(frames: &[Vec<u8>]) -> Vec<u8> {
    [settings(&[]), frames.concat()].concat()
}

/// The frames that wait to be written.
fn written(session: &mut Session) -> Vec<(FrameHeader, Vec<u8>)> {
    let bytes = session.output().to_vec();
    session.consumed(bytes.len());
    let mut rest = bytes.strip_prefix(PREFACE).unwrap_or(&bytes);
    let mut frames = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let header = FrameHeader::read(header);
        frames.push((header, after[..header.length].to_vec()));
        rest = &after[header.length..];
    }
    assert!(rest.is_empty());
    frames
}

const OK: (&str, &str) = (":status", "200");

#[test]
fn a_session_begins_with_preface_and_settings() {
    let mut session = Session::new(config());
    session.allowed_streams = u32::MAX;
    assert!(session.output().starts_with(PREFACE));
    let frames = written(&mut session);
    assert_eq!(
        frames.iter().map(|(h, _)| (h.kind, h.stream)).collect::<Vec<_>>(),
        [(kind::SETTINGS, 0), (kind::WINDOW_UPDATE, 0)]
    );
    assert_eq!(frames[0].1[..12], [0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    for tag in 0..3 {
        assert!(session.send(&template(None), tag));
    }
    let frames = written(&mut session);
    assert_eq!(frames.iter().map(|(h, _)| h.stream).collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(frames[0].1[0], NO_TABLE);
    assert_eq!(frames[0].1[1..], frames[1].1);
    assert!(frames.iter().all(|(h, _)| h.kind == kind::HEADERS && h.flags == flag::END_HEADERS | flag::END_STREAM));
}

#[test]
fn responses_as_servers_send_them() {
    let padded = |kind, flags, stream, payload: &[u8]| {
        frame(kind, flags | flag::PADDED, stream, &[&[3], payload, &[0, 0, 0]].concat())
    };
    let priority = [&[0, 0, 0, 0, 9], &block(&[OK])[..]].concat();
    let long =
        block(&[(":status", "302"), ("location", "/next"), ("x", "y"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]);
    let bytes = settled(&[
        head(3, 0, &[OK, ("content-length", "5")]),
        data(3, 0, 2),
        head(1, 0, &[(":status", "103"), ("location", "/hint")]),
        padded(kind::DATA, flag::END_STREAM, 3, b"yyy"),
        head(1, flag::END_STREAM, &[(":status", "204")]),
        frame(kind::HEADERS, flag::END_STREAM, 5, &long[..20]),
        frame(kind::CONTINUATION, 0, 5, &long[20..21]),
        frame(kind::CONTINUATION, flag::END_HEADERS, 5, &long[21..]),
        padded(kind::HEADERS, flag::END_HEADERS | flag::PRIORITY, 7, &priority),
        frame(77, 0xff, 7, b"an extension"),
        frame(kind::PRIORITY, 0, 9, &[0; 5]),
        padded(kind::DATA, 0, 7, b""),
        head(7, flag::END_STREAM, &[("grpc-status", "0")]),
        head(9, 0, &[OK]),
        frame(kind::RST_STREAM, 0, 9, &[0, 0, 0, 7]),
        frame(kind::PING, 0, 0, b"12345678"),
    ]);
    assert_eq!(
        events(5, &bytes),
        [
            "101 200",
            "101 body 5",
            "101 end",
            "100 204",
            "100 end",
            "102 302",
            "102 location: /next",
            "102 set-cookie: a=1",
            "102 set-cookie: b=2",
            "102 end",
            "103 200",
            "103 end",
            "104 200",
            "104 reset 7",
        ]
    );
    let mut session = session(5);
    session.feed(&bytes, &mut |_| ()).expect("a good server");
    assert_eq!(session.open_streams(), 0);
    let answers: Vec<_> = written(&mut session).iter().map(|(h, p)| (h.kind, h.flags, p.clone())).collect();
    assert_eq!(answers, [(kind::SETTINGS, flag::ACK, vec![]), (kind::PING, flag::ACK, b"12345678".to_vec())]);
}

#[test]
fn the_same_head_again_means_the_same() {
    let fields = [OK, ("content-length", "1"), ("server", "s")];
    let redirect = [(":status", "302"), ("location", "/")];
    let bytes = settled(&[
        head(1, 0, &fields),
        data(1, flag::END_STREAM, 1),
        head(3, 0, &fields),
        data(3, flag::END_STREAM, 1),
        head(5, flag::END_STREAM, &redirect),
        head(7, flag::END_STREAM, &redirect),
        head(9, 0, &fields),
        data(9, flag::END_STREAM, 2),
    ]);
    assert_eq!(
        events(5, &bytes),
        [
            "100 200",
            "100 body 1",
            "100 end",
            "101 200",
            "101 body 1",
            "101 end",
            "102 302",
            "102 location: /",
            "102 end",
            "103 302",
            "103 location: /",
            "103 end",
            "104 200",
            "104 body 2",
            "104 reset 1",
        ]
    );
}

#[test]
fn responses_that_break_the_rules_end_their_stream_alone() {
    for (what, frames) in [
        ("no status", head(1, 0, &[("a", "b")])),
        ("status twice", head(1, 0, &[OK, OK])),
        ("status after a field", head(1, 0, &[("a", "b"), OK])),
        ("a request's field", head(1, 0, &[OK, (":path", "/")])),
        ("no number", head(1, 0, &[(":status", "20x")])),
        ("too small", head(1, 0, &[(":status", "099")])),
        ("upper case", head(1, 0, &[OK, ("A", "b")])),
        ("two lengths", head(1, 0, &[OK, ("content-length", "1"), ("content-length", "2")])),
        ("no length", head(1, 0, &[OK, ("content-length", "-1")])),
        ("switching protocols", head(1, 0, &[(":status", "101")])),
        ("an interim end", head(1, flag::END_STREAM, &[(":status", "100")])),
        ("a body without a head", data(1, 0, 5)),
        ("a window update of 0", frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4])),
    ] {
        let bytes = settled(&[frames, head(3, flag::END_STREAM, &[OK])]);
        assert_eq!(events(2, &bytes), ["100 reset 1", "101 200", "101 end"], "{what}");
        let mut session = session(2);
        session.feed(&bytes, &mut |_| ()).expect("the connection goes on");
        assert!(written(&mut session).iter().any(|(h, _)| (h.kind, h.stream) == (kind::RST_STREAM, 1)), "{what}");
    }
    for (what, frames) in [
        ("too short", [head(1, 0, &[OK, ("content-length", "9")]), data(1, flag::END_STREAM, 5)].concat()),
        ("too long", [head(1, 0, &[OK, ("content-length", "4")]), data(1, flag::END_STREAM, 5)].concat()),
        ("a body after 204", [head(1, 0, &[(":status", "204")]), data(1, flag::END_STREAM, 5)].concat()),
    ] {
        let got = events(2, &settled(&[frames, head(3, flag::END_STREAM, &[OK])]));
        assert_eq!(got[1..], ["100 body 5", "100 reset 1", "101 200", "101 end"], "{what}");
    }
    let trailers = [head(1, 0, &[OK]), head(1, 0, &[("a", "b")])].concat();
    assert_eq!(events(1, &settled(&[trailers])), ["100 200", "100 reset 1"], "trailers that are no end");
}

#[test]
fn the_answer_to_head_has_no_body() {
    let request = Request { method: "HEAD", scheme: "https", authority: "a", path: "/", headers: &[], body: None };
    let mut session = Session::new(config());
    assert!(session.send(&Template::new(&request), 7));
    let bytes = settled(&[head(1, flag::END_STREAM, &[OK, ("content-length", "999")])]);
    assert_eq!(feed_cut(session, &bytes, std::iter::empty()).0, ["7 200", "7 end"]);
}

#[test]
fn protocol_errors_end_the_connection() {
    let first = |bytes: Vec<u8>| bytes;
    let then = |bytes: Vec<u8>| settled(&[bytes]);
    for (what, bytes, error) in [
        ("HTTP/1", first(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), Error::NotHttp2),
        ("another frame first", first(head(1, 0, &[OK])), Error::NotHttp2),
        ("an ack first", first(frame(kind::SETTINGS, flag::ACK, 0, &[])), Error::NotHttp2),
        ("a large frame", then(frame(kind::HEADERS, 4, 1, &vec![0; MAX_PAYLOAD + 1])), Error::FrameTooLarge),
        ("settings cut off", then(frame(kind::SETTINGS, 0, 0, &[0; 5])), Error::FrameTooLarge),
        ("a full ack", then(frame(kind::SETTINGS, flag::ACK, 0, &[0; 6])), Error::FrameTooLarge),
        ("a short ping", then(frame(kind::PING, 0, 0, &[0; 7])), Error::FrameTooLarge),
        ("a long reset", then(frame(kind::RST_STREAM, 0, 1, &[0; 5])), Error::FrameTooLarge),
        ("a short goaway", then(frame(kind::GOAWAY, 0, 0, &[0; 7])), Error::FrameTooLarge),
        ("a short update", then(frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3])), Error::FrameTooLarge),
        ("a short priority", then(frame(kind::PRIORITY, 0, 1, &[0; 4])), Error::FrameTooLarge),
        ("no pad length", then(frame(kind::DATA, flag::PADDED, 1, &[])), Error::FrameTooLarge),
        (
            "much padding",
            then(frame(kind::DATA, flag::PADDED, 1, &[3, 0, 0])),
            Error::Protocol("more padding than payload"),
        ),
        ("a window too large", then(settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)])), Error::FlowControl),
        ("an update too large", then(frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255])), Error::FlowControl),
        ("a block that is none", then(frame(kind::HEADERS, 4, 1, &[0xff])), Error::Compression),
        ("a table", then(frame(kind::HEADERS, 4, 1, &[0x88, 0xbe])), Error::Compression),
        ("many fields", then(frame(kind::HEADERS, 4, 1, &[0x88; 10_000])), Error::HeadTooLarge),
    ] {
        assert_eq!(events(1, &bytes).last(), Some(&error.to_string()), "{what}");
        let mut session = session(1);
        assert_eq!(session.feed(&bytes, &mut |_| ()), Err(error), "{what}");
        assert_eq!(session.feed(b"", &mut |_| ()), Err(error), "{what}: it stays so");
        assert!(session.room() == 0 && !session.send(&template(None), 5), "{what}");
        session.cancel(100);
        assert_eq!(written(&mut session).last().map(|(h, _)| h.kind), Some(kind::GOAWAY), "{what}");
    }
    for (what, bytes) in [
        ("a push", frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82])),
        ("pushing allowed", settings(&[(setting::ENABLE_PUSH, 1)])),
        ("frames too small", settings(&[(setting::MAX_FRAME_SIZE, 16_383)])),
        ("frames too large", settings(&[(setting::MAX_FRAME_SIZE, 1 << 24)])),
        ("settings of a stream", frame(kind::SETTINGS, 0, 1, &[])),
        ("ping of a stream", frame(kind::PING, 0, 1, &[0; 8])),
        ("goaway of a stream", frame(kind::GOAWAY, 0, 1, &[0; 8])),
        ("data of none", data(0, 0, 1)),
        ("a head of none", head(0, 0, &[OK])),
        ("a stream of the server's", head(2, 0, &[OK])),
        ("a stream not opened", head(3, 0, &[OK])),
        ("data not asked for", data(3, 0, 1)),
        ("a reset of none", frame(kind::RST_STREAM, 0, 3, &[0; 4])),
        ("an update of none", frame(kind::WINDOW_UPDATE, 0, 3, &[0, 0, 0, 1])),
        ("an update of nothing", frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4])),
        ("a continuation of nothing", frame(kind::CONTINUATION, 4, 1, &[])),
        ("a head cut off", [frame(kind::HEADERS, 0, 1, &[0x88]), frame(kind::PING, 0, 0, &[0; 8])].concat()),
        ("one head in another", [frame(kind::HEADERS, 0, 1, &[0x88]), frame(kind::CONTINUATION, 4, 3, &[])].concat()),
        ("an extension in a head", [frame(kind::HEADERS, 0, 1, &[0x88]), frame(99, 0, 0, &[])].concat()),
    ] {
        let got = events(1, &settled(&[bytes]));
        assert!(got.last().is_some_and(|last| last.starts_with("HTTP/2 protocol error")), "{what}: {got:?}");
    }
}

#[test]
fn a_stream_that_was_given_up_is_heard_of_no_more() {
    let mut session = session(3);
    session.feed(&settled(&[head(1, 0, &[OK])]), &mut |_| ()).expect("fine");
    session.cancel(100);
    session.cancel(101);
    session.cancel(99);
    assert_eq!(session.open_streams(), 1);
    let mut log = Log::default();
    let late = [
        data(1, 0, 5),
        data(1, flag::END_STREAM, 5),
        head(3, 0, &[OK]),
        data(3, 0, 9),
        frame(kind::RST_STREAM, 0, 3, &[0; 4]),
        frame(kind::WINDOW_UPDATE, 0, 3, &[0, 0, 0, 1]),
        head(5, flag::END_STREAM, &[OK]),
    ];
    session.feed(&late.concat(), &mut |event| log.add(event)).expect("late frames are no error");
    assert_eq!(log.lines, ["102 200", "102 end"]);
    let resets: Vec<_> = written(&mut session).into_iter().filter(|(h, _)| h.kind == kind::RST_STREAM).collect();
    assert_eq!(resets.iter().map(|(h, p)| (h.stream, p[3])).collect::<Vec<_>>(), [(1, 8), (3, 8)]);
}

#[test]
fn goaway_tells_whom_to_send_again() {
    let goaway = |last: u8, code: u8| frame(kind::GOAWAY, 0, 0, &[0x80, 0, 0, last, 0, 0, 0, code, b'w', b'h', b'y']);
    let bytes =
        settled(&[goaway(5, 0), head(1, flag::END_STREAM, &[OK]), goaway(3, 2), head(3, flag::END_STREAM, &[OK])]);
    let got = events(5, &bytes);
    assert_eq!(got[0], "goaway 5 0");
    let mut refused = got[1..3].to_vec();
    refused.sort();
    assert_eq!(refused, ["103 refused", "104 refused"]);
    assert_eq!(got[3..], ["100 200", "100 end", "goaway 3 2", "102 refused", "101 200", "101 end"]);
    let mut session = session(5);
    session.feed(&bytes, &mut |_| ()).expect("a regular end");
    assert_eq!((session.room(), session.open_streams()), (0, 0));
}

#[test]
fn room_is_what_both_sides_allow() {
    let mut session = Session::new(Config { max_streams: 1_000, wanted: WANTED });
    let feed = |session: &mut Session, bytes: &[u8]| session.feed(bytes, &mut |_| ()).expect("fine");
    assert_eq!((session.room(), session.settled()), (1, false), "before the server's settings");
    assert!(session.send(&template(None), 0));
    assert!(session.room() == 0 && !session.send(&template(None), 1));
    feed(&mut session, &settings(&[]));
    assert_eq!((session.room(), session.settled()), (999, true));
    for tag in 1..100 {
        assert!(session.send(&template(None), tag));
    }
    feed(&mut session, &settings(&[(setting::MAX_CONCURRENT_STREAMS, 101)]));
    assert_eq!(session.room(), 1);
    feed(&mut session, &settings(&[(setting::MAX_CONCURRENT_STREAMS, 50)]));
    assert_eq!(session.room(), 0);
    feed(&mut session, &head(7, flag::END_STREAM, &[OK]));
    feed(&mut session, &settings(&[(setting::MAX_CONCURRENT_STREAMS, 100)]));
    assert_eq!(session.room(), 1);
    session.next_stream = LAST_STREAM;
    assert!(session.room() == 1 && session.send(&template(None), 7));
    assert_eq!(session.room(), 0, "no number is left");
}

/// One template is sent with another value each time, in the first head, which begins with a byte more, and in others.
#[test]
fn a_mark_stands_in_its_place() {
    const PLACE: &str = "00-0000";
    let large = vec![b'b'; 2 * MAX_PAYLOAD];
    for body in [None, Some(&b"body"[..]), Some(&large)] {
        let headers = [("Traced", PLACE), ("x-y", "z")];
        let request =
            Request { method: "POST", scheme: "http", authority: "a", path: "/00-0000", headers: &headers, body };
        let template = Template::new(&request);
        let at = template.place_of(PLACE.as_bytes()).expect("it is there");
        assert_eq!(template.place_of(b"nobody"), None);
        let mut session = Session::new(Config { max_streams: 10, wanted: WANTED });
        session.allowed_streams = u32::MAX;
        for (tag, mark) in ["11-1111", "22-2222"].into_iter().enumerate() {
            let waiting = session.output().len();
            session.consumed(waiting);
            assert!(session.send_marked(&template, tag as u32, Some((at, mark.as_bytes()))));
            let sent = session.output();
            let length = FrameHeader::read(sent.first_chunk().expect("a frame")).length;
            let mut fields = Vec::new();
            crate::http::http2::hpack::unpack(
                &sent[HEADER_BYTES..HEADER_BYTES + length],
                &mut Vec::new(),
                |name, value| {
                    fields.push([name, b"=", value].concat());
                },
            )
            .expect("a good block");
            assert!(fields.contains(&[b"traced=", mark.as_bytes()].concat()), "{mark}");
            assert!(fields.contains(&b":path=/00-0000".to_vec()) && fields.contains(&b"x-y=z".to_vec()));
        }
    }
}
