//! Reads a message from its start: numbers and texts of both protocols. A message that ends early
//! is an error.

use crate::database::event::Error;

/// The rest of a message.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Error::Protocol("a message ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Error::Protocol("a message ends too early"))?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16_le(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32_le(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u16_be(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i32_be(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_be_bytes)
    }

    /// Bytes up to a NUL, which is consumed, too.
    pub(crate) fn until_nul(&mut self) -> Result<&'a [u8], Error> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(Error::Protocol("a text does not end"))?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    /// MySQL's length-encoded integer of one to nine bytes.
    pub(crate) fn packed(&mut self) -> Result<u64, Error> {
        Ok(match self.u8()? {
            small @ ..=0xfa => u64::from(small),
            0xfc => u64::from(self.u16_le()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => self.array().map(u64::from_le_bytes)?,
            _ => return Err(Error::Protocol("a number begins with 0xfb or 0xff")),
        })
    }

    /// MySQL's bytes, preceded by their number.
    pub(crate) fn packed_bytes(&mut self) -> Result<&'a [u8], Error> {
        let count = self.packed()?;
        self.bytes(usize::try_from(count).unwrap_or(usize::MAX))
    }
}
