//! The client side of HTTP/1.1 (RFC 9112): encodes requests and parses responses from bytes in any
//! pieces. A head is parsed directly in the caller's buffer, bodies are counted and dropped, and
//! either is kept if wanted. It does not decompress or upgrade: a 101 ends the response, and the
//! connection cannot be used again.

mod body;
mod head;
mod kept_response;
mod memo;
mod request;

use thiserror::Error;

use crate::http::WantedParts;
use body::{Body, BodyProgress};
use head::{Facts, HeadResult};
pub use kept_response::Fields;
use kept_response::KeptResponse;
pub use memo::HeadMemo;
pub use request::request_bytes;

/// Most bytes of a response head, and of a response's trailers: bounds the memory of a connection.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most header fields of a response.
pub const MAX_HEADERS: usize = 128;

/// Most interim responses (100, 103) before the real one.
pub const MAX_INTERIM: u32 = 32;

/// Most bytes of a response's `Server-Timing` fields that are kept.
pub const MAX_TIMING_BYTES: usize = 2 * 1024;

/// Up to this size, the buffer for heads that arrive in pieces is kept between responses.
const KEPT_HEAD_BYTES: usize = 4 * 1024;

/// The result of feeding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More is to come.
    More,
    /// The response is complete; `used` of the fed bytes belonged to it.
    Done {
        /// Fed bytes that belonged to the response.
        used: usize,
    },
}

/// Why bytes are not a valid HTTP/1.x response. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// The status line, or a line of the head, is invalid.
    #[error("not an HTTP/1 response")]
    NotHttp,
    /// More than [`MAX_HEAD_BYTES`], [`MAX_HEADERS`] or [`MAX_INTERIM`], or endless trailers.
    #[error("a response head larger than {MAX_HEAD_BYTES} bytes, {MAX_HEADERS} fields or {MAX_INTERIM} interim ones")]
    HeadTooLarge,
    /// The end of the body is unclear: contradicting lengths, invalid chunk sizes, and the like.
    #[error("a response whose body length is contradictory or unreadable")]
    BadFraming,
}

/// The kept parts of a response head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Status code; 0 until the head is complete.
    pub status: u16,
    /// The last `Location`, if wanted and given.
    pub location: Option<Box<[u8]>>,
    /// Each `Set-Cookie`, if wanted.
    pub set_cookie: Vec<Box<[u8]>>,
    /// The content of `Server-Timing`, if wanted: several fields are joined by commas, following
    /// RFC 9110, section 5.3. One that does not fit is left out.
    pub server_timing: Vec<u8>,
}

impl Head {
    /// A `Server-Timing` field.
    fn add_timing(&mut self, value: &[u8]) {
        let separator: &[u8] = if self.server_timing.is_empty() { b"" } else { b"," };
        if self.server_timing.len() + separator.len() + value.len() <= MAX_TIMING_BYTES {
            self.server_timing.extend_from_slice(separator);
            self.server_timing.extend_from_slice(value);
        }
    }

    /// Clears the fields that were picked out.
    fn clear(&mut self) {
        self.location = None;
        self.set_cookie.clear();
        self.server_timing.clear();
    }
}

/// Parses one response after another on one connection.
#[derive(Debug)]
pub struct Parser {
    /// The head so far, if it did not arrive complete.
    pieces: Vec<u8>,
    body: Body,
    head: Head,
    kept: KeptResponse,
    wanted: WantedParts,
    head_request: bool,
    keep_alive: bool,
    interim: u32,
    expected_body: Option<u64>,
    body_bytes: u64,
}

impl Parser {
    /// A parser that expects a response's first byte.
    #[must_use]
    pub fn new() -> Self {
        Self {
            pieces: Vec::new(),
            body: Body::Head,
            head: Head::default(),
            kept: KeptResponse::default(),
            wanted: WantedParts::default(),
            head_request: false,
            keep_alive: true,
            interim: 0,
            expected_body: None,
            body_bytes: 0,
        }
    }

    /// Prepares for the next response; `head_request` if it answers a `HEAD`, which has no body.
    #[inline]
    pub fn begin(&mut self, head_request: bool, wanted: WantedParts) {
        if self.pieces.capacity() > KEPT_HEAD_BYTES {
            self.pieces = Vec::new();
        }
        self.pieces.clear();
        self.body = Body::Head;
        self.head.status = 0;
        if self.wanted.picks() || self.wanted.server_timing {
            self.head.clear();
        }
        if self.wanted.keeps() {
            self.kept.clear(wanted);
        }
        self.wanted = wanted;
        self.head_request = head_request;
        self.keep_alive = true;
        self.interim = 0;
        self.expected_body = None;
        self.body_bytes = 0;
    }

