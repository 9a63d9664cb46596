//! Documents with templates in their values, and what a filled-in text becomes in BSON: by its kind, which
//! the scenario says in MongoDB's extended JSON (`$oid`, `$date`, …), or by what it looks like.
//!
//! The result is always a whole document: no text can end a value, or become a name or an operator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use holdup_mongodb::{Writer, decimal};
use holdup_recording::clock;

use crate::script::encoding::is_json_literal;
use crate::script::{StepFailure, Template};

/// A value of a document.
#[derive(Clone, Debug)]
pub enum DocumentValue {
    /// A document, in its order.
    Map(Vec<(Box<str>, DocumentValue)>),
    /// A list.
    List(Vec<DocumentValue>),
    /// A single value.
    Single(Kind, Template),
}

/// What a text becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number, true, false or null if it is one, else a text.
    Plain,
    /// A text, whatever it looks like.
    Text,
    /// `$numberInt`: 32 bits.
    Int,
    /// `$numberLong`: 64 bits.
    Long,
    /// `$numberDouble`.
    Double,
    /// `$numberDecimal`.
    Decimal,
    /// `$oid`: 24 hex digits.
    Id,
    /// `$date`: by RFC 3339, or milliseconds since 1970.
    Date,
    /// `$uuid`: 32 hex digits, with or without hyphens.
    Uuid,
    /// `$binary`: base64, with the number of its kind.
    Binary(u8),
    /// `$regularExpression`: a pattern, with its options.
    Pattern(Box<str>),
    /// `$timestamp`: seconds and a number within the second, as `7:2`.
    Timestamp,
    /// `$minKey` and `$maxKey`.
    EndOfOrder(bool),
}

impl DocumentValue {
    /// Whether it is always the same.
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Map(entries) => entries.iter().all(|(_, value)| value.is_constant()),
            Self::List(items) => items.iter().all(Self::is_constant),
            Self::Single(_, template) => template.constant().is_some(),
        }
    }

    /// Adds its entries to `out`, or one by one the items of a list. `text` gives the text of a template.
    ///
    /// # Errors
    /// If a template cannot be filled in, or its text is not of its kind.
    pub fn put_entries(&self, mut out: Writer, text: &mut FillText<'_>) -> Result<Writer, StepFailure> {
        match self {
            Self::Map(entries) => {
                for (name, value) in entries {
                    out = value.put(name, out, text)?;
                }
            }
            Self::List(items) => {
                for (place, value) in items.iter().enumerate() {
                    out = value.put(itoa::Buffer::new().format(place), out, text)?;
                }
            }
            Self::Single(..) => return Err(StepFailure::Template),
        }
        Ok(out)
    }

    fn put(&self, name: &str, out: Writer, text: &mut FillText<'_>) -> Result<Writer, StepFailure> {
        match self {
            Self::Map(_) => Ok(out.document(name, self.put_entries(Writer::new(), text)?)),
            Self::List(_) => Ok(out.list_of(name, self.put_entries(Writer::new(), text)?)),
            Self::Single(kind, template) => {
                let mut bytes = Vec::new();
                text(template, &mut bytes)?;
                let value = std::str::from_utf8(&bytes).map_err(|_| StepFailure::Template)?;
                kind.put(name, value, out).map_err(|_| StepFailure::Template)
            }
        }
    }
}

/// Writes the text of a template.
pub type FillText<'f> = dyn FnMut(&Template, &mut Vec<u8>) -> Result<(), StepFailure> + 'f;

/// The text of templates that are constant.
pub fn constant(template: &Template, out: &mut Vec<u8>) -> Result<(), StepFailure> {
    out.extend_from_slice(template.constant().ok_or(StepFailure::Template)?.as_bytes());
    Ok(())
}

