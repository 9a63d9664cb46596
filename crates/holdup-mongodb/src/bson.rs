//! Reads BSON in place: elements in their order, and whole documents as values. A length is trusted
//! only as far as there are bytes for it. Depth and number of values are bounded; texts that are not
//! UTF-8 are kept with replacement characters.

use thiserror::Error;

use crate::value::Value;

/// Largest document that is read: three times what a server stores as one.
pub const DOCUMENT_BYTES_MAX: usize = 48 << 20;

/// Deepest nesting. A server allows 180 levels; what holdup reads has some ten.
const DEPTH_MAX: usize = 100;

/// Most values of a document.
const VALUES_MAX: usize = 1_000_000;

/// Bytes of a document that are neither name nor value: its length, and the zero at its end.
const FRAME_BYTES: usize = 5;

/// Why bytes are not a document.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BsonError {
    /// A length that does not fit into the bytes around it.
    #[error("a length in the document does not fit its bytes")]
    Length,
    /// A kind of value that BSON does not have.
    #[error("the document has a value of an unknown kind ({0:#04x})")]
    Kind(u8),
    /// More than [`DEPTH_MAX`] levels, or more than [`VALUES_MAX`] values.
    #[error("the document is too deep or has too many values")]
    TooLarge,
}

/// A document in the caller's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a>(&'a [u8]);

