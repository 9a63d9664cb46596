//! One operation's request as HTTP/2 frames, encoded once: only the stream's number changes when it
//! is sent again.

use std::sync::Arc;

use super::frame::{FrameHeader, MAX_PAYLOAD, flag, kind};
use super::hpack::{put_integer, put_string};
use crate::http::{Request, USER_AGENT};

/// Fields of an HTTP/1 connection, which are invalid here (RFC 9113, section 8.2.2).
const CONNECTION_FIELDS: [&str; 5] = ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"];

/// Fields whose names are in the static table, with their index (RFC 7541, appendix A).
const INDEXED_NAMES: [(&str, usize); 14] = [
    ("accept", 19),
    ("accept-charset", 15),
    ("accept-encoding", 16),
    ("accept-language", 17),
    ("authorization", 23),
    ("cache-control", 24),
    ("content-length", 28),
    ("content-type", 31),
    ("cookie", 32),
    ("if-modified-since", 40),
    ("if-none-match", 41),
    ("range", 50),
    ("referer", 51),
    ("user-agent", 58),
];

/// A request ready to be sent on any session.
#[derive(Clone, Debug)]
pub struct Template {
    /// The packed head: static indices and literals only, so that it is valid in any session.
    block: Vec<u8>,
    /// The head's frames and, if it fits into one, the body's, all for stream 0.
    frames: Vec<u8>,
    /// Length of the head within `frames`.
    head_bytes: usize,
    body: Arc<[u8]>,
    head_request: bool,
}

impl Template {
    /// Encodes `request`. Names become lower case, fields of an HTTP/1 connection are left out,
    /// `host` becomes the authority, and `user-agent` and the body's length are added unless it
    /// sets them.
    #[must_use]
    pub fn new(request: &Request<'_>) -> Self {
        let given = |name: &str| request.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        let mut head = Vec::with_capacity(256);
        let block = &mut head;
        match request.method {
            "GET" => put_integer(block, 0x80, 7, 2),
            "POST" => put_integer(block, 0x80, 7, 3),
            other => put_literal(block, 2, other),
        }
        put_integer(block, 0x80, 7, if request.scheme == "https" { 7 } else { 6 });
        put_literal(block, 1, given("host").map_or(request.authority, |(_, value)| value));
        if request.path == "/" {
            put_integer(block, 0x80, 7, 4)
        } else {
            put_literal(block, 4, request.path)
        }
        if given("user-agent").is_none() {
            put_field(block, "user-agent", USER_AGENT.as_bytes());
        }
        if let (Some(length), None) = (request.declared_length(), given("content-length")) {
            put_field(block, "content-length", itoa::Buffer::new().format(length).as_bytes());
        }
        for (name, value) in request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            put_field(block, name, value.as_bytes());
        }
        let mut template = Self {
            block: head,
            frames: Vec::new(),
            head_bytes: 0,
            body: request.body.unwrap_or_default().into(),
            head_request: request.method == "HEAD",
        };
        template.lay_out();
        template
    }

    /// The same with further fields, such as cookies.
    #[must_use]
    pub fn with_extra(&self, headers: &[(&str, &str)]) -> Self {
        let mut other = self.clone();
        for (name, value) in headers {
            put_field(&mut other.block, name, value.as_bytes());
        }
        other.lay_out();
        other
    }

    /// The place of `value` in the frames of the head, where it is the value of the last such
    /// field; none if no field has it, or if it is split between frames. For
    /// [`Session::send_marked`](super::Session::send_marked).
    #[must_use]
    pub fn place_of(&self, value: &[u8]) -> Option<usize> {
        if value.is_empty() {
            return None;
        }
        self.head().windows(value.len()).rposition(|w| w == value)
    }

    /// Builds the frames: a head that is too large for one continues in CONTINUATION frames.
    fn lay_out(&mut self) {
        let Self { block, frames, head_bytes, body, .. } = self;
        frames.clear();
        frames.reserve(block.len() + body.len().min(MAX_PAYLOAD) + 32);
        // One byte is left free: a session's first head begins with one more.
        let mut rest = block.as_slice();
        let mut kind = kind::HEADERS;
        let mut flags = if body.is_empty() { flag::END_STREAM } else { 0 };
        loop {
            let (piece, after) = rest.split_at(rest.len().min(MAX_PAYLOAD - 1));
            rest = after;
            if rest.is_empty() {
                flags |= flag::END_HEADERS;
            }
            frames.extend(FrameHeader { length: piece.len(), kind, flags, stream: 0 }.bytes());
            frames.extend_from_slice(piece);
            if rest.is_empty() {
                break;
            }
            (kind, flags) = (kind::CONTINUATION, 0);
        }
        *head_bytes = frames.len();
        if (1..=MAX_PAYLOAD).contains(&body.len()) {
            let header = FrameHeader { length: body.len(), kind: kind::DATA, flags: flag::END_STREAM, stream: 0 };
            frames.extend(header.bytes());
            frames.extend_from_slice(body);
        }
    }

    /// The frames of the head alone.
    #[inline]
    pub(super) fn head(&self) -> &[u8] {
        &self.frames[..self.head_bytes]
    }

    /// The frames of head and body; of the head alone if the body is larger than a frame.
    #[inline]
    pub(super) fn whole(&self) -> &[u8] {
        &self.frames
    }

    #[inline]
    pub(super) fn body(&self) -> &Arc<[u8]> {
        &self.body
    }

    /// Whether it is a `HEAD`, whose response has no body whatever its length says.
    #[inline]
    pub(super) fn head_request(&self) -> bool {
        self.head_request
    }
}

