//! Values as text: JSON, a literal of SQL, and a field of PostgreSQL's COPY.

use holdup_protocol::database::Dialect;
use holdup_recording::clock;
use serde::{Serialize, Serializer};

use crate::field::Value;

/// JSON; dates by RFC 3339, names in the schema's order.
pub(crate) fn json(value: &Value) -> String {
    // It has no keys that are not texts, which is all that could fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => out.serialize_unit(),
            Self::Bool(is_true) => out.serialize_bool(*is_true),
            Self::Int(number) => out.serialize_i64(*number),
            Self::Double(number) => out.serialize_f64(*number),
            Self::Text(text) => out.serialize_str(text),
            Self::Time(ms) => out.serialize_str(&rfc3339(*ms)),
            Self::Map(entries) => out.collect_map(entries.iter().map(|(name, value)| (&**name, value))),
            Self::List(items) => out.collect_seq(items),
        }
    }
}

fn rfc3339(ms: i64) -> String {
    clock::rfc3339(ms.saturating_mul(1_000_000))
}

/// A literal in a statement.
pub(crate) fn literal(value: &Value, dialect: Dialect, out: &mut String) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Bool(is_true) => out.push_str(if *is_true { "TRUE" } else { "FALSE" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Double(number) => out.push_str(&number.to_string()),
        Value::Text(text) => quoted(text, dialect, out),
        Value::Time(ms) => quoted(&time(*ms, dialect), dialect, out),
        Value::Map(_) | Value::List(_) => quoted(&json(value), dialect, out),
    }
}

/// A date as the server reads it. MySQL's DATETIME takes no zone.
fn time(ms: i64, dialect: Dialect) -> String {
    let text = rfc3339(ms);
    if dialect == Dialect::Mysql { text.trim_end_matches('Z').replace('T', " ") } else { text }
}

fn quoted(text: &str, dialect: Dialect, out: &mut String) {
    out.push('\'');
    for letter in text.chars() {
        match letter {
            '\'' => out.push_str("''"),
            '\\' if dialect == Dialect::Mysql => out.push_str("\\\\"),
            letter => out.push(letter),
        }
    }
    out.push('\'');
}

/// A field of COPY's text form.
pub(crate) fn copied(value: &Value, out: &mut Vec<u8>) {
    let text = match value {
        Value::Null => return out.extend(b"\\N"),
        Value::Bool(is_true) => return out.push(if *is_true { b't' } else { b'f' }),
        Value::Int(number) => return out.extend(number.to_string().as_bytes()),
        Value::Double(number) => return out.extend(number.to_string().as_bytes()),
        Value::Time(ms) => return out.extend(rfc3339(*ms).as_bytes()),
        Value::Text(text) => text.clone(),
        Value::Map(_) | Value::List(_) => json(value),
    };
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend(b"\\\\"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            byte => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_literal() {
        let value = Value::Text("it's \\ a\ttab\n".to_owned());
        let mut text = String::new();
        literal(&value, Dialect::Mysql, &mut text);
        assert_eq!(text, "'it''s \\\\ a\ttab\n'");
        text.clear();
        literal(&value, Dialect::Postgres, &mut text);
        assert_eq!(text, "'it''s \\ a\ttab\n'");
        let mut bytes = Vec::new();
        copied(&value, &mut bytes);
        assert_eq!(bytes, b"it's \\\\ a\\ttab\\n");
        text.clear();
        literal(&Value::Time(1_500), Dialect::Mysql, &mut text);
        assert_eq!(text, "'1970-01-01 00:00:01.500'");
    }
}
