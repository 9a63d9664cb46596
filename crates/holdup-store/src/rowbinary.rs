//! ClickHouse's RowBinary: values one after the other, numbers little-endian, texts with their length
//! (LEB128) in front, and a byte in front of each value that may be absent.

use std::borrow::Cow;

use holdup_recording::{Cell, Column, ColumnType};

/// Appends a number as LEB128.
fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Appends a text or any bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends the value of `column`.
pub fn put(out: &mut Vec<u8>, column: &Column, cell: &Cell<'_>) {
    if column.optional {
        out.push(u8::from(matches!(cell, Cell::Absent)));
    }
    match cell {
        Cell::Absent => {}
        Cell::Int64(value) => out.extend(value.to_le_bytes()),
        Cell::Int32(value) => out.extend(value.to_le_bytes()),
        Cell::Double(value) => out.extend(value.to_bits().to_le_bytes()),
        Cell::Bool(value) => out.push(u8::from(*value)),
        Cell::Text(text) => put_bytes(out, text.as_bytes()),
    }
}

/// The value in place of one that was not asked for: nothing, or an empty one.
pub fn empty(column: &Column) -> Cell<'static> {
    match column.kind {
        _ if column.optional => Cell::Absent,
        ColumnType::Int64 | ColumnType::Timestamp => Cell::Int64(0),
        ColumnType::Int32 => Cell::Int32(0),
        ColumnType::Double => Cell::Double(0.0),
        ColumnType::Bool => Cell::Bool(false),
        ColumnType::Text | ColumnType::Json => Cell::Text(Cow::Borrowed("")),
    }
}

/// Reads values from the bytes of an answer. Each call returns none if the bytes end too early.
pub struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    /// Reads from `bytes`.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all was read.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    /// An unsigned 64-bit number.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A signed 64-bit number.
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// An unsigned 32-bit number.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A text's bytes.
    pub fn bytes(&mut self) -> Option<&'b [u8]> {
        let mut length = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let [byte] = self.array()?;
            length |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                return Some(bytes);
            }
        }
        None
    }

    /// The value of `column`.
    pub fn cell(&mut self, column: &Column) -> Option<Cell<'b>> {
        if column.optional && self.array::<1>()? != [0] {
            return Some(Cell::Absent);
        }
        Some(match column.kind {
            ColumnType::Int64 | ColumnType::Timestamp => Cell::Int64(self.i64()?),
            ColumnType::Int32 => Cell::Int32(i32::from_le_bytes(self.array()?)),
            ColumnType::Double => Cell::Double(f64::from_bits(u64::from_le_bytes(self.array()?))),
            ColumnType::Bool => Cell::Bool(self.array::<1>()? != [0]),
            ColumnType::Text | ColumnType::Json => Cell::Text(text(self.bytes()?)),
        })
    }
}

/// Texts in the store may come from others.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn column(kind: ColumnType, optional: bool) -> Column {
        Column { name: "x", kind, optional }
    }

    #[test]
    fn values_are_laid_out_as_clickhouse_reads_them() {
        let mut out = Vec::new();
        put(&mut out, &column(ColumnType::Int64, false), &Cell::Int64(-2));
        put(&mut out, &column(ColumnType::Int32, true), &Cell::Int32(404));
        put(&mut out, &column(ColumnType::Text, true), &Cell::Absent);
        put(&mut out, &column(ColumnType::Text, false), &Cell::Text("a\0\u{e4}".into()));
        put(&mut out, &column(ColumnType::Double, false), &Cell::Double(1.0));
        let expected: Vec<u8> = [
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
            &[0, 0x94, 1, 0, 0],
            &[1],
            &[4, b'a', 0, 0xc3, 0xa4],
            &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        ]
        .concat();
        assert_eq!(out, expected);
    }

    #[test]
    fn a_length_takes_seven_bits_a_byte() {
        for length in [0_usize, 127, 128, 300, 10_000_000] {
            let mut out = Vec::new();
            put_bytes(&mut out, &vec![b'x'; length]);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.bytes().map(<[u8]>::len), Some(length));
            assert!(reader.is_at_end());
        }
        let mut out = Vec::new();
        put_length(&mut out, 300);
        assert_eq!(out, [0xac, 2]);
    }

    #[test]
    fn cut_and_wild_answers_end_without_a_value() {
        let mut whole = Vec::new();
        let kinds = [(ColumnType::Text, true), (ColumnType::Timestamp, false), (ColumnType::Double, true)];
        let cells = [Cell::Text("abc".into()), Cell::Int64(5), Cell::Double(f64::NAN)];
        for ((kind, optional), cell) in kinds.iter().zip(&cells) {
            put(&mut whole, &column(*kind, *optional), cell);
        }
        for end in 0..whole.len() {
            let mut reader = Reader::new(&whole[..end]);
            let read: Vec<_> = kinds.iter().map_while(|(kind, o)| reader.cell(&column(*kind, *o))).collect();
            assert!(read.len() < 3, "{end}");
        }
        assert_eq!(Reader::new(&[0xff; 12]).bytes(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).bytes(), None);
    }
}