impl Kind {
    /// Adds `text` under `name`.
    ///
    /// # Errors
    /// What would be right, if it is not of this kind.
    pub fn put(&self, name: &str, text: &str, out: Writer) -> Result<Writer, &'static str> {
        Ok(match self {
            Self::Plain if is_json_literal(text.as_bytes()) => return Ok(plain(name, text, out)),
            Self::Plain | Self::Text => out.text(name, text),
            Self::Int => out.int(name, text.parse().map_err(|_| "a whole number of 32 bits")?),
            Self::Long => out.long(name, text.parse().map_err(|_| "a whole number of 64 bits")?),
            Self::Double => out.double(name, double(text).ok_or("a number, Infinity, -Infinity or NaN")?),
            Self::Decimal => out.decimal(name, &decimal(text).ok_or("a decimal number of at most 34 digits")?),
            Self::Id => out.id(name, &hex(text).ok_or("24 hex digits")?),
            Self::Date => out.time(name, date(text).ok_or("a date such as 2026-01-31T08:49:37Z, or milliseconds")?),
            Self::Uuid => out.binary_of(UUID, name, &uuid(text).ok_or("a UUID")?),
            Self::Binary(kind) => out.binary_of(*kind, name, &BASE64.decode(text).map_err(|_| "base64")?),
            Self::Pattern(options) => out.pattern(name, text, options),
            Self::Timestamp => {
                let parts = text.split_once(':').and_then(|(t, i)| Some((t.parse().ok()?, i.parse().ok()?)));
                let (seconds, increment) = parts.ok_or("seconds and a number")?;
                out.timestamp(name, seconds, increment)
            }
            Self::EndOfOrder(is_last) => out.end_of_order(name, *is_last),
        })
    }
}

/// The kind of bytes that a UUID is.
const UUID: u8 = 4;

/// A number, true, false or null. Whole numbers get 32 bits where those are enough, as shells do it.
fn plain(name: &str, text: &str, out: Writer) -> Writer {
    match text {
        "true" | "false" => out.bool(name, text == "true"),
        "null" => out.null(name),
        _ => match (text.parse(), text.parse()) {
            (Ok(int), _) => out.int(name, int),
            (_, Ok(long)) => out.long(name, long),
            // JSON's numbers are numbers here, too.
            _ => out.double(name, text.parse().unwrap_or(f64::NAN)),
        },
    }
}

fn double(text: &str) -> Option<f64> {
    match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

fn date(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| Some(clock::parse_rfc3339(text)?.div_euclid(1_000_000)))
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    hex(&text.replace('-', ""))
}

/// The bytes of exactly so many pairs of hex digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_mongodb::{Document, Element};

    fn element(kind: &Kind, text: &str) -> String {
        match kind.put("k", text, Writer::new()) {
            Ok(writer) => {
                let bytes = writer.finish();
                format!("{:?}", Document::read(&bytes).unwrap().get("k").unwrap())
            }
            Err(expected) => format!("not {expected}"),
        }
    }

    #[test]
    fn a_text_becomes_what_it_looks_like_only_where_it_is_plain() {
        for (text, plain) in [
            ("5", "Int(5)"),
            ("-2147483649", "Long(-2147483649)"),
            ("1.5e3", "Double(1500.0)"),
            ("99999999999999999999", "Double(1e20)"),
            ("true", "Bool(true)"),
            ("null", "Other"),
            ("05", "Text([48, 53])"),
            ("", "Text([])"),
        ] {
            assert_eq!(element(&Kind::Plain, text), plain, "{text}");
            assert!(element(&Kind::Text, text).starts_with("Text"), "{text}");
        }
    }

    #[test]
    fn each_kind_and_what_is_not_of_it() {
        for (kind, good, expected, bad) in [
            (Kind::Int, "5", "Int(5)", "2147483648"),
            (Kind::Long, "5", "Long(5)", "5.0"),
            (Kind::Double, "5", "Double(5.0)", "five"),
            (Kind::Double, "-Infinity", "Double(-inf)", "inf"),
            (Kind::Date, "1970-01-01T00:00:01.5Z", "Time(1500)", "yesterday"),
            (Kind::Date, "-7", "Time(-7)", ""),
            (Kind::Timestamp, "7:2", "Timestamp { seconds: 7, increment: 2 }", "7"),
            (Kind::Binary(0), "AP8=", "Binary([0, 255])", "A"),
        ] {
            assert_eq!(element(&kind, good), expected);
            assert!(element(&kind, bad).starts_with("not "), "{kind:?} {bad}");
        }
        let id = element(&Kind::Id, "0102030405060708090a0b0C");
        assert_eq!(id, "Id([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])");
        for bad in ["0102030405060708090a0b0", "0102030405060708090a0b0c0"] {
            assert!(element(&Kind::Id, bad).starts_with("not 24"), "{bad}");
        }
        assert!(
            element(&Kind::Uuid, "00000000-0000-4000-8000-000000000001").starts_with("Binary([0, 0, 0, 0, 0, 0, 64")
        );
        assert!(matches!(
            Document::read(&Kind::Decimal.put("k", "1.10", Writer::new()).unwrap().finish()).unwrap().get("k"),
            Some(Element::Decimal(_))
        ));
    }
}
