//! A session whose server sends anything, cut anyhow: events, result and output must be those of the uncut bytes,
//! and but for fields the same whether heads are wanted; no
//! stream is heard of after its end; what is kept is bounded. The input is a program: steps of the caller (send,
//! cancel, write) and frames or loose bytes of the server, whose lengths are right unless it says otherwise.
#![no_main]

use std::sync::LazyLock;

use holdup_protocol::http::http2::{Config, Error, Event, Session, Template};
use holdup_protocol::http::{Request, WantedParts};
use libfuzzer_sys::fuzz_target;

/// What is asked for; the large body takes several frames, and a few of it the connection's window.
static TEMPLATES: LazyLock<[Template; 4]> = LazyLock::new(|| {
    let request = Request { method: "GET", scheme: "https", authority: "a", path: "/", headers: &[], body: None };
    let with_body = |body| Template::new(&Request { method: "POST", body: Some(body), ..request });
    let head = Request { method: "HEAD", ..request };
    [Template::new(&request), Template::new(&head), with_body(b"body"), with_body(&[b'x'; 20_000])]
});

/// Streams and tags of a run.
const STREAMS: u32 = 6;

enum Step<'a> {
    Send { template: usize },
    Cancel { tag: u32 },
    Write,
    Receive(Vec<u8>),
    Loose(&'a [u8]),
}

/// Reads the next step: a byte that says which, and what it needs.
fn step<'a>(input: &mut &'a [u8]) -> Option<Step<'a>> {
    let (&what, rest) = input.split_first()?;
    *input = rest;
    Some(match what {
        0xf0..=0xf3 => Step::Send { template: usize::from(what & 3) },
        0xf4..=0xf9 => Step::Cancel { tag: u32::from(what - 0xf4) },
        0xfa | 0xfb => Step::Write,
        0xfc => {
            let (&count, rest) = input.split_first()?;
            let (bytes, rest) = rest.split_at_checked(usize::from(count))?;
            *input = rest;
            Step::Loose(bytes)
        }
        kind => {
            let (&[flags, stream, length, times], rest) = input.split_first_chunk()?;
            let (payload, rest) = rest.split_at(usize::from(length).min(rest.len()));
            *input = rest;
            // Some frames are large, and small ones may come in numbers.
            let (size, times) = if times >= 0xf0 { (70, 1) } else { (1, 1 + usize::from(times & 0x0f)) };
            let large = payload.repeat(size);
            let mut frame = (large.len() as u32).to_be_bytes()[1..].to_vec();
            frame.extend([kind % 12, flags, 0, 0, 0, stream % 16]);
            frame.extend(large);
            Step::Receive(frame.repeat(times))
        }
    })
}

/// Body bytes of one stream in a row: how many, and a hash of them (FNV-1a).
#[derive(Debug, PartialEq)]
struct Body {
    tag: u32,
    count: usize,
    hash: u64,
}

impl Body {
    fn add(&mut self, bytes: &[u8]) {
        self.count += bytes.len();
        for &byte in bytes {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Lines of what happened; body bytes in a row as one.
    lines: Vec<String>,
    body: Option<Body>,
    fields: usize,
    open: Vec<u32>,
}

impl Seen {
    fn flush(&mut self) {
        if let Some(body) = self.body.take() {
            self.lines.push(format!("{body:?}"));
        }
    }

    fn add(&mut self, event: Event<'_>) {
        let (tag, over) = match event {
            Event::Status { tag, status } => {
                assert!(status >= 200);
                (tag, false)
            }
            Event::Header { tag, name, .. } => {
                assert!(!name.starts_with(b":"));
                (tag, false)
            }
            Event::Data { tag, bytes } => {
                assert!(!bytes.is_empty());
                (tag, false)
            }
            Event::End { tag } | Event::Reset { tag, .. } | Event::Refused { tag } => (tag, true),
            Event::GoAway { .. } => (u32::MAX, false),
        };
        assert!(tag == u32::MAX || self.open.contains(&tag), "{event:?} of a stream that isn't open");
        if over {
            self.open.retain(|&open| open != tag);
        }
        if let (Event::Data { bytes, .. }, Some(body)) = (event, &mut self.body)
            && body.tag == tag
        {
            body.add(bytes);
            return;
        }
        self.flush();
        match event {
            Event::Data { tag, bytes } => {
                let mut body = Body { tag, count: 0, hash: 0xcbf2_9ce4_8422_2325 };
                body.add(bytes);
                self.body = Some(body);
            }
            Event::Header { .. } => {
                self.fields += 1;
                self.lines.push(format!("field {event:?}"));
            }
            _ => self.lines.push(format!("{event:?}")),
        }
    }
}

/// Runs the program with the server's bytes in pieces of these sizes, over and over.
fn run(program: &[u8], templates: &[Template; 4], sizes: &[u8], head: bool) -> (Seen, Option<Error>, Vec<u8>) {
    let wanted = WantedParts { location: true, set_cookie: true, head, server_timing: true, body_bytes: 0 };
    let mut session = Session::new(Config { max_streams: STREAMS, wanted });
    let mut seen = Seen::default();
    let mut output = Vec::new();
    let mut sizes = sizes.iter().cycle().map(|&size| usize::from(size) + 1);
    let mut rest = program;
    let mut error = None;
    while let (Some(step), None) = (step(&mut rest), error) {
        let received = match &step {
            Step::Receive(frames) => frames.as_slice(),
            Step::Loose(bytes) => bytes,
            _ => &[],
        };
        match step {
            Step::Send { template } => {
                let tag = (0..STREAMS).find(|tag| !seen.open.contains(tag));
                if let Some(tag) = tag.filter(|_| session.room() > 0) {
                    assert!(session.send(&templates[template], tag));
                    seen.open.push(tag);
                }
            }
            Step::Cancel { tag } => {
                session.cancel(tag);
                seen.open.retain(|&open| open != tag);
            }
            Step::Write => {
                output.extend_from_slice(session.output());
                session.consumed(session.output().len());
            }
            _ => {}
        }
        let mut left = received;
        while !left.is_empty() && error.is_none() {
            let (piece, after) = left.split_at(sizes.next().unwrap_or(usize::MAX).min(left.len()));
            left = after;
            error = session.feed(piece, &mut |event| seen.add(event)).err();
        }
        assert_eq!(session.open_streams() as usize, seen.open.len());
        assert!(session.room() + session.open_streams() <= STREAMS);
        assert!(session.output().len() < 1 << 20);
    }
    seen.flush();
    output.extend_from_slice(session.output());
    (seen, error, output)
}

fuzz_target!(|input: &[u8]| {
    let [count, rest @ ..] = input else { return };
    let Some((sizes, program)) = rest.split_at_checked(usize::from(*count % 16)) else { return };
    let templates = &*TEMPLATES;
    let mut both = [false, true].map(|head| {
        let whole = run(program, templates, &[], head);
        assert_eq!(run(program, templates, sizes, head), whole);
        if program.len() < 200 {
            assert_eq!(run(program, templates, &[0], head), whole);
        }
        whole
    });
    assert!(both[0].0.fields <= both[1].0.fields);
    for (seen, _, _) in &mut both {
        seen.lines.retain(|line| !line.starts_with("field "));
        seen.fields = 0;
    }
    assert_eq!(both[0], both[1]);
});
