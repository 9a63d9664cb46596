//! How a piece of a body is encoded.

use crate::script::StepFailure;
use crate::script::template::percent;

/// How a piece of a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Plain,
    /// As a JSON string.
    JsonText,
    /// As a JSON number, `true`, `false` or `null` if the text is one, else as a JSON string.
    JsonValue,
    /// As a value in a form (application/x-www-form-urlencoded).
    Form,
}

/// Writes `bytes` in this encoding.
///
/// # Errors
/// None are known.
pub(crate) fn put_encoded(encoding: Encoding, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StepFailure> {
    match encoding {
        Encoding::Plain => out.extend_from_slice(bytes),
        Encoding::JsonValue if is_json_literal(bytes) => out.extend_from_slice(bytes),
        Encoding::JsonText | Encoding::JsonValue => {
            let text = String::from_utf8_lossy(bytes);
            serde_json::to_writer(&mut *out, &*text).map_err(|_| StepFailure::Template)?;
        }
        Encoding::Form => {
            for byte in bytes {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => out.push(*byte),
                    b' ' => out.push(b'+'),
                    _ => out.extend_from_slice(&percent(*byte)),
                }
            }
        }
    }
    Ok(())
}

/// Whether it is a JSON number, `true`, `false` or `null`.
pub fn is_json_literal(bytes: &[u8]) -> bool {
    matches!(bytes, b"true" | b"false" | b"null")
        || bytes.first().is_some_and(|b| b.is_ascii_digit() || *b == b'-')
            // The parser accepts other bytes after the number.
            && bytes.last().is_some_and(u8::is_ascii_digit)
            && serde_json::from_slice::<serde_json::Number>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_literals() {
        for yes in ["1", "-2.5e3", "true", "null"] {
            assert!(is_json_literal(yes.as_bytes()), "{yes}");
        }
        for no in ["01", "", "1 ", "-", "NaN", "truely", "\"x\""] {
            assert!(!is_json_literal(no.as_bytes()), "{no}");
        }
    }
}
