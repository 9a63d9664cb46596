//! Recognises the first messages of a PostgreSQL client, and a request after unknown bytes.

use std::fmt::Write as _;

use crate::packets::mysql::quoted;
use crate::packets::piece::Piece;
use crate::packets::turn::ClientIdentity;

/// Codes in place of the version in a first message ("Message Formats" in PostgreSQL's manual).
pub(crate) const SSL_REQUEST: u32 = 80_877_103;
pub(crate) const GSS_REQUEST: u32 = 80_877_104;
pub(crate) const CANCEL_REQUEST: u32 = 80_877_102;

/// A text up to its NUL, and the bytes after it.
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

/// Whether a client's first bytes are PostgreSQL's startup message.
pub(crate) fn is_startup(bytes: &[u8]) -> bool {
    let Some(([length, code], _)) = bytes.split_first_chunk::<8>().map(|(head, rest)| {
        let [a, b, c, d, e, f, g, h] = *head;
        ([u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])], rest)
    }) else {
        return false;
    };
    (8..10_000).contains(&length) && (code >> 16 == 3 || matches!(code, SSL_REQUEST | GSS_REQUEST | CANCEL_REQUEST))
}

/// Account and database of a startup message, which is a list of names and values.
pub(crate) fn client_identity(mut settings: &[u8]) -> ClientIdentity {
    let mut identity = ClientIdentity::default();
    while settings.first().is_some_and(|byte| *byte != 0) {
        let (name, rest) = text(settings);
        let (value, rest) = text(rest);
        match name {
            b"user" => identity.user = value.to_vec(),
            b"database" => identity.database = value.to_vec(),
            _ => {}
        }
        settings = rest;
    }
    // The database's default name is the account's.
    if identity.database.is_empty() {
        identity.database.clone_from(&identity.user);
    }
    identity
}

/// The values of a `Bind`, as a list: `$1 = 'a', $2 = NULL`; empty if there are none, or if one is
/// binary: only the server knows its type.
pub(crate) fn filled_in(values: &[u8]) -> Vec<u8> {
    list(values).map(String::into_bytes).unwrap_or_default()
}

fn list(values: &[u8]) -> Option<String> {
    let word = |bytes: &[u8]| bytes.first_chunk().map(|two| usize::from(u16::from_be_bytes(*two)));
    let formats = word(values)?;
    let rest = values.get(2..)?;
    if rest.get(..2 * formats)?.chunks_exact(2).any(|format| word(format) != Some(0)) {
        return None;
    }
    let mut rest = rest.get(2 * formats..)?;
    let count = word(rest)?;
    rest = rest.get(2..)?;
    let mut list = String::new();
    for at in 1..=count {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let _ = write!(list, "{}${at} = ", if at > 1 { ", " } else { "" });
        rest = behind;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => list.push_str("NULL"),
            Ok(length) => {
                let (value, behind) = rest.split_at_checked(length)?;
                quoted(&mut list, &String::from_utf8_lossy(value));
                rest = behind;
            }
        }
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_a_list() {
        let values = b"\0\x01\0\0\0\x02\0\0\0\x03it'\xff\xff\xff\xff\0\0";
        assert_eq!(filled_in(values), b"$1 = 'it''', $2 = NULL");
        assert_eq!(filled_in(b"\0\x01\0\x01\0\x01\0\0\0\x01x\0\0"), b"");
        for end in 0..values.len() {
            let _ = filled_in(&values[..end]);
        }
        let identity = client_identity(b"user\0app\0database\0shop\0\0");
        assert_eq!((identity.user, identity.database), (b"app".to_vec(), b"shop".to_vec()));
    }
}
