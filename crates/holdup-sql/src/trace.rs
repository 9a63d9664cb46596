//! The trace id that an application put into a comment of its statement, as sqlcommenter does:
//! `key='value'` pairs with commas between them, keys and values percent-encoded, quotes in a value
//! escaped by a backslash (<https://google.github.io/sqlcommenter/spec/>). Only comments count; a
//! literal that looks like one does not.

use crate::{Dialect, Lexer, TokenKind};

/// The 32 hex digits of the trace id in a `traceparent` (W3C Trace Context, version 00 or later) in
/// any comment of `sql`.
///
/// `None` without such a comment, and if the value is malformed or the invalid all-zero id.
pub fn trace_id(sql: impl AsRef<[u8]>, dialect: Dialect) -> Option<String> {
    Lexer::new(sql.as_ref(), dialect)
        .filter(|token| token.kind == TokenKind::Comment)
        .find_map(|comment| in_comment(comment.text))
}

const KEY: &[u8] = b"traceparent";

fn in_comment(comment: &[u8]) -> Option<String> {
    let mut from = 0;
    while let Some(found) = comment.get(from..)?.windows(KEY.len()).position(|window| window.eq_ignore_ascii_case(KEY))
    {
        let start = from + found;
        from = start + KEY.len();
        // `xtraceparent` is another key.
        let whole = start
            .checked_sub(1)
            .and_then(|before| comment.get(before))
            .is_none_or(|byte| !byte.is_ascii_alphanumeric());
        if whole && let Some(id) = value(comment.get(from..)?).and_then(|value| parse_traceparent(&value)) {
            return Some(id);
        }
    }
    None
}

/// The decoded value behind a key: `='…'`, with optional quotes.
fn value(after_key: &[u8]) -> Option<Vec<u8>> {
    let rest = after_key.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"'").or(rest.strip_prefix(b"\"")).unwrap_or(rest);
    let mut bytes = rest.iter().copied();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => decoded.push(hex(bytes.next()?)? << 4 | hex(bytes.next()?)?),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' => decoded.push(byte),
            _ => break,
        }
    }
    Some(decoded)
}

fn parse_traceparent(value: &[u8]) -> Option<String> {
    let value = value.strip_prefix(b"'").unwrap_or(value);
    let value = std::str::from_utf8(value).ok()?.to_ascii_lowercase();
    let mut fields = value.split('-');
    let (version, trace, parent, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let is_hex = |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let good = is_hex(version, 2) && version != "ff" && is_hex(trace, 32) && is_hex(parent, 16) && flags.len() >= 2;
    (good && trace.bytes().any(|digit| digit != b'0')).then(|| trace.to_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";

    #[test]
    fn found_wherever_the_comment_stands() {
        for sql in [
            format!("/*traceparent='00-{ID}-c532cb4098ac3dd2-01'*/ SELECT 1"),
            format!(
                "SELECT 1 /*db_driver='x%20y',traceparent='00-{ID}-c532cb4098ac3dd2-01',tracestate='congo%3Dt61'*/"
            ),
            format!("SELECT 1 /*traceparent='00%2D{ID}%2Dc532cb4098ac3dd2%2D01'*/"),
            format!("SELECT 1 /*traceparent=%2700-{}-c532cb4098ac3dd2-01%27*/", ID.to_uppercase()),
            format!("SELECT /* traceparent='broken' */ 1 /* traceparent = '00-{ID}-c532cb4098ac3dd2-01"),
        ] {
            for dialect in [Dialect::MySql, Dialect::PostgreSql] {
                assert_eq!(trace_id(&sql, dialect).as_deref(), Some(ID), "{sql}");
            }
        }
    }

    #[test]
    fn nothing_where_there_is_none() {
        for sql in [
            "SELECT 1".to_owned(),
            format!("SELECT '/*traceparent=\\'00-{ID}-c532cb4098ac3dd2-01\\'*/'"),
            format!("SELECT 1 /*xtraceparent='00-{ID}-c532cb4098ac3dd2-01'*/"),
            format!("SELECT 1 /*traceparent='00-{}-c532cb4098ac3dd2-01'*/", "0".repeat(32)),
            format!("SELECT 1 /*traceparent='ff-{ID}-c532cb4098ac3dd2-01'*/"),
            format!("SELECT 1 /*traceparent='00-{}-c532cb4098ac3dd2-01'*/", &ID[1..]),
            format!("SELECT 1 /*traceparent='00-{ID}-c532cb4098ac3d"),
        ] {
            assert_eq!(trace_id(&sql, Dialect::MySql), None, "{sql}");
        }
        // What is a string to one server is a comment behind a string to another.
        let sql = format!(r"SELECT 'a\' /*traceparent='00-{ID}-c532cb4098ac3dd2-01'*/");
        assert_eq!(trace_id(&sql, Dialect::MySql), None);
        assert_eq!(trace_id(&sql, Dialect::PostgreSql).as_deref(), Some(ID));
        let sql = format!("SELECT $$ /*traceparent='00-{ID}-c532cb4098ac3dd2-01'*/ $$");
        assert_eq!(trace_id(&sql, Dialect::PostgreSql), None);
    }
}
