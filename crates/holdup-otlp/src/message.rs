//! Reads messages of OTLP in either encoding: a field has a number in protobuf and a name in JSON, and
//! one reader serves both. As in `protobuf` and `json`, values are visited and nothing is built.

use std::borrow::Cow;

use crate::attributes::Value;
use crate::json::Json;
use crate::protobuf::{Fields, Wire};
use crate::{Encoding, Malformed};

/// A field: its number in protobuf, and its name in JSON.
pub type Field = (u64, &'static str);

/// A value that is about to be read. One of JSON must be read once.
pub enum Node<'n, 'a> {
    /// As protobuf.
    Protobuf(Wire<'a>),
    /// As JSON.
    Json(&'n mut Json<'a>),
}

/// Hands the message in `body` to `each`.
///
/// # Errors
/// If the body is malformed, or the error of `each`.
pub fn read<'a>(
    encoding: Encoding,
    body: &'a [u8],
    each: impl FnOnce(Node<'_, 'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    match encoding {
        Encoding::Protobuf => each(Node::Protobuf(Wire::Bytes(body))),
        Encoding::Json => {
            let text = std::str::from_utf8(body).map_err(|_| Malformed("the JSON is not UTF-8"))?;
            let mut json = Json::new(text);
            each(Node::Json(&mut json))?;
            json.end()
        }
    }
}

impl<'a> Node<'_, 'a> {
    /// Calls `each` with the name and value of each of `fields` that the message has.
    pub fn message(
        self,
        fields: &[Field],
        mut each: impl FnMut(&'static str, Node<'_, 'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        match self {
            Self::Protobuf(value) => Fields(value.bytes().unwrap_or_default()).each(|number, value| {
                let known = fields.iter().find(|(known, _)| *known == number);
                known.map_or(Ok(()), |(_, name)| each(name, Node::Protobuf(value)))
            }),
            Self::Json(json) => json.object(|json, key| match fields.iter().find(|(_, name)| *name == key) {
                Some((_, name)) => each(name, Node::Json(json)),
                None => json.skip(),
            }),
        }
    }

    /// Calls `each` with every message of a repeated field.
    pub fn items(self, mut each: impl FnMut(Node<'_, 'a>) -> Result<(), Malformed>) -> Result<(), Malformed> {
        match self {
            Self::Protobuf(message @ Wire::Bytes(_)) => each(Node::Protobuf(message)),
            Self::Protobuf(_) => Ok(()),
            Self::Json(json) => json.array(|json| each(Node::Json(json))),
        }
    }

    /// Calls `each` with every message at the end of `path`, a field in each of another.
    pub fn each_at(
        self,
        path: &[Field],
        each: &mut dyn FnMut(Node<'_, 'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        match path {
            [] => each(self),
            [first, rest @ ..] => self.message(&[*first], |_, node| node.items(|node| node.each_at(rest, &mut *each))),
        }
    }

    /// Reads it ahead: fields come in any order, and some must be known before others.
    pub fn ahead<T>(&mut self, read: impl FnOnce(Node<'_, 'a>) -> T) -> T {
        match self {
            Self::Protobuf(value) => read(Node::Protobuf(*value)),
            Self::Json(json) => {
                let mut copy = **json;
                read(Node::Json(&mut copy))
            }
        }
    }

    /// A text.
    pub fn text(self) -> Result<Cow<'a, str>, Malformed> {
        match self {
            Self::Protobuf(value) => Ok(value.text()),
            Self::Json(json) => json.string(),
        }
    }

    /// A whole number from 0.
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Protobuf(value) => Ok(value.number()),
            Self::Json(json) => json.whole(),
        }
    }

    /// A whole number.
    pub fn signed(self) -> Result<i64, Malformed> {
        match self {
            Self::Protobuf(value) => Ok(value.number() as i64),
            Self::Json(json) => json.whole(),
        }
    }

    /// A number.
    pub fn double(self) -> Result<f64, Malformed> {
        match self {
            Self::Protobuf(value) => Ok(value.double()),
            Self::Json(json) => json.double(),
        }
    }

    /// True or false.
    pub fn flag(self) -> Result<bool, Malformed> {
        match self {
            Self::Protobuf(value) => Ok(value.number() != 0),
            Self::Json(json) => json.boolean(),
        }
    }

    /// A constant by its number, or in JSON by its name's place in `names`.
    pub fn constant(self, names: &[&str]) -> Result<u64, Malformed> {
        match self {
            Self::Protobuf(value) => Ok(value.number()),
            Self::Json(json) => json.constant(names),
        }
    }

    /// An id of N bytes; none if it has another length, or is all zero, which means absent. OTLP's JSON
    /// uses hex digits of either case where other protobuf JSON uses base64.
    pub fn id<const N: usize>(self) -> Result<Option<[u8; N]>, Malformed> {
        let id = match self {
            Self::Protobuf(value) => value.bytes().and_then(|bytes| bytes.try_into().ok()),
            Self::Json(json) => from_hex(json.string()?.as_bytes()),
        };
        Ok(id.filter(|id| *id != [0; N]))
    }

    /// Appends numbers of 8 bytes to `into`, which takes `most`; returns whether there are too many. A
    /// number is made of its bits, or read as JSON.
    pub fn numbers<N>(
        self,
        into: &mut Vec<N>,
        most: usize,
        of_bits: impl Fn(u64) -> N,
        read: impl Fn(&mut Json<'a>) -> Result<N, Malformed>,
    ) -> Result<bool, Malformed> {
        let mut is_too_large = false;
        match self {
            Self::Protobuf(Wire::Fixed64(bits)) if into.len() < most => into.push(of_bits(bits)),
            // Packed.
            Self::Protobuf(Wire::Bytes(bytes)) if into.len() + bytes.len() / 8 <= most => {
                into.extend(bytes.as_chunks().0.iter().map(|bytes| of_bits(u64::from_le_bytes(*bytes))));
            }
            Self::Protobuf(_) => is_too_large = true,
            Self::Json(json) => json.array(|json| {
                if into.len() < most {
                    into.push(read(json)?);
                    return Ok(());
                }
                is_too_large = true;
                json.skip()
            })?,
        }
        Ok(is_too_large)
    }

    /// A `KeyValue` whose value is text, a number or a boolean, for `put`.
    pub fn key_value(self, mut put: impl FnMut(&str, Value<'a>)) -> Result<(), Malformed> {
        let (mut key, mut found) = (Cow::Borrowed(""), None);
        self.message(&[(1, "key"), (2, "value")], |name, node| match name {
            "key" => node.text().map(|text| key = text),
            _ => node.message(&VALUE, |name, node| {
                found = Some(match name {
                    "stringValue" => Value::Text(node.text()?),
                    "boolValue" => Value::Flag(node.flag()?),
                    "intValue" => Value::Whole(node.signed()?),
                    _ => Value::Double(node.double()?),
                });
                Ok(())
            }),
        })?;
        found.into_iter().for_each(|value| put(&key, value));
        Ok(())
    }

    /// The attributes of the resource of a message that has it first.
    pub fn resource(self, mut put: impl FnMut(&str, Value<'a>)) -> Result<(), Malformed> {
        self.message(&[(1, "resource")], |_, node| {
            node.each_at(&[(1, "attributes")], &mut |node| node.key_value(&mut put))
        })
    }
}

/// The kinds of a value.
const VALUE: [Field; 4] = [(1, "stringValue"), (2, "boolValue"), (3, "intValue"), (4, "doubleValue")];

/// The text of a value, borrowed or converted.
pub fn into_text(value: Value<'_>) -> Cow<'_, str> {
    match value {
        Value::Text(text) => text,
        other => Cow::Owned(other.text().into_owned()),
    }
}

fn from_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() != 2 * N {
        return None;
    }
    let mut id = [0; N];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(id)
}
