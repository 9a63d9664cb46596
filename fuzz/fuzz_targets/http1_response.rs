//! Responses one after another on one connection, cut anyhow: the outcome must be that of the uncut bytes, with a
//! memo of heads and without. The first byte of the input says how to ask, the second how often its end is repeated
//! (for heads without end) and how much of a body is kept, then come a count of cuts and as many sizes of pieces; the rest is the server's.
#![no_main]

use holdup_protocol::http::WantedParts;
use holdup_protocol::http::http1::{Head, HeadMemo, MAX_HEAD_BYTES, Malformed, Parser, Progress};
use libfuzzer_sys::fuzz_target;

/// All that can be seen of one response.
#[derive(Debug, PartialEq)]
struct Outcome {
    result: Result<bool, Malformed>,
    head: Head,
    keep_alive: bool,
    closed: bool,
    body_bytes: u64,
    expected_body: Option<u64>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    body_is_cut: bool,
    bytes: usize,
}

struct Run<'a> {
    parser: Parser,
    memo: Option<&'a mut HeadMemo>,
    head_request: bool,
    wanted: WantedParts,
    outcomes: Vec<Outcome>,
    bytes: usize,
}

impl Run<'_> {
    /// Feeds a piece; false once nothing more can come.
    fn feed(&mut self, mut piece: &[u8]) -> bool {
        loop {
            let result = match &mut self.memo {
                Some(memo) => self.parser.feed_with(piece, memo),
                None => self.parser.feed(piece),
            };
            match result {
                Ok(Progress::More) => {
                    self.bytes += piece.len();
                    return true;
                }
                Ok(Progress::Done { used }) => {
                    assert!(used <= piece.len());
                    self.bytes += used;
                    self.end(Ok(true));
                    piece = &piece[used..];
                    if piece.is_empty() {
                        return true;
                    }
                }
                Err(error) => {
                    self.end(Err(error));
                    return false;
                }
            }
        }
    }

    fn end(&mut self, result: Result<bool, Malformed>) {
        let head = self.parser.head().clone();
        let kept: usize = head.set_cookie.iter().chain(&head.location).map(|value| value.len()).sum();
        assert!(kept <= MAX_HEAD_BYTES && head.status == self.parser.status());
        assert!(self.parser.expected_body().is_none_or(|all| self.parser.body_bytes() <= all));
        let whole = result == Ok(true);
        assert!(!whole || self.parser.expected_body().is_none_or(|all| self.parser.body_bytes() == all));
        let fields: Vec<_> = self.parser.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let values = |of: &str| {
            let named = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(of.as_bytes()));
            named.map(|(_, value)| value.as_slice()).collect::<Vec<_>>()
        };
        if self.wanted.head && head.status != 0 {
            // What was picked out by one reader is what the other shows.
            if self.wanted.location {
                assert_eq!(values("location").last().copied(), head.location.as_deref());
            }
            if self.wanted.set_cookie {
                assert_eq!(values("set-cookie"), head.set_cookie.iter().map(|value| &value[..]).collect::<Vec<_>>());
            }
        } else {
            assert!(fields.is_empty());
        }
        let kept = self.parser.body_bytes().min(u64::from(self.wanted.body_bytes));
        assert_eq!(self.parser.body().len() as u64, kept);
        self.outcomes.push(Outcome {
            result,
            head,
            keep_alive: self.parser.keep_alive(),
            closed: self.parser.closed(),
            body_bytes: self.parser.body_bytes(),
            expected_body: self.parser.expected_body(),
            fields,
            body: self.parser.body().to_vec(),
            body_is_cut: self.parser.body_is_cut(),
            // Where in a piece an error is noticed may differ.
            bytes: if result.is_ok() { self.bytes } else { 0 },
        });
        self.bytes = 0;
        self.parser.begin(self.head_request, self.wanted);
    }
}

fn run<'a>(
    (how, limit): (u8, u8),
    memo: Option<&mut HeadMemo>,
    mut pieces: impl Iterator<Item = &'a [u8]>,
) -> Vec<Outcome> {
    let has = |bit: u8| how & bit != 0;
    let body_bytes = if has(0x80) { u32::from(limit) } else { 0 };
    let wanted = WantedParts { location: has(2), set_cookie: has(4), head: has(0x40), server_timing: true, body_bytes };
    let head_request = has(1);
    let parser = Parser::new();
    let mut run = Run { parser, memo, head_request, wanted, outcomes: Vec::new(), bytes: 0 };
    run.parser.begin(head_request, wanted);
    if pieces.all(|piece| run.feed(piece)) {
        run.end(Ok(false));
    }
    run.outcomes
}

fuzz_target!(|input: &[u8]| {
    let [how, repeat, count, rest @ ..] = input else { return };
    let Some((sizes, text)) = rest.split_at_checked(usize::from(*count % 16)) else { return };
    let mut bytes = text.to_vec();
    let endless = how & 0x38 == 0x38;
    if endless {
        let end = &text[text.len() - text.len().min(usize::from(*repeat))..];
        while !end.is_empty() && bytes.len() < MAX_HEAD_BYTES + 500 {
            bytes.extend_from_slice(end);
        }
    }
    let how_and_limit = (*how, *repeat);
    let whole = run(how_and_limit, None, std::iter::once(&bytes[..]));
    let mut sizes = sizes.iter().cycle().map(|&size| usize::from(size) + 1);
    let mut left = &bytes[..];
    let mut cut = Vec::new();
    while !left.is_empty() {
        let (piece, after) = left.split_at(sizes.next().unwrap_or(usize::MAX).min(left.len()));
        cut.push(piece);
        left = after;
    }
    assert_eq!(run(how_and_limit, None, cut.iter().copied()), whole);
    if endless {
        return;
    }
    let mut memo = HeadMemo::new();
    assert_eq!(run(how_and_limit, Some(&mut memo), std::iter::once(&bytes[..])), whole);
    assert_eq!(run(how_and_limit, Some(&mut memo), cut.iter().copied()), whole);
    if bytes.len() < 600 {
        assert_eq!(run(how_and_limit, None, bytes.chunks(1)), whole);
    }
});
