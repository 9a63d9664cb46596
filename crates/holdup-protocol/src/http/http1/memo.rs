//! A memory of the last head: servers repeat heads except for a date, an identifier, a length. A
//! head that is equal, or differs only in values that decide nothing, is not parsed again.
//! Comparing costs a tenth of parsing.

use super::MAX_HEAD_BYTES;
use super::head::Facts;
use crate::http::WantedParts;

/// Larger heads are not kept.
const MAX_BYTES: usize = 2 * 1024;

/// Fields whose values decide something; a head that differs in one of them is parsed.
const DECISIVE: [&[u8]; 2] = [b"transfer-encoding", b"connection"];

/// The last head seen, and its facts. With one memo per operation, shared by a thread's
/// connections, nearly every head is recognised.
#[derive(Debug, Default)]
pub struct HeadMemo {
    bytes: Vec<u8>,
    lines: Vec<Line>,
    facts: Option<Facts>,
}

/// A line of the kept head.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Where it ends in the head, line end included.
    end: usize,
    /// Where its value begins.
    value: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Has to be equal to the byte.
    Fixed,
    /// May have any value.
    Any,
    /// The body's length: may be another number.
    Length,
}

impl HeadMemo {
    /// A memo without a head.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Length and facts of the head that `bytes` begin with, if it means the same as the kept one
    /// and contains nothing to pick out. The kept one ends with its blank line, so having it as a
    /// prefix is having it completely.
    #[inline]
    pub(super) fn recall(&self, bytes: &[u8], wanted: WantedParts) -> Option<(usize, Facts)> {
        let facts = self.facts.filter(|facts| !(facts.has_wanted && wanted.picks()))?;
        if bytes.starts_with(&self.bytes) { Some((self.bytes.len(), facts)) } else { self.alike(bytes, facts) }
    }

    /// Compares line by line: lines may differ where that is allowed.
    fn alike(&self, bytes: &[u8], mut facts: Facts) -> Option<(usize, Facts)> {
        let mut rest = bytes;
        let mut begin = 0;
        for line in &self.lines {
            rest = match rest.strip_prefix(&self.bytes[begin..line.end]) {
                Some(rest) => rest,
                None if line.kind == Kind::Fixed => return None,
                None => {
                    let value = rest.strip_prefix(&self.bytes[begin..line.value])?;
                    if line.kind == Kind::Length {
                        let (length, rest) = number(value)?;
                        facts.length = Some(length);
                        rest
                    } else {
                        // Accept what a value may contain (RFC 9110, section 5.5) up to a complete
                        // line end; otherwise parse.
                        let end = value.iter().position(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)?;
                        value[end..].strip_prefix(b"\r\n")?
                    }
                }
            };
            begin = line.end;
        }
        let length = bytes.len() - rest.len();
        (length <= MAX_HEAD_BYTES).then_some((length, facts))
    }

    /// Keeps a complete head, and its `facts`.
    pub(super) fn keep(&mut self, head: &[u8], facts: Facts) {
        self.facts = None;
        if head.len() > MAX_BYTES {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(head);
        self.lines.clear();
        let mut begin = 0;
        for line in head.split_inclusive(|&byte| byte == b'\n') {
            let end = begin + line.len();
            // Neither the status line nor the blank one may differ.
            let colon = if begin == 0 { None } else { line.iter().position(|&byte| byte == b':') };
            let (kind, value) = colon.map_or((Kind::Fixed, end), |colon| {
                let name = &line[..colon];
                let space = usize::from(line[colon + 1] == b' ');
                let kind = if DECISIVE.iter().any(|decisive| decisive.eq_ignore_ascii_case(name)) {
                    Kind::Fixed
                } else if name.eq_ignore_ascii_case(b"content-length") {
                    Kind::Length
                } else {
                    Kind::Any
                };
                (kind, begin + colon + 1 + space)
            });
            self.lines.push(Line { end, value, kind });
            begin = end;
        }
        // Several lengths have to agree, which the parser checks.
        if self.lines.iter().filter(|line| line.kind == Kind::Length).count() > 1 {
            for line in self.lines.iter_mut().filter(|line| line.kind == Kind::Length) {
                line.kind = Kind::Fixed;
            }
        }
        self.facts = Some(facts);
    }
}

/// A number that fills a line, and the bytes after the line. At most 18 digits: sums do not
/// overflow.
fn number(line: &[u8]) -> Option<(u64, &[u8])> {
    let digits = line.iter().position(|byte| !byte.is_ascii_digit()).filter(|digits| (1..19).contains(digits))?;
    let number = line[..digits].iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Some((number, line[digits..].strip_prefix(b"\r\n")?))
}

#[cfg(test)]
mod tests {
    use super::super::{Malformed, Parser, Progress};
    use super::*;

