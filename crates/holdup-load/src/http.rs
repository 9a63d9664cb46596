//! HTTP/1.1 on the client's side: request bytes laid out ahead of time, and a response parser that is fed
//! whatever arrives and keeps no body. It knows nothing of sockets or time.

use crate::scenario::{Operation, Target};

/// Most bytes a response head may have: bounds the memory of a connection.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most header fields of a response.
const MAX_HEADERS: usize = 128;

/// The bytes of `operation`'s request.
pub fn request_bytes(operation: &Operation, target: &Target) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", operation.method, operation.path);
    let has = |name: &str| operation.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if !has("host") {
        head += &format!("Host: {}\r\n", target.authority());
    }
    if !has("user-agent") {
        head += concat!("User-Agent: holdup/", env!("CARGO_PKG_VERSION"), "\r\n");
    }
    for (name, value) in &operation.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if let Some(body) = &operation.body {
        head += &format!("Content-Length: {}\r\n", body.len());
    } else if !matches!(operation.method.as_str(), "GET" | "HEAD" | "DELETE") {
        head += "Content-Length: 0\r\n";
    }
    head += "\r\n";
    let mut bytes = head.into_bytes();
    bytes.extend(operation.body.iter().flat_map(|b| b.bytes()));
    bytes
}

/// What feeding bytes led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More is to come.
    More,
    /// The response is whole; `used` of the bytes fed belonged to it.
    Done {
        /// Bytes of this feed that belonged to the response.
        used: usize,
    },
}

/// Not a valid HTTP/1.x response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadResponse;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// The head is not whole yet.
    Head,
    /// So many bytes to come.
    Sized(u64),
    /// A chunk's size line; digits read so far, and whether an extension or the CR has begun.
    ChunkSize { size: u64, digits: u8, past_digits: bool },
    /// So many bytes of a chunk to come, with its line end.
    Chunk(u64),
    /// Trailer lines; bytes in the present line.
    Trailer { line: u32 },
    /// Until the server closes.
    UntilClose,
}

/// Parser of one response after another on one connection.
#[derive(Debug)]
pub struct ResponseParser {
    head: Vec<u8>,
    body: Body,
    /// Status of the response being read (0 before its head is whole).
    pub status: u16,
    /// Whether the connection can be used again after it.
    pub keep_alive: bool,
    head_request: bool,
}

impl ResponseParser {
    /// A parser that expects a response's first byte.
    pub fn new() -> Self {
        Self { head: Vec::new(), body: Body::Head, status: 0, keep_alive: true, head_request: false }
    }

    /// Prepares for the next response; `head_request` if it answers a `HEAD`, which has no body.
    pub fn begin(&mut self, head_request: bool) {
        self.head.clear();
        self.body = Body::Head;
        self.status = 0;
        self.keep_alive = true;
        self.head_request = head_request;
    }

    /// Takes the bytes that arrived.
    ///
    /// # Errors
    /// If they are no HTTP/1.x response, or its head is larger than [`MAX_HEAD_BYTES`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, BadResponse> {
        let mut at = 0;
        while self.body == Body::Head {
            match self.feed_head(&bytes[at..])? {
                // Interim responses (100, 103) are followed by the real one.
                Some(used) if (100..200).contains(&self.status) && self.status != 101 => {
                    at += used;
                    self.head.clear();
                    self.body = Body::Head;
                    if at == bytes.len() {
                        return Ok(Progress::More);
                    }
                }
                Some(used) => at += used,
                None => return Ok(Progress::More),
            }
        }
        self.feed_body(bytes, at)
    }

    /// The server closed. Whether that is the regular end of the response.
    pub fn closed(&self) -> bool {
        self.body == Body::UntilClose
    }

    /// Reads the head; the bytes of `bytes` that belong to it once it is whole.
    fn feed_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, BadResponse> {
        let had = self.head.len();
        // Most heads arrive whole: those are parsed where they are, without a copy.
        let (input, copied) = if had == 0 {
            (bytes, false)
        } else {
            self.head.extend_from_slice(bytes);
            (self.head.as_slice(), true)
        };
        let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut fields);
        match response.parse(input).map_err(|_| BadResponse)? {
            httparse::Status::Complete(length) => {
                self.status = response.code.unwrap_or(0);
                let version = response.version.unwrap_or(0);
                let (body, keep_alive) = framing(self.status, version, response.headers, self.head_request)?;
                self.body = body;
                self.keep_alive = keep_alive && body != Body::UntilClose;
                Ok(Some(length - had))
            }
            httparse::Status::Partial if input.len() >= MAX_HEAD_BYTES => Err(BadResponse),
            httparse::Status::Partial => {
                if !copied {
                    self.head.extend_from_slice(bytes);
                }
                Ok(None)
            }
        }
    }

    fn feed_body(&mut self, bytes: &[u8], mut at: usize) -> Result<Progress, BadResponse> {
        loop {
            match &mut self.body {
                Body::Sized(left) => {
                    let take = (*left).min((bytes.len() - at) as u64);
                    *left -= take;
                    at += take as usize;
                    return Ok(if *left == 0 { Progress::Done { used: at } } else { Progress::More });
                }
                Body::UntilClose => return Ok(Progress::More),
                Body::Chunk(left) => {
                    let take = (*left).min((bytes.len() - at) as u64);
                    *left -= take;
                    at += take as usize;
                    if *left > 0 {
                        return Ok(Progress::More);
                    }
                    self.body = Body::ChunkSize { size: 0, digits: 0, past_digits: false };
                }
                Body::ChunkSize { size, digits, past_digits } => {
                    let Some(&byte) = bytes.get(at) else { return Ok(Progress::More) };
                    at += 1;
                    match (byte, (byte as char).to_digit(16)) {
                        (b'\n', _) if *digits == 0 => return Err(BadResponse),
                        (b'\n', _) if *size == 0 => self.body = Body::Trailer { line: 0 },
                        (b'\n', _) => self.body = Body::Chunk(*size + 2),
                        (_, Some(digit)) if !*past_digits && *digits < 15 => {
                            *size = *size * 16 + u64::from(digit);
                            *digits += 1;
                        }
                        (_, Some(_)) if !*past_digits => return Err(BadResponse),
                        (b'\r' | b';' | b' ' | b'\t', _) if *digits > 0 => *past_digits = true,
                        _ if *past_digits => {}
                        _ => return Err(BadResponse),
                    }
                }
                Body::Trailer { line } => {
                    let Some(&byte) = bytes.get(at) else { return Ok(Progress::More) };
                    at += 1;
                    match byte {
                        b'\n' if *line == 0 => return Ok(Progress::Done { used: at }),
                        b'\n' => *line = 0,
                        b'\r' => {}
                        _ if *line as usize > MAX_HEAD_BYTES => return Err(BadResponse),
                        _ => *line += 1,
                    }
                }
                Body::Head => return Err(BadResponse),
            }
        }
    }
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new()
    }
}

