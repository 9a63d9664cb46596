//! Response heads: where they end, and the facts that determine where the body ends and whether the
//! connection stays open (RFC 9112, sections 6.3 and 9.3). The result does not depend on how the
//! head was split.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use super::body::Body;
use super::{Head, MAX_HEAD_BYTES, MAX_HEADERS, Malformed};
use crate::http::WantedParts;

/// The start of every response.
const PREFIX: &[u8] = b"HTTP/1.";

/// What a head determines about the rest of the response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub status: u16,
    pub keep_alive: bool,
    pub length: Option<u64>,
    coding: Coding,
    /// It has a `Location` or `Set-Cookie`.
    pub has_wanted: bool,
    /// It has a `Server-Timing`.
    pub has_timing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    None,
    Chunked,
    /// Another coding comes last: only the connection's end shows the body's.
    Other,
}

impl Facts {
    /// How the body ends.
    #[inline]
    pub fn body(&self, head_request: bool) -> Body {
        if head_request || self.status == 204 || self.status == 304 || self.status < 200 {
            return Body::Sized(0);
        }
        match (self.coding, self.length) {
            (Coding::Chunked, _) => Body::chunked(),
            (Coding::None, Some(length)) => Body::Sized(length),
            _ => Body::UntilClose,
        }
    }
}

/// What was found in bytes that start with a head.
pub(super) enum HeadResult {
    /// All of it, in this many bytes.
    Whole { length: usize, facts: Facts },
    /// It does not end here.
    Part,
}

/// Reads a head at the start of `bytes`.
pub(super) fn read(bytes: &[u8], wanted: WantedParts, head: &mut Head) -> Result<HeadResult, Malformed> {
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut response = Response::new(&mut []);
    // The parser below would skip line ends before the status line, which are invalid in a
    // response.
    if bytes.first().is_some_and(|&first| first != PREFIX[0]) {
        return Err(Malformed::NotHttp);
    }
    match ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut fields) {
        Ok(Status::Complete(length)) if length > MAX_HEAD_BYTES => Err(Malformed::HeadTooLarge),
        Ok(Status::Complete(length)) => {
            let status = response.code.filter(|&code| code >= 100).ok_or(Malformed::NotHttp)?;
            let facts = facts(status, response.version.unwrap_or(0), response.headers, wanted, head)?;
            Ok(HeadResult::Whole { length, facts })
        }
        Ok(Status::Partial) => part(bytes, None),
        Err(httparse::Error::TooManyHeaders) => part(bytes, Some(Malformed::HeadTooLarge)),
        Err(_) => part(bytes, Some(Malformed::NotHttp)),
    }
}

/// A head that is incomplete or invalid. A fault counts only once the head's end has come, so that
/// the result is the same for a head in one piece and in many; bytes that cannot be a head are
/// refused at once.
#[cold]
fn part(bytes: &[u8], fault: Option<Malformed>) -> Result<HeadResult, Malformed> {
    let begun = bytes.len().min(PREFIX.len());
    if bytes[..begun] != PREFIX[..begun] {
        return Err(Malformed::NotHttp);
    }
    match end(bytes, 0) {
        Some(end) if end <= MAX_HEAD_BYTES => Err(fault.unwrap_or(Malformed::NotHttp)),
        None if bytes.len() < MAX_HEAD_BYTES => Ok(HeadResult::Part),
        _ => Err(Malformed::HeadTooLarge),
    }
}

/// Appends the bytes that belong to the head in `pieces`; returns how many, once it is complete.
/// Reads every byte once, however small the pieces.
pub(super) fn gather(pieces: &mut Vec<u8>, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let had = pieces.len();
    pieces.extend_from_slice(&bytes[..bytes.len().min(MAX_HEAD_BYTES + 1 - had.min(MAX_HEAD_BYTES))]);
    if had < PREFIX.len() {
        let begun = pieces.len().min(PREFIX.len());
        if pieces[..begun] != PREFIX[..begun] {
            return Err(Malformed::NotHttp);
        }
    }
    match end(pieces, had.saturating_sub(2)) {
        Some(end) if end <= MAX_HEAD_BYTES => {
            pieces.truncate(end);
            Ok(Some(end - had))
        }
        None if pieces.len() < MAX_HEAD_BYTES => Ok(None),
        _ => Err(Malformed::HeadTooLarge),
    }
}

/// The end of the blank line after the head, if it is in `bytes`; the search starts at `from`.
fn end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == b'\n')? + 1;
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'\n'), _) => return Some(at + 1),
            (Some(b'\r'), Some(b'\n')) => return Some(at + 2),
            _ => {}
        }
    }
}

fn facts(
    status: u16,
    version: u8,
    headers: &[Header<'_>],
    wanted: WantedParts,
    head: &mut Head,
) -> Result<Facts, Malformed> {
    let mut length = None;
    let mut coding = Coding::None;
    let mut encoded = false;
    let (mut has_wanted, mut has_timing) = (false, false);
    let (mut close, mut keep) = (false, version >= 1);
    for header in headers {
        // Compare lengths first: that alone rules out most fields.
        match header.name.len() {
            8 if header.name.eq_ignore_ascii_case("location") => {
                has_wanted = true;
                if wanted.location {
                    head.location = Some(header.value.into());
                }
            }
            10 if header.name.eq_ignore_ascii_case("set-cookie") => {
                has_wanted = true;
                if wanted.set_cookie {
                    head.set_cookie.push(header.value.into());
                }
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for token in tokens(header.value) {
                    close |= token.eq_ignore_ascii_case(b"close");
                    keep |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            13 if header.name.eq_ignore_ascii_case("server-timing") => {
                has_timing = true;
                if wanted.server_timing {
                    head.add_timing(header.value.trim_ascii());
                }
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => content_length(header.value, &mut length)?,
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                encoded = true;
                transfer_encoding(header.value, &mut coding)?;
            }
            _ => {}
        }
    }
    // Both lengths at once, or chunks in a version without them, are signs of response smuggling:
    // the chunks count, and the connection is not trusted after this response (RFC 9112, section
    // 6.1).
    let suspicious = encoded && (length.is_some() || version == 0);
    Ok(Facts {
        status,
        keep_alive: keep && !close && !suspicious && status != 101,
        length,
        coding,
        has_wanted,
        has_timing,
    })
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// Digits only; repeated fields are accepted if they are equal (RFC 9112, section 6.3).
fn content_length(value: &[u8], length: &mut Option<u64>) -> Result<(), Malformed> {
    for token in tokens(value) {
        if token.is_empty() {
            return Err(Malformed::BadFraming);
        }
        let parsed = token.iter().try_fold(0_u64, |sum, &byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        });
        let parsed = parsed.ok_or(Malformed::BadFraming)?;
        if length.is_some_and(|before| before != parsed) {
            return Err(Malformed::BadFraming);
        }
        *length = Some(parsed);
    }
    Ok(())
}

/// The codings of one line, after those of the lines before it: the last one decides.
fn transfer_encoding(value: &[u8], coding: &mut Coding) -> Result<(), Malformed> {
    for token in tokens(value).filter(|token| !token.is_empty()) {
        let chunked = token.eq_ignore_ascii_case(b"chunked");
        match *coding {
            // Chunking has to be the last coding.
            Coding::Chunked => return Err(Malformed::BadFraming),
            _ if chunked => *coding = Coding::Chunked,
            // An old name for no coding.
            _ if token.eq_ignore_ascii_case(b"identity") => {}
            _ => *coding = Coding::Other,
        }
    }
    Ok(())
}
