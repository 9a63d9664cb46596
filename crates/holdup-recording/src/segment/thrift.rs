//! Reads Thrift's compact protocol as far as needed to know the sizes that a Parquet file claims.
//! It allocates nothing, and refuses missing bytes and deeper nesting than Parquet's own
//! structures.

/// Deepest nesting of structures; Parquet's have six levels.
const DEPTH_MAX: u32 = 16;

const BOOLS: [u8; 2] = [1, 2];
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LISTS: [u8; 2] = [9, 10];
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// A position in the bytes. Every read returns `None` at the end or if the bytes are not Thrift.
#[derive(Clone, Copy)]
pub struct Thrift<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Thrift<'b> {
    /// Starts before the first byte.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Number of bytes read.
    pub fn read(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn pass(&mut self, count: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        (end <= self.bytes.len()).then(|| self.at = end)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A signed whole number.
    pub fn integer(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Calls `each` with the number and type of every field of a structure, to read or
    /// [`Self::skip`] it.
    pub fn fields(&mut self, mut each: impl FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head & 0x0f == 0 {
                return Some(());
            }
            field = if head >> 4 == 0 { self.integer()? } else { field + i64::from(head >> 4) };
            each(self, field, head & 0x0f)?;
        }
    }

    /// The type and number of a list's elements, checked against the remaining bytes.
    pub fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
        (count <= (self.bytes.len() - self.at) as u64).then_some((head & 0x0f, count))
    }

    /// Skips a field of type `kind`.
    pub fn skip(&mut self, kind: u8) -> Option<()> {
        self.leave_out(kind, false, 0)
    }

    fn leave_out(&mut self, kind: u8, is_element: bool, depth: u32) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match kind {
            // A field's type holds its value; an element is a byte.
            _ if BOOLS.contains(&kind) => self.pass(u64::from(is_element)),
            3 => self.pass(1),
            4..=6 => self.number().map(drop),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.number()?;
                self.pass(length)
            }
            _ if LISTS.contains(&kind) => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.leave_out(kind, true, depth + 1))
            }
            MAP => {
                let count = self.number()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.leave_out(kinds >> 4, true, depth + 1)?;
                    self.leave_out(kinds & 0x0f, true, depth + 1)
                })
            }
            STRUCT => self.fields(|inner, _, kind| inner.leave_out(kind, false, depth + 1)),
            UUID => self.pass(16),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_left_out() {
        // 1: i32 150, 2: binary "ab", 3: list<i32> [1, 2], 20: true, 21: struct {}
        let bytes = [0x15, 0xac, 0x02, 0x18, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x01, 40, 0x1c, 0, 0];
        let mut seen = Vec::new();
        let mut thrift = Thrift::new(&bytes);
        let all = thrift.fields(|thrift, field, kind| {
            seen.push(field);
            if field == 1 { thrift.integer().filter(|n| *n == 150).map(drop) } else { thrift.skip(kind) }
        });
        assert_eq!((all, thrift.read(), seen), (Some(()), bytes.len(), vec![1, 2, 3, 20, 21]));
    }

    #[test]
    fn claims_are_held_against_what_is_there() {
        for bytes in [
            &[0x18, 0xff, 0xff, 0xff, 0xff, 0x7f][..], // a text of 34 GB
            &[0x19, 0xf5, 0xff, 0xff, 0xff, 0x0f, 1],  // a list of 33 million
            &[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], // a number without an end
            &[0x1c; 100_000],                          // structures in structures
            &[0x19; 100_000],                          // lists in lists
        ] {
            assert_eq!(Thrift::new(bytes).fields(|thrift, _, kind| thrift.skip(kind)), None);
        }
    }
}