/// A value in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Element<'a> {
    /// A floating-point number.
    Double(f64),
    /// A text, not checked to be UTF-8.
    Text(&'a [u8]),
    /// A document.
    Map(Document<'a>),
    /// A list: a document whose names do not matter.
    List(Document<'a>),
    /// Bytes.
    Binary(&'a [u8]),
    /// True or false.
    Bool(bool),
    /// Milliseconds since 1970.
    Time(i64),
    /// An integer of 32 bits.
    Int(i32),
    /// An integer of 64 bits.
    Long(i64),
    /// A position in the oplog.
    Timestamp {
        /// Seconds since 1970.
        seconds: u32,
        /// Number within the second.
        increment: u32,
    },
    /// A decimal number: see [`crate::decimal_text`].
    Decimal(&'a [u8; 16]),
    /// An id of a document.
    Id(&'a [u8; 12]),
    /// Any other kind: null, patterns, code.
    Other,
}

impl<'a> Document<'a> {
    /// The document that fills `bytes`.
    ///
    /// # Errors
    /// If they are shorter or longer than it says of itself.
    pub fn read(bytes: &'a [u8]) -> Result<Self, BsonError> {
        match Self::split(bytes)? {
            (document, []) => Ok(document),
            _ => Err(BsonError::Length),
        }
    }

    /// The document that `bytes` begin with, and the rest.
    ///
    /// # Errors
    /// If its length does not fit.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BsonError> {
        let length = bytes.first_chunk().map(|length| u32::from_le_bytes(*length) as usize).ok_or(BsonError::Length)?;
        if !(FRAME_BYTES..=DOCUMENT_BYTES_MAX).contains(&length) {
            return Err(BsonError::Length);
        }
        let (own, rest) = bytes.split_at_checked(length).ok_or(BsonError::Length)?;
        match own {
            [_, _, _, _, body @ .., 0] => Ok((Self(body), rest)),
            _ => Err(BsonError::Length),
        }
    }

    /// The document that `bytes` begin with, as far as there are bytes of it: its elements end early.
    ///
    /// # Errors
    /// If its length cannot be one.
    pub fn beginning(bytes: &'a [u8]) -> Result<Self, BsonError> {
        match Self::split(bytes) {
            Ok((document, _)) => Ok(document),
            Err(error) => {
                let (length, body) = bytes.split_first_chunk().ok_or(error)?;
                let length = u32::from_le_bytes(*length) as usize;
                let is_cut = (bytes.len() + 1..=DOCUMENT_BYTES_MAX).contains(&length);
                if is_cut { Ok(Self(body)) } else { Err(error) }
            }
        }
    }

    /// Its readable elements as a value, without those named in `without` and without what follows a
    /// broken or cut one. Of a cut list or document within it, the readable part is kept.
    #[must_use]
    pub fn readable(self, without: &[&str]) -> Value {
        let mut left = VALUES_MAX;
        Value::Map(self.readable_entries(without, 0, &mut left))
    }

    fn readable_entries(self, without: &[&str], depth: usize, left: &mut usize) -> Vec<(String, Value)> {
        let mut entries = Vec::new();
        let mut elements = self.elements();
        while let Some(Ok((name, element))) = elements.next_or_beginning() {
            if without.iter().any(|unwanted| unwanted.as_bytes() == name) {
                continue;
            }
            let name = String::from_utf8_lossy(name).into_owned();
            let value = match element {
                Element::Map(_) | Element::List(_) if depth >= DEPTH_MAX => break,
                Element::Map(document) => Value::Map(document.readable_entries(&[], depth + 1, left)),
                Element::List(document) => {
                    let items = document.readable_entries(&[], depth + 1, left).into_iter();
                    Value::List(items.map(|(_, item)| item).collect())
                }
                plain => match plain.value(depth, left) {
                    Ok(value) => value,
                    Err(_) => break,
                },
            };
            entries.push((name, value));
        }
        entries
    }

    /// Its elements in their order.
    #[must_use]
    pub fn elements(self) -> Elements<'a> {
        Elements { rest: self.0 }
    }

    /// The first element with this name; none either if the document is broken before it.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Element<'a>> {
        let mut readable = self.elements().map_while(Result::ok);
        readable.find(|(key, _)| *key == name.as_bytes()).map(|(_, element)| element)
    }

    /// The whole document as a value.
    ///
    /// # Errors
    /// If a part of it cannot be read, or if it is too deep or has too many values.
    pub fn value(self) -> Result<Value, BsonError> {
        let mut left = VALUES_MAX;
        self.map(0, &mut left)
    }

    fn map(self, depth: usize, left: &mut usize) -> Result<Value, BsonError> {
        let mut entries = Vec::new();
        for element in self.elements() {
            let (name, element) = element?;
            entries.push((String::from_utf8_lossy(name).into_owned(), element.value(depth, left)?));
        }
        Ok(Value::Map(entries))
    }

    fn list(self, depth: usize, left: &mut usize) -> Result<Value, BsonError> {
        let mut items = Vec::new();
        for element in self.elements() {
            items.push(element?.1.value(depth, left)?);
        }
        Ok(Value::List(items))
    }
}

impl Element<'_> {
    fn value(self, depth: usize, left: &mut usize) -> Result<Value, BsonError> {
        *left = left.checked_sub(1).filter(|_| depth < DEPTH_MAX).ok_or(BsonError::TooLarge)?;
        Ok(match self {
            Self::Double(number) if number.is_finite() => Value::Number(number),
            Self::Int(number) => Value::Number(f64::from(number)),
            Self::Long(number) => Value::Number(number as f64),
            Self::Timestamp { seconds, .. } => Value::Time(i64::from(seconds) * 1_000),
            Self::Time(ms) => Value::Time(ms),
            Self::Bool(is_true) => Value::Bool(is_true),
            Self::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
            Self::Map(document) => document.map(depth + 1, left)?,
            Self::List(document) => document.list(depth + 1, left)?,
            Self::Double(_) | Self::Binary(_) | Self::Decimal(_) | Self::Id(_) | Self::Other => Value::Null,
        })
    }
}

/// The elements of a document. An error is the last of them.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<(&'a [u8], Element<'a>), BsonError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

impl<'a> Elements<'a> {
    /// The next element; of a document or list that is cut, its beginning, which is then the last.
    fn next_or_beginning(&mut self) -> Option<Result<(&'a [u8], Element<'a>), BsonError>> {
        let before = self.rest;
        let read = self.next()?;
        if read.is_ok() {
            return Some(read);
        }
        let mut cut = Self { rest: before };
        let [kind] = *cut.array().ok()?;
        let name = cut.until_zero().ok()?;
        let part = Document::beginning(cut.rest);
        Some(match kind {
            0x03 => part.map(|part| (name, Element::Map(part))),
            0x04 => part.map(|part| (name, Element::List(part))),
            _ => read,
        })
    }

    fn read(&mut self) -> Result<(&'a [u8], Element<'a>), BsonError> {
        let [kind] = *self.array()?;
        let name = self.until_zero()?;
        let element = match kind {
            0x01 => Element::Double(f64::from_le_bytes(*self.array()?)),
            0x02 => Element::Text(self.text()?),
            0x03 => Element::Map(self.document()?),
            0x04 => Element::List(self.document()?),
            0x05 => {
                let length = self.length()?;
                let [_subtype] = *self.array()?;
                Element::Binary(self.bytes(length)?)
            }
            0x08 => {
                let [byte] = *self.array()?;
                Element::Bool(byte != 0)
            }
            0x09 => Element::Time(i64::from_le_bytes(*self.array()?)),
            0x10 => Element::Int(i32::from_le_bytes(*self.array()?)),
            0x11 => {
                let increment = u32::from_le_bytes(*self.array()?);
                Element::Timestamp { seconds: u32::from_le_bytes(*self.array()?), increment }
            }
            0x12 => Element::Long(i64::from_le_bytes(*self.array()?)),
            0x07 => Element::Id(self.array()?),
            0x13 => Element::Decimal(self.array()?),
            _ => {
                self.skip(kind)?;
                Element::Other
            }
        };
        Ok((name, element))
    }

    /// Passes over a value that is not kept.
    fn skip(&mut self, kind: u8) -> Result<(), BsonError> {
        match kind {
            // Undefined, null, and the ends of the order.
            0x06 | 0x0a | 0x7f | 0xff => {}
            0x0b => {
                self.until_zero()?;
                self.until_zero()?;
            }
            0x0c => {
                self.text()?;
                self.bytes(12)?;
            }
            0x0d | 0x0e => {
                self.text()?;
            }
            // Code with its scope: the length covers itself.
            0x0f => {
                let length = self.length()?.checked_sub(4).ok_or(BsonError::Length)?;
                self.bytes(length)?;
            }
            _ => return Err(BsonError::Kind(kind)),
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], BsonError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(BsonError::Length)?;
        self.rest = rest;
        Ok(first)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], BsonError> {
        let (first, rest) = self.rest.split_at_checked(length).ok_or(BsonError::Length)?;
        self.rest = rest;
        Ok(first)
    }

    fn length(&mut self) -> Result<usize, BsonError> {
        Ok(u32::from_le_bytes(*self.array()?) as usize)
    }

    fn until_zero(&mut self) -> Result<&'a [u8], BsonError> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(BsonError::Length)?;
        let name = self.bytes(end)?;
        self.bytes(1)?;
        Ok(name)
    }

    fn text(&mut self) -> Result<&'a [u8], BsonError> {
        let length = self.length()?;
        match self.bytes(length)? {
            [text @ .., 0] => Ok(text),
            _ => Err(BsonError::Length),
        }
    }

    fn document(&mut self) -> Result<Document<'a>, BsonError> {
        let (document, rest) = Document::split(self.rest)?;
        self.rest = rest;
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::Writer;

    #[test]
    fn bytes_by_hand_are_read_and_written() {
        // {"a": 1, "b": [true, "x"]}, laid out by the specification.
        let bytes = b"\x21\0\0\0\x10a\0\x01\0\0\0\x04b\0\x12\0\0\0\x080\0\x01\x021\0\x02\0\0\0x\0\0\0";
        let document = Document::read(bytes).unwrap();
        let list = Value::List(vec![Value::Bool(true), Value::Text("x".to_owned())]);
        let whole = Value::Map(vec![("a".to_owned(), Value::Number(1.0)), ("b".to_owned(), list)]);
        assert_eq!(document.value().unwrap(), whole);
        assert_eq!(document.get("a"), Some(Element::Int(1)));
        let list = Writer::list(|list| list.bool("0", true).text("1", "x"));
        assert_eq!(Writer::new().int("a", 1).list_of("b", list).finish(), bytes);
    }

    #[test]
    fn every_kind_is_passed_over() {
        let mut body = Vec::new();
        for (kind, bytes) in [
            (0x06, &b""[..]),
            (0x07, &[7; 12]),
            (0x0a, b""),
            (0x0b, b"^a\0i\0"),
            (0x0c, b"\x02\0\0\0x\0abcdefghijkl"),
            (0x0d, b"\x02\0\0\0x\0"),
            (0x0e, b"\x02\0\0\0x\0"),
            (0x0f, b"\x0f\0\0\0\x02\0\0\0x\0\x05\0\0\0\0"),
            (0x7f, b""),
            (0xff, b""),
            (0x13, &[0; 16]),
            (0x11, b"\x02\0\0\0\x05\0\0\0"),
            (0x09, b"\x10\0\0\0\0\0\0\0"),
        ] {
            body.extend([kind, b'k', 0]);
            body.extend(bytes);
        }
        let whole = [&(body.len() as u32 + 5).to_le_bytes()[..], &body, &[0]].concat();
        let found: Vec<Element> = Document::read(&whole).unwrap().elements().map(|it| it.unwrap().1).collect();
        let last = [Element::Decimal(&[0; 16]), Element::Timestamp { seconds: 5, increment: 2 }, Element::Time(16)];
        assert_eq!((found.len(), &found[10..]), (13, &last[..]));
        assert_eq!(found[1], Element::Id(&[7; 12]));
        let others = found[..10].iter().filter(|element| **element == Element::Other);
        assert_eq!(others.count(), 9);
    }

    #[test]
    fn lengths_that_lie_are_errors() {
        let good = Writer::new().text("name", "value").document("in", Writer::new().long("n", 7)).finish();
        for cut in 0..good.len() {
            assert_eq!(Document::read(&good[..cut]), Err(BsonError::Length));
        }
        for at in 0..good.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = byte;
                // It is an error or another document; it neither panics nor takes memory.
                let _ = Document::read(&bad).map(Document::value);
            }
        }
        assert_eq!(Document::read(b"\xff\xff\xff\x7f\0"), Err(BsonError::Length));
        assert_eq!(Document::read(b"\x08\0\0\0\x20k\0\0").unwrap().value(), Err(BsonError::Kind(0x20)));
    }

    #[test]
    fn the_readable_part_of_a_cut_document() {
        let item = |n| Writer::new().int("a", n);
        let list = Writer::list(|list| list.document("0", item(1)).document("1", item(2)));
        let whole = Writer::new().text("insert", "t").list_of("documents", list).text("$db", "shop").finish();
        let find = |cut: usize| Document::beginning(&whole[..cut]).unwrap().readable(&[]);
        assert_eq!(find(whole.len()), Document::read(&whole).unwrap().value().unwrap());
        let cut = find(whole.len() - 16);
        assert_eq!(cut.get("insert").and_then(Value::text), Some("t"));
        assert_eq!((cut.get("documents").unwrap().items().len(), cut.get("$db")), (2, None));
        for end in 4..whole.len() {
            let _ = find(end);
        }
        assert_eq!(Document::beginning(b"\x04\0\0\0"), Err(BsonError::Length));
        assert_eq!(Document::beginning(b"\x06\0\0\0\0\x01\0"), Err(BsonError::Length));
        let named = Document::read(&whole).unwrap().readable(&["documents", "insert"]);
        assert_eq!(named.entries().len(), 1, "{named:?}");
    }

    #[test]
    fn depth_is_bounded() {
        let mut deep = Writer::new();
        for _ in 0..DEPTH_MAX + 1 {
            deep = Writer::new().document("d", deep);
        }
        assert_eq!(Document::read(&deep.finish()).unwrap().value(), Err(BsonError::TooLarge));
    }
}