    /// Takes received bytes.
    ///
    /// # Errors
    /// If they are not an HTTP/1.x response; see [`Malformed`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, Malformed> {
        self.take_all(bytes, None)
    }

    /// Like [`Parser::feed`], with a memory of the last head: one with the same meaning is not
    /// parsed again, which costs a tenth. See [`HeadMemo`] on how to share them.
    ///
    /// # Errors
    /// If they are not an HTTP/1.x response; see [`Malformed`].
    #[inline]
    pub fn feed_with(&mut self, bytes: &[u8], memo: &mut HeadMemo) -> Result<Progress, Malformed> {
        self.take_all(bytes, Some(memo))
    }

    #[inline]
    fn take_all(&mut self, bytes: &[u8], memo: Option<&mut HeadMemo>) -> Result<Progress, Malformed> {
        if self.wanted.keeps() { self.take_and_keep(bytes, memo) } else { self.take::<false>(bytes, memo) }
    }

    #[inline(never)]
    fn take_and_keep(&mut self, bytes: &[u8], memo: Option<&mut HeadMemo>) -> Result<Progress, Malformed> {
        self.take::<true>(bytes, memo)
    }

    /// With `KEEP`, keeps the wanted parts of head and body; without, it does not look for them.
    #[inline]
    fn take<const KEEP: bool>(&mut self, bytes: &[u8], mut memo: Option<&mut HeadMemo>) -> Result<Progress, Malformed> {
        let mut at = 0;
        while self.body == Body::Head {
            let rest = &bytes[at..];
            if self.pieces.is_empty()
                && let Some((length, facts)) = memo.as_deref().and_then(|memo| memo.recall(rest, self.wanted))
            {
                if KEEP && self.wanted.head {
                    self.kept.head(&rest[..length]);
                }
                if facts.has_timing && self.wanted.server_timing {
                    self.pick_timing(&rest[..length]);
                }
                at += length;
                self.begin_body(facts)?;
                continue;
            }
            let Some(used) = self.read_head(rest, memo.as_deref_mut())? else { return Ok(Progress::More) };
            at += used;
        }
        let taken =
            if KEEP { self.keep_body(&bytes[at..])? } else { self.body.take(&bytes[at..], &mut self.body_bytes)? };
        match taken {
            BodyProgress::All => Ok(Progress::More),
            BodyProgress::Whole { used } => Ok(Progress::Done { used: at + used }),
        }
    }

    /// The server closed the connection. Returns whether that is the regular end of the response.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.body == Body::UntilClose
    }

    /// The kept parts of the head.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Status code; 0 until the head is complete.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Name and value of each field of the final response's head, in order, if the head was wanted.
    /// Names are as sent, values without the surrounding white space. Empty until the head is
    /// complete; trailers are not included.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        self.kept.fields(self.head.status != 0)
    }

    /// The first bytes of the body, as many as were wanted: as sent, still compressed, without the
    /// sizes and line ends of chunks.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.kept.bytes()
    }

    /// Whether the body so far is longer than [`Parser::body`].
    #[must_use]
    pub fn body_is_cut(&self) -> bool {
        self.body_bytes > self.kept.bytes().len() as u64
    }

    /// Whether the connection can be used again after this response.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Body bytes so far, as sent: still compressed, without the sizes and line ends of chunks.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Total body bytes, if the head declares them; 0 for responses without a body.
    #[must_use]
    pub fn expected_body(&self) -> Option<u64> {
        self.expected_body
    }

    /// Takes bytes of the body, and keeps its content. Bytes between chunks are taken line by line:
    /// such a line contains no content.
    fn keep_body(&mut self, bytes: &[u8]) -> Result<BodyProgress, Malformed> {
        let limit = self.wanted.body_bytes as usize;
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let proper = self.body.proper(rest.len());
            self.kept.body(&rest[..proper], limit);
            let line = || rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
            let piece = &rest[..if proper > 0 { proper } else { line() }];
            if let BodyProgress::Whole { used } = self.body.take(piece, &mut self.body_bytes)? {
                return Ok(BodyProgress::Whole { used: at + used });
            }
            at += piece.len();
            if at == bytes.len() {
                return Ok(BodyProgress::All);
            }
        }
    }

    /// Picks `Server-Timing` out of a recognised head: its values differ from response to response.
    #[inline(never)]
    fn pick_timing(&mut self, head: &[u8]) {
        for (name, value) in kept_response::fields_of(head) {
            if name.eq_ignore_ascii_case(b"server-timing") {
                self.head.add_timing(value);
            }
        }
    }

    /// Reads the head; returns how many of `bytes` belong to it once it is complete.
    fn read_head(&mut self, bytes: &[u8], memo: Option<&mut HeadMemo>) -> Result<Option<usize>, Malformed> {
        // Most heads arrive complete: they are parsed in place, without a copy.
        let (facts, used) = if self.pieces.is_empty() {
            match head::read(bytes, self.wanted, &mut self.head)? {
                HeadResult::Whole { length, facts } => {
                    if let Some(memo) = memo {
                        memo.keep(&bytes[..length], facts);
                    }
                    if self.wanted.head {
                        self.kept.head(&bytes[..length]);
                    }
                    (facts, length)
                }
                HeadResult::Part => {
                    self.pieces.extend_from_slice(bytes);
                    return Ok(None);
                }
            }
        } else {
            let Some(used) = head::gather(&mut self.pieces, bytes)? else { return Ok(None) };
            let HeadResult::Whole { facts, .. } = head::read(&self.pieces, self.wanted, &mut self.head)? else {
                return Err(Malformed::NotHttp);
            };
            if self.wanted.head {
                self.kept.head(&self.pieces);
            }
            self.pieces.clear();
            (facts, used)
        };
        self.begin_body(facts)?;
        Ok(Some(used))
    }

    /// The head is complete: continue with the body, or after an interim response with the next
    /// head.
    #[inline]
    fn begin_body(&mut self, facts: Facts) -> Result<(), Malformed> {
        // 101 ends HTTP on this connection; the others below 200 are followed by the real response.
        if facts.status < 200 && facts.status != 101 {
            self.interim += 1;
            self.head.clear();
            return if self.interim > MAX_INTERIM { Err(Malformed::HeadTooLarge) } else { Ok(()) };
        }
        self.head.status = facts.status;
        self.body = facts.body(self.head_request);
        self.keep_alive = facts.keep_alive && self.body != Body::UntilClose;
        self.expected_body = self.body.length();
        Ok(())
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod kept_response_tests;
#[cfg(test)]
mod tests;