    const FIRST: &str =
        "HTTP/1.1 200 OK\r\nDate: Sun, 1\r\nContent-Length: 3\r\nX-Id:7\r\nConnection: keep-alive\r\n\r\n";

    /// Whether `head` is recognised after [`FIRST`]; the result is the parser's in either case.
    fn recognised(head: &str) -> bool {
        let mut memo = HeadMemo::new();
        let mut parser = Parser::new();
        assert_eq!(parser.feed_with(FIRST.as_bytes(), &mut memo), Ok(Progress::More));
        let recognised = memo.recall(head.as_bytes(), WantedParts::default()).is_some();
        parser.begin(false, WantedParts::default());
        let mut other = Parser::new();
        assert_eq!(parser.feed_with(head.as_bytes(), &mut memo), other.feed(head.as_bytes()), "{head:?}");
        assert_eq!(parser.expected_body(), other.expected_body(), "{head:?}");
        assert_eq!((parser.status(), parser.keep_alive()), (other.status(), other.keep_alive()), "{head:?}");
        recognised
    }

    #[test]
    fn values_that_decide_nothing_may_differ() {
        assert!(recognised(FIRST));
        for (from, to) in
            [("Sun, 1", "Monday\t, 2"), ("Sun, 1", ""), (":7", ":"), (":7", ": \u{fc}"), (": 3", ": 123456")]
        {
            assert!(recognised(&FIRST.replace(from, to)), "{to}");
        }
    }

    #[test]
    fn all_else_is_parsed() {
        for (from, to) in [
            ("200", "201"),
            ("HTTP/1.1", "HTTP/1.0"),
            ("OK", "No"),
            ("keep-alive", "close"),
            ("Date", "date"),
            (": 3", ": 3 "),
            (": 3", ":"),
            (": 3", ": -3"),
            (": 3", ": 3, 3"),
            (": 3", ": 9999999999999999999"),
            ("Sun", "S\0n"),
            ("Sun", "S\rn"),
            ("Sun, 1\r\n", "Sun, 1\n"),
            ("Sun", "S\u{7f}n"),
            ("X-Id", "Y-Id"),
            ("Date: Sun, 1\r\n", ""),
            ("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
            ("\r\n\r\n", "\r\n"),
        ] {
            assert!(!recognised(&FIRST.replacen(from, to, 1)), "{to:?} for {from:?}");
        }
        assert!(!recognised(&FIRST.replace("Sun", &"Sun".repeat(MAX_HEAD_BYTES / 3))), "too large");
        for cut in 0..FIRST.len() {
            assert!(!recognised(&FIRST[..cut]), "{cut}");
        }
    }

    #[test]
    fn lengths_that_must_agree() {
        let two = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n";
        let mut memo = HeadMemo::new();
        let mut parser = Parser::new();
        assert_eq!(parser.feed_with(two.as_bytes(), &mut memo), Ok(Progress::Done { used: two.len() }));
        parser.begin(false, WantedParts::default());
        let other = two.replacen('0', "1", 1).replace("Length: 0\r\n\r", "Length: 2\r\n\r");
        assert_eq!(parser.feed_with(other.as_bytes(), &mut memo), Err(Malformed::BadFraming));
    }
}