/// A field whose name is at `index` of the static table, marked as not to be indexed.
fn put_literal(block: &mut Vec<u8>, index: usize, value: &str) {
    put_integer(block, 0, 4, index);
    put_string(block, value.as_bytes());
}

fn put_field(block: &mut Vec<u8>, name: &str, value: &[u8]) {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    // The only value of TE that is allowed.
    let te = is("te") && !value.eq_ignore_ascii_case(b"trailers");
    if te || CONNECTION_FIELDS.into_iter().any(is) {
        return;
    }
    match INDEXED_NAMES.iter().find(|(indexed, _)| is(indexed)) {
        Some(&(_, index)) => put_integer(block, 0, 4, index),
        None => {
            put_integer(block, 0, 4, 0);
            put_string(block, name.as_bytes());
            let from = block.len() - name.len();
            block[from..].make_ascii_lowercase();
        }
    }
    put_string(block, value);
}

#[cfg(test)]
mod tests {
    use super::super::frame::HEADER_BYTES;
    use super::super::hpack::unpack;
    use super::*;

    /// The fields of a template, checking that its frames hold its block.
    fn fields(template: &Template) -> Vec<String> {
        let mut rest = template.head();
        let mut block = Vec::new();
        let mut kinds = Vec::new();
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = FrameHeader::read(header);
            assert!(header.length < MAX_PAYLOAD && header.stream == 0);
            kinds.push(header.kind);
            block.extend_from_slice(&after[..header.length]);
            rest = &after[header.length..];
            assert_eq!(header.has(flag::END_HEADERS), rest.is_empty());
        }
        assert!(rest.is_empty() && block == template.block);
        assert_eq!(kinds[0], kind::HEADERS);
        assert!(kinds[1..].iter().all(|&kind| kind == kind::CONTINUATION));
        let mut fields = Vec::new();
        unpack(&block, &mut Vec::new(), |name, value| {
            fields.push(format!("{} = {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        })
        .expect("a good block");
        fields
    }

    const GET: Request<'_> =
        Request { method: "GET", scheme: "https", authority: "a.example:81", path: "/x", headers: &[], body: None };

    #[test]
    fn missing_headers_are_added() {
        let agent = format!("user-agent = {USER_AGENT}");
        let begin = [":method = GET", ":scheme = https", ":authority = a.example:81", ":path = /x", &agent];
        assert_eq!(fields(&Template::new(&GET)), begin);
        let put = Template::new(&Request { method: "PUT", scheme: "http", path: "/", body: Some(b"abc"), ..GET });
        let all = [":method = PUT", ":scheme = http", begin[2], ":path = /", begin[4], "content-length = 3"];
        assert_eq!(fields(&put), all);
        assert!(put.whole().ends_with(b"abc") && put.whole().len() == put.head().len() + HEADER_BYTES + 3);
    }

    #[test]
    fn given_headers_are_made_valid_for_http2() {
        let given = [
            ("Host", "b.example"),
            ("Connection", "close"),
            ("Transfer-Encoding", "chunked"),
            ("TE", "gzip"),
            ("TE", "trailers"),
            ("User-Agent", "me"),
            ("Content-Length", "0"),
            ("X-Y", "Z"),
            ("Cookie", "a=b"),
        ];
        let template = Template::new(&Request { method: "POST", headers: &given, ..GET });
        let begin = [":method = POST", ":scheme = https", ":authority = b.example"];
        let end = ["te = trailers", "user-agent = me", "content-length = 0", "x-y = Z", "cookie = a=b"];
        assert_eq!(fields(&template), [&begin[..], &[":path = /x"], &end].concat());
        let other = template.with_extra(&[("Cookie", "c=d"), ("Upgrade", "no")]);
        assert_eq!(fields(&other), [&begin[..], &[":path = /x"], &end, &["cookie = c=d"]].concat());
    }

    #[test]
    fn a_large_head_goes_on() {
        let value = "v".repeat(MAX_PAYLOAD);
        let template = Template::new(&GET).with_extra(&[("a", &value), ("b", &value)]);
        assert_eq!(fields(&template)[5..], [format!("a = {value}"), format!("b = {value}")]);
        let large = Template::new(&Request { method: "POST", body: Some(&[0; MAX_PAYLOAD + 1]), ..GET });
        assert_eq!(large.whole(), large.head());
        assert!(FrameHeader::read(large.head().first_chunk().expect("a header")).flags & flag::END_STREAM == 0);
    }
}
