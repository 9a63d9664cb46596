//! What first messages of a client of PostgreSQL look like, and a request where it is not known what came before.

use crate::speech::Piece;

/// Codes of a first message in place of a version ("Message Formats" in its manual).
pub(crate) const SSL_REQUEST: u32 = 80_877_103;
pub(crate) const GSS_REQUEST: u32 = 80_877_104;
pub(crate) const CANCEL_REQUEST: u32 = 80_877_102;

/// A text up to its NUL, and what is behind.
pub(crate) fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (bytes.get(..end).unwrap_or_default(), bytes.get(end + 1..).unwrap_or_default()),
        None => (bytes, &[]),
    }
}

/// Whether a request may begin with these bytes.
pub(crate) fn begins_request(piece: &Piece<'_>) -> bool {
    let Some(([kind, length @ ..], _)) = piece.bytes.split_first_chunk::<5>() else { return false };
    let length = u64::from(u32::from_be_bytes(*length));
    match kind {
        b'Q' => length >= 5 && length < piece.length(),
        b'P' | b'B' | b'E' | b'D' | b'C' => length >= 6 && length < piece.length(),
        b'S' => length == 4,
        _ => false,
    }
}

/// Whether a connection whose client speaks so first is one of PostgreSQL.
pub(crate) fn is_startup(bytes: &[u8]) -> bool {
    let Some(([length, code], _)) = bytes.split_first_chunk::<8>().map(|(head, rest)| {
        let [a, b, c, d, e, f, g, h] = *head;
        ([u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])], rest)
    }) else {
        return false;
    };
    (8..10_000).contains(&length) && (code >> 16 == 3 || matches!(code, SSL_REQUEST | GSS_REQUEST | CANCEL_REQUEST))
}
