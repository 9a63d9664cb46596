//! Response heads: where they end, and the few facts in them that say where the body ends and whether the
//! connection lives on (RFC 9112, sections 6.3 and 9.3). What a head means doesn't depend on how it was cut.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use super::body::Body;
use super::{Head, MAX_HEAD_BYTES, MAX_HEADERS, Malformed};
use crate::http::Wanted;

/// How every response begins.
const PREFIX: &[u8] = b"HTTP/1.";

/// What a head says about the rest of the response.
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
    /// Something else comes last: only the connection's end tells the body's.
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

/// What was found in bytes that begin with a head.
pub(super) enum Read {
    /// All of it, in so many bytes.
    Whole { length: usize, facts: Facts },
    /// It doesn't end here.
    Part,
}

/// Reads a head at the beginning of `bytes`.
pub(super) fn read(bytes: &[u8], wanted: Wanted, head: &mut Head) -> Result<Read, Malformed> {
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut response = Response::new(&mut []);
    // The parser below would skip line ends before the status line; a response has none there.
    if bytes.first().is_some_and(|&first| first != PREFIX[0]) {
        return Err(Malformed::NotHttp);
    }
    match ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut fields) {
        Ok(Status::Complete(length)) if length > MAX_HEAD_BYTES => Err(Malformed::HeadTooLarge),
        Ok(Status::Complete(length)) => {
            let status = response.code.filter(|&code| code >= 100).ok_or(Malformed::NotHttp)?;
            let facts = facts(status, response.version.unwrap_or(0), response.headers, wanted, head)?;
            Ok(Read::Whole { length, facts })
        }
        Ok(Status::Partial) => part(bytes, None),
        Err(httparse::Error::TooManyHeaders) => part(bytes, Some(Malformed::HeadTooLarge)),
        Err(_) => part(bytes, Some(Malformed::NotHttp)),
    }
}

/// A head that is not whole, or not right. A fault counts once the head's end is there, so that the outcome is the
/// same for a head in one piece and in many; what can't become a head at all is refused at once.
#[cold]
fn part(bytes: &[u8], fault: Option<Malformed>) -> Result<Read, Malformed> {
    let begun = bytes.len().min(PREFIX.len());
    if bytes[..begun] != PREFIX[..begun] {
        return Err(Malformed::NotHttp);
    }
    match end(bytes, 0) {
        Some(end) if end <= MAX_HEAD_BYTES => Err(fault.unwrap_or(Malformed::NotHttp)),
        None if bytes.len() < MAX_HEAD_BYTES => Ok(Read::Part),
        _ => Err(Malformed::HeadTooLarge),
    }
}

/// Adds what of `bytes` belongs to the head that `pieces` is the beginning of; how much that was if it is whole now.
/// Looks at every byte once, however small the pieces.
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

/// Where the blank line after the head ends, if it is in `bytes`; none begins before `from`.
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
    wanted: Wanted,
    head: &mut Head,
) -> Result<Facts, Malformed> {
    let mut length = None;
    let mut coding = Coding::None;
    let mut encoded = false;
    let (mut has_wanted, mut has_timing) = (false, false);
    let (mut close, mut keep) = (false, version >= 1);
    for header in headers {
        // By length first: most fields are told from those few by it alone.
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
    // Both lengths at once, or chunks in a version without them, is what a response is smuggled with: the chunks
    // count, and what comes after on this connection is not trusted (RFC 9112, section 6.1).
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

/// Digits only; several are fine if they all say the same (RFC 9112, section 6.3).
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
            // Nothing may be coded after it has been cut into chunks.
            Coding::Chunked => return Err(Malformed::BadFraming),
            _ if chunked => *coding = Coding::Chunked,
            // An old name for no coding at all.
            _ if token.eq_ignore_ascii_case(b"identity") => {}
            _ => *coding = Coding::Other,
        }
    }
    Ok(())
}
