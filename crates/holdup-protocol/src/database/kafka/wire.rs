//! The fields of requests and answers. Numbers are big-endian; lengths are fixed, or in flexible versions
//! varints that are one more than the length.

use crate::database::event::Error;

const CUT: Error = Error::Protocol("an answer that ends within a field");

/// Writes the fields of a request.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// What was written.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// One byte.
    pub fn i8(&mut self, value: i8) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Two bytes.
    pub fn i16(&mut self, value: i16) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Four bytes.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Eight bytes.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// A text, cut at what its length can say.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
        self.i16(length).raw(text.as_bytes().get(..usize::from(length.unsigned_abs())).unwrap_or_default())
    }

    /// Bytes with their length.
    pub fn blob(&mut self, bytes: &[u8]) -> &mut Self {
        self.count(bytes.len()).raw(bytes)
    }

    /// How many elements follow.
    pub fn count(&mut self, count: usize) -> &mut Self {
        self.i32(i32::try_from(count).unwrap_or(i32::MAX))
    }

    /// The same in a flexible version.
    pub fn compact_count(&mut self, count: usize) -> &mut Self {
        self.varint(u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// A text in a flexible version.
    pub fn compact_text(&mut self, text: &str) -> &mut Self {
        self.compact_count(text.len()).raw(text.as_bytes())
    }

    /// No list, or no text, in a flexible version.
    pub fn compact_none(&mut self) -> &mut Self {
        self.varint(0)
    }

    /// No tagged fields.
    pub fn tags(&mut self) -> &mut Self {
        self.varint(0)
    }

    fn varint(&mut self, mut value: u32) -> &mut Self {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.raw(&value.to_le_bytes()[..1])
    }
}

/// Reads the fields of an answer.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What was not read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// So many bytes.
    ///
    /// # Errors
    /// As for every field: if the answer ends before.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(CUT)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// One byte.
    pub fn i8(&mut self) -> Result<i8, Error> {
        self.chunk().map(i8::from_be_bytes)
    }

    /// Two bytes.
    pub fn i16(&mut self) -> Result<i16, Error> {
        self.chunk().map(i16::from_be_bytes)
    }

    /// Four bytes.
    pub fn i32(&mut self) -> Result<i32, Error> {
        self.chunk().map(i32::from_be_bytes)
    }

    /// Eight bytes.
    pub fn i64(&mut self) -> Result<i64, Error> {
        self.chunk().map(i64::from_be_bytes)
    }

    /// A text; empty without one.
    pub fn text(&mut self) -> Result<String, Error> {
        let length = self.i16()?;
        self.lossy(usize::try_from(length).unwrap_or(0))
    }

    /// Bytes with their length.
    pub fn blob(&mut self) -> Result<&'a [u8], Error> {
        let length = self.i32()?;
        self.raw(usize::try_from(length).unwrap_or(0))
    }

    /// A list; empty without one.
    pub fn list<T>(&mut self, read: impl FnMut(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let count = self.i32()?;
        self.repeated(usize::try_from(count).unwrap_or(0), read)
    }

    /// A text in a flexible version.
    pub fn compact_text(&mut self) -> Result<String, Error> {
        let length = self.varint()?.saturating_sub(1);
        self.lossy(length)
    }

    /// A list in a flexible version, whose elements end in tagged fields.
    pub fn compact_list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let count = self.varint()?.saturating_sub(1);
        self.repeated(count, |reader| {
            let element = read(reader)?;
            reader.skip_tags()?;
            Ok(element)
        })
    }

    /// Passes over tagged fields.
    pub fn skip_tags(&mut self) -> Result<(), Error> {
        for _ in 0..self.varint()? {
            self.varint()?;
            let length = self.varint()?;
            self.raw(length)?;
        }
        Ok(())
    }

    /// A broker may name any count: room is made for elements as they come, and none is empty.
    fn repeated<T>(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        if count > self.0.len() {
            return Err(CUT);
        }
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(read(self)?);
        }
        Ok(all)
    }

    fn lossy(&mut self, length: usize) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(self.raw(length)?).into_owned())
    }

    fn varint(&mut self) -> Result<usize, Error> {
        let mut value = 0_usize;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.chunk()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::Protocol("a number without end"))
    }
}
