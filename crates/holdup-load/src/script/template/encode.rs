//! Encodings of texts: percent encoding, JSON strings, hexadecimal, base 64, case.

use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::script::StepFailure;

pub(super) const HEX: &[u8; 16] = b"0123456789abcdef";

/// How a text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Percent encoding of all but the unreserved characters of RFC 3986, section 2.3: valid in a
    /// path and in a query.
    Url,
    /// A JSON string with its quotes, RFC 8259, section 7.
    Json,
    /// RFC 4648, section 4, padded.
    Base64,
    /// RFC 4648, section 5, without padding, as JWT wants it.
    Base64Url,
    /// Lower case.
    Hex,
    Lower,
    Upper,
}

impl Encoding {
    /// Writes the encoded `bytes`. Only `Lower` and `Upper` need valid text.
    pub(super) fn write(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StepFailure> {
        match self {
            Self::Url => url(bytes, out),
            Self::Json => json(bytes, out),
            Self::Base64 => base64(&STANDARD, true, bytes, out)?,
            Self::Base64Url => base64(&URL_SAFE_NO_PAD, false, bytes, out)?,
            Self::Hex => out.extend(bytes.iter().flat_map(|&b| hex(b))),
            Self::Lower if bytes.is_ascii() => out.extend(bytes.iter().map(u8::to_ascii_lowercase)),
            Self::Upper if bytes.is_ascii() => out.extend(bytes.iter().map(u8::to_ascii_uppercase)),
            Self::Lower => out.extend_from_slice(text(bytes)?.to_lowercase().as_bytes()),
            Self::Upper => out.extend_from_slice(text(bytes)?.to_uppercase().as_bytes()),
        }
        Ok(())
    }
}

/// The two digits of a byte.
pub(super) fn hex(byte: u8) -> [u8; 2] {
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]
}

/// A byte as RFC 3986, section 2.1, writes it.
pub(crate) fn percent(byte: u8) -> [u8; 3] {
    let [high, low] = hex(byte).map(|digit| digit.to_ascii_uppercase());
    [b'%', high, low]
}

fn text(bytes: &[u8]) -> Result<&str, StepFailure> {
    std::str::from_utf8(bytes).map_err(|_| StepFailure::Template)
}

fn url(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&percent(byte));
        }
    }
}

fn json(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&hex(byte));
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn base64(engine: &impl base64::Engine, padded: bool, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StepFailure> {
    let start = out.len();
    out.resize(start + base64::encoded_len(bytes.len(), padded).ok_or(StepFailure::Template)?, 0);
    engine.encode_slice(bytes, &mut out[start..]).map_err(|_| StepFailure::Template)?;
    Ok(())
}