/// How the body ends and whether the connection lives on: RFC 9112, sections 6.3 and 9.3.
fn framing(
    status: u16,
    version: u8,
    headers: &[httparse::Header<'_>],
    head_request: bool,
) -> Result<(Body, bool), BadResponse> {
    let mut length = None;
    let mut chunked = false;
    let mut keep_alive = version >= 1;
    for header in headers {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            let parsed: u64 = value.parse().map_err(|_| BadResponse)?;
            if length.is_some_and(|l| l != parsed) {
                return Err(BadResponse);
            }
            length = Some(parsed);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"));
        } else if header.name.eq_ignore_ascii_case("connection") {
            for token in value.split(',') {
                if token.trim().eq_ignore_ascii_case("close") {
                    keep_alive = false;
                } else if token.trim().eq_ignore_ascii_case("keep-alive") {
                    keep_alive = true;
                }
            }
        }
    }
    let body = if head_request || status == 204 || status == 304 || (100..200).contains(&status) {
        Body::Sized(0)
    } else if chunked {
        Body::ChunkSize { size: 0, digits: 0, past_digits: false }
    } else {
        length.map_or(Body::UntilClose, Body::Sized)
    };
    Ok((body, keep_alive))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `response` in pieces of `size` bytes; the number of bytes used, or none if it never ended.
    fn feed(response: &[u8], size: usize) -> Result<Option<usize>, BadResponse> {
        let mut parser = ResponseParser::new();
        let mut fed = 0;
        for piece in response.chunks(size) {
            if let Progress::Done { used } = parser.feed(piece)? {
                return Ok(Some(fed + used));
            }
            fed += piece.len();
        }
        Ok(None)
    }

    #[test]
    fn whole_responses_however_they_are_cut() {
        let cases: [(&str, usize); 6] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 2", 10),
            ("HTTP/1.1 204 No Content\r\n\r\n", 0),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
                0,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\nTrailer: x\r\n\r\nrest", 4),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0),
        ];
        for (text, left_over) in cases {
            for size in 1..=text.len() {
                assert_eq!(feed(text.as_bytes(), size), Ok(Some(text.len() - left_over)), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn garbage_is_refused_and_bounded() {
        for bad in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
        ] {
            assert_eq!(feed(bad.as_bytes(), 7), Err(BadResponse), "{bad:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(2 * MAX_HEAD_BYTES));
        assert_eq!(feed(endless.as_bytes(), 4_096), Err(BadResponse));
    }

    #[test]
    fn a_body_without_length_ends_with_the_connection() {
        let mut parser = ResponseParser::new();
        assert_eq!(parser.feed(b"HTTP/1.0 200 OK\r\n\r\nabc"), Ok(Progress::More));
        assert!(parser.closed() && !parser.keep_alive);
        parser.begin(true);
        assert_eq!(parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), Ok(Progress::Done { used: 38 }));
    }
}
