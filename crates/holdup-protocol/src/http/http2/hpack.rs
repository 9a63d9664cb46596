//! Packs and unpacks heads (RFC 7541), with a dynamic table of size 0: the meaning of a block does
//! not depend on earlier ones. Both sides have to respect that. This side never refers to the
//! server's table. The first frame of the session, before any request, sets this side's table size
//! to 0, and the server processes frames in order. So it packs every response head after that
//! setting, and may not use a larger table. A field that it marks for indexing is read but not
//! stored; a reference to a stored one, or a larger table size, is a compression error.

mod fields;
mod huffman;

use super::{Error, MAX_HEAD_BYTES};

/// What a field counts beside its name and value (RFC 9113, section 10.5.1).
const FIELD_OVERHEAD_BYTES: usize = 32;

/// A size update to 0: it has to come first, to announce this side's table.
pub(super) const NO_TABLE: u8 = 0x20;

/// Appends an integer whose first byte has `prefix` free bits and `pattern` above them (section 5.1).
pub(super) fn put_integer(out: &mut Vec<u8>, pattern: u8, prefix: u8, value: usize) {
    let full = (1_usize << prefix) - 1;
    if value < full {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | full as u8);
    let mut rest = value - full;
    while rest >= 128 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string without the Huffman code: that is the cheapest for the server to unpack.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, 0, 7, text.len());
    out.extend_from_slice(text);
}

/// Unpacks a block and calls `field` with each name and value. `scratch` is for strings that have
/// to be decoded; the caller keeps it so that it is allocated once.
///
/// # Errors
/// [`Error::Compression`] if the block is invalid or refers to a dynamic table;
/// [`Error::HeadTooLarge`] if its fields take more than [`MAX_HEAD_BYTES`], counted as in RFC 9113.
pub fn unpack(block: &[u8], scratch: &mut Vec<u8>, mut field: impl FnMut(&[u8], &[u8])) -> Result<(), Error> {
    let mut rest = Rest(block);
    let mut total = 0;
    let mut begun = false;
    while let Some(&first) = rest.0.first() {
        scratch.clear();
        let (name, value) = match first {
            0x80.. => {
                let index = rest.integer(7)?;
                fields::field(index).ok_or(Error::Compression)?
            }
            // The size of the table may change only before the first field.
            0x20..0x40 => {
                if begun || rest.integer(5)? != 0 {
                    return Err(Error::Compression);
                }
                continue;
            }
            _ => {
                // To be indexed, not indexed, never indexed: none is stored.
                let index = rest.integer(if first >= 0x40 { 6 } else { 4 })?;
                let name = if index == 0 { rest.string(scratch)? } else { Text::Plain(named(index)?) };
                let value = rest.string(scratch)?;
                (name.bytes(scratch), value.bytes(scratch))
            }
        };
        begun = true;
        total += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
        if total > MAX_HEAD_BYTES {
            return Err(Error::HeadTooLarge);
        }
        field(name, value);
    }
    Ok(())
}

fn named(index: usize) -> Result<&'static [u8], Error> {
    fields::field(index).map(|(name, _)| name).ok_or(Error::Compression)
}

/// A string: its place in the block, or in the scratch buffer.
enum Text<'a> {
    Plain(&'a [u8]),
    Decoded { from: usize, to: usize },
}

impl<'a> Text<'a> {
    fn bytes(self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Plain(text) => text,
            Self::Decoded { from, to } => &scratch[from..to],
        }
    }
}

/// The unread rest of a block.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Result<u8, Error> {
        let (&byte, rest) = self.0.split_first().ok_or(Error::Compression)?;
        self.0 = rest;
        Ok(byte)
    }

    /// An integer in the low `prefix` bits of the next byte, and in more bytes if it does not fit.
    #[inline]
    fn integer(&mut self, prefix: u8) -> Result<usize, Error> {
        let full = (1_usize << prefix) - 1;
        let value = self.byte()? as usize & full;
        if value < full { Ok(value) } else { self.long_integer(full) }
    }

    /// Four more bytes can hold any allowed length; longer ones are refused (section 5.1 requires
    /// that).
    fn long_integer(&mut self, mut value: usize) -> Result<usize, Error> {
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            value += (byte as usize & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::Compression)
    }

    fn string(&mut self, scratch: &mut Vec<u8>) -> Result<Text<'a>, Error> {
        let coded = self.0.first().is_some_and(|first| first & 0x80 != 0);
        let length = self.integer(7)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Error::Compression)?;
        self.0 = rest;
        if !coded {
            return Ok(Text::Plain(text));
        }
        let from = scratch.len();
        huffman::decode(text, scratch).ok_or(Error::Compression)?;
        Ok(Text::Decoded { from, to: scratch.len() })
    }
}

#[cfg(test)]
mod tests;
