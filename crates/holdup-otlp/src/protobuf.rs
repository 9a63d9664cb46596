//! Protocol Buffers' wire format as a walk over borrowed bytes: a message is a sequence of fields,
//! and nothing is built unless requested. It knows no schema: callers interpret field numbers
//! (<https://protobuf.dev/programming-guides/encoding/>). Groups, which OTLP does not use, are
//! malformed here.

use std::borrow::Cow;

use crate::Malformed;

/// One field's value on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wire<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: text, bytes, a message, packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

impl<'a> Wire<'a> {
    /// The bytes of a [`Bytes`](Self::Bytes) value.
    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// The text. Invalid UTF-8 is replaced: one bad attribute must not cost the body.
    pub fn text(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes().unwrap_or_default())
    }

    /// The number, in whichever type it was sent; 0 for bytes.
    pub fn number(self) -> u64 {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => number,
            Self::Fixed32(number) => u64::from(number),
            Self::Bytes(_) => 0,
        }
    }

    /// The number as a double.
    pub fn double(self) -> f64 {
        match self {
            Self::Fixed64(bits) => f64::from_bits(bits),
            Self::Fixed32(bits) => f64::from(f32::from_bits(bits)),
            Self::Varint(_) | Self::Bytes(_) => 0.0,
        }
    }
}

/// Fields of a message, in the order they were sent.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next field's number and value; none at the end.
    ///
    /// # Errors
    /// If the bytes are not a message.
    pub fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed("a field is cut off"))?;
                self.0 = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Malformed("a field has an unknown wire type")),
        };
        match tag >> 3 {
            0 => Err(Malformed("a field has no number")),
            number => Ok(Some((number, value))),
        }
    }

    /// Calls `each` with every field.
    ///
    /// # Errors
    /// If the bytes are not a message, or the error of `each`.
    pub fn each(mut self, mut each: impl FnMut(u64, Wire<'a>) -> Result<(), Malformed>) -> Result<(), Malformed> {
        while let Some((number, value)) = self.next()? {
            each(number, value)?;
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed("a number is cut off"))?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (index, &byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * index as u32);
            if byte < 0x80 {
                self.0 = &self.0[index + 1..];
                return Ok(value);
            }
        }
        Err(Malformed("a number is cut off"))
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u64, Wire<'_>)>, Malformed> {
        let mut found = Vec::new();
        Fields(bytes).each(|number, value| {
            found.push((number, value));
            Ok(())
        })?;
        Ok(found)
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct AllKinds {
        #[prost(uint32, tag = "1")]
        small: u32,
        #[prost(uint64, tag = "2")]
        absent: u64,
        #[prost(fixed64, tag = "3")]
        fixed64: u64,
        #[prost(fixed32, tag = "4")]
        fixed32: u32,
        #[prost(uint64, tag = "5")]
        large: u64,
        #[prost(bytes = "vec", tag = "1000")]
        bytes: Vec<u8>,
    }

    #[test]
    fn all_kinds_are_read_as_prost_writes_them() {
        let message = AllKinds {
            small: 300,
            absent: 0,
            fixed64: 1 << 63 | 1,
            fixed32: 7,
            large: u64::MAX,
            bytes: b"ab".to_vec(),
        };
        let bytes = message.encode_to_vec();
        let expected = [
            (1, Wire::Varint(300)),
            (3, Wire::Fixed64(1 << 63 | 1)),
            (4, Wire::Fixed32(7)),
            (5, Wire::Varint(u64::MAX)),
            (1_000, Wire::Bytes(b"ab")),
        ];
        assert_eq!(fields(&bytes), Ok(expected.to_vec()));
    }

    #[test]
    fn cut_or_invalid_messages_are_refused() {
        for bad in [
            &b"\x08"[..],
            b"\x08\x80",
            b"\x0a\x02a",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x09\0\0",
            b"\x0d\0",
            b"\x0b",
            b"\x00\x01",
            &[0xff; 20],
        ] {
            assert!(fields(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Wire::Bytes(b"a\xffb").text(), "a\u{fffd}b");
    }
}
