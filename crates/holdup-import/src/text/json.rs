//! JSON in pasted text, strict or as MongoDB's shells print it: which lines of a paste are a document.
//! The notation itself is read by `holdup-mongodb`.

pub(super) use holdup_mongodb::Value;
use holdup_mongodb::{printed, printed_head};

use super::paste::Line;

/// A document and its extent.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    /// Number of lines.
    pub(super) used: usize,
    /// Whether it ended before its last bracket.
    pub(super) is_cut: bool,
}

/// Whether a line may begin a document.
fn begins(lines: &[Line]) -> bool {
    lines.first().is_some_and(|line| line.text.trim_start().starts_with(['{', '[']))
}

/// The beginning of the document that begins here, enough to recognise it.
pub(super) fn head(lines: &[Line]) -> Option<Value> {
    if begins(lines) { printed_head(lines) } else { None }
}

/// The document that begins here.
pub(super) fn read(lines: &[Line]) -> Option<Document> {
    if !begins(lines) {
        return None;
    }
    let found = printed(lines)?;
    let (line, at) = found.end;
    let used = (line + usize::from(at > 0)).clamp(1, lines.len());
    Some(Document { value: found.value, used, is_cut: found.is_cut })
}

/// The JSON value that `text` begins with.
pub(super) fn document(text: &str) -> Option<&str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    text.get(..values.byte_offset())
}

#[cfg(test)]
mod tests {
    use super::super::paste;
    use super::*;

    fn document(text: &str) -> Document {
        read(&paste::lines(text.as_bytes(), |_| false)).unwrap()
    }

    #[test]
    fn strict_and_shell_notation_are_one() {
        let strict = document("{\"a\": {\"b\": {\"$numberLong\": \"7\"}}, \"c\": [1.5, true, null, \"x\\\"y\"]}\nnext");
        let shell = document("{\n  a: { b: Long('7') },\n  'c': [ 1.5, true, null, `x\"` +\n 'y' ]\n}\nnext");
        assert_eq!(strict.value, shell.value);
        assert_eq!((strict.used, shell.used, strict.is_cut), (1, 5, false));
        let odd =
            document("{ at: ISODate('2026-11-26T00:00:00Z'), id: ObjectId(\"ab\"), n: NumberLong(12), r: /a'b/i }");
        assert_eq!(odd.value.get("at").and_then(Value::text), Some("2026-11-26T00:00:00Z"));
        assert_eq!(
            (odd.value.get("n").and_then(Value::number), odd.value.get("r").and_then(Value::text)),
            (Some(12.0), Some("a'b"))
        );
    }

    #[test]
    fn a_cut_document_keeps_what_it_had() {
        let cut = document("{ \"a\": 1, \"b\": { \"c\": 2, \"d\"");
        assert_eq!((cut.value.at(&["b", "c"]).and_then(Value::number), cut.is_cut), (Some(2.0), true));
        assert!(read(&paste::lines(b"{ a 1 }", |_| false)).is_none());
        let deep = "[".repeat(500);
        assert!(read(&paste::lines(deep.as_bytes(), |_| false)).is_none());
        assert_eq!(head(&paste::lines(b"x", |_| false)), None);
    }
}
