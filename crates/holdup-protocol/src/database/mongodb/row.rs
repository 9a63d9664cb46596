//! A document as a row: the names and texts of its values, for captures and checks. Values inside documents
//! and lists have paths as names, such as `address.city` and `items.0.sku`. It keeps no types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use holdup_mongodb::{Document, Element, decimal_text};
use holdup_recording::clock;

use crate::database::answer::MAX_KEPT_BYTES;

/// Deepest level whose values are kept.
const DEPTH_MAX: usize = 20;

/// Names and values; none is null.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) names: Vec<String>,
    pub(super) values: Vec<Option<Vec<u8>>>,
    bytes: usize,
}

impl Row {
    /// The values of `document`, as many as fit into 1 MiB.
    pub(super) fn new(document: Document<'_>) -> Self {
        let mut row = Self::default();
        row.add(document, "", 0);
        row
    }

    fn add(&mut self, document: Document<'_>, path: &str, depth: usize) {
        for (name, element) in document.elements().map_while(Result::ok) {
            let name = String::from_utf8_lossy(name);
            let name = if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") };
            if let Element::Map(inner) | Element::List(inner) = element {
                if depth < DEPTH_MAX {
                    self.add(inner, &name, depth + 1);
                }
                continue;
            }
            let value = text(element);
            self.bytes += name.len() + value.as_ref().map_or(0, Vec::len) + size_of::<String>();
            if self.bytes > MAX_KEPT_BYTES {
                return;
            }
            self.names.push(name);
            self.values.push(value);
        }
    }
}

/// A single value as text: dates by RFC 3339, ids in hex digits, bytes in base64.
fn text(element: Element<'_>) -> Option<Vec<u8>> {
    Some(match element {
        Element::Double(number) => number.to_string().into_bytes(),
        Element::Text(text) => text.to_vec(),
        Element::Binary(bytes) => BASE64.encode(bytes).into_bytes(),
        Element::Bool(is_true) => is_true.to_string().into_bytes(),
        // Years that a time in nanoseconds does not reach are left as milliseconds.
        Element::Time(ms) => ms.checked_mul(1_000_000).map_or_else(|| ms.to_string(), clock::rfc3339).into_bytes(),
        Element::Int(number) => number.to_string().into_bytes(),
        Element::Long(number) => number.to_string().into_bytes(),
        Element::Timestamp { seconds, increment } => format!("{seconds}:{increment}").into_bytes(),
        Element::Decimal(bytes) => decimal_text(bytes).into_bytes(),
        Element::Id(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes(),
        Element::Map(_) | Element::List(_) | Element::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_mongodb::Writer;

    #[test]
    fn every_kind_has_its_text() {
        let list = Writer::list(|list| list.document("0", Writer::new().text("sku", "a")).long("1", 1 << 40));
        let document = Writer::new()
            .id("_id", b"\x01\x02abcdefghij")
            .double("half", 0.5)
            .time("at", 1_500)
            .bool("paid", true)
            .null("note")
            .decimal("price", &holdup_mongodb::decimal("19.90").unwrap_or_default())
            .binary("raw", &[0, 255])
            .timestamp("op", 7, 2)
            .list_of("items", list);
        let bytes = document.finish();
        let row = Row::new(Document::read(&bytes).unwrap());
        let values = row.values.iter().map(|v| v.as_ref().map(|v| String::from_utf8_lossy(v).into_owned()));
        let pairs: Vec<(&str, Option<String>)> = row.names.iter().map(String::as_str).zip(values).collect();
        let expected = [
            ("_id", Some("01026162636465666768696a")),
            ("half", Some("0.5")),
            ("at", Some("1970-01-01T00:00:01.500Z")),
            ("paid", Some("true")),
            ("note", None),
            ("price", Some("19.90")),
            ("raw", Some("AP8=")),
            ("op", Some("7:2")),
            ("items.0.sku", Some("a")),
            ("items.1", Some("1099511627776")),
        ];
        assert_eq!(pairs, expected.map(|(name, value)| (name, value.map(str::to_owned))));
    }

    #[test]
    fn a_large_one_is_cut() {
        let text = "x".repeat(MAX_KEPT_BYTES / 2);
        let bytes = Writer::new().text("a", &text).text("b", &text).text("c", "y").finish();
        assert_eq!(Row::new(Document::read(&bytes).unwrap()).names, ["a"]);
    }

    #[test]
    fn fields_below_the_depth_limit_are_left_out() {
        let nested = |levels| (0..levels).fold(Writer::new().int("x", 1), |it, _| Writer::new().document("d", it));
        let names = |levels| Row::new(Document::read(&nested(levels).finish()).unwrap()).names.len();
        assert_eq!((names(DEPTH_MAX), names(DEPTH_MAX + 1)), (1, 0));
    }
}
