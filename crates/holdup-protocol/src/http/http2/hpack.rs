//! Heads packed and unpacked (RFC 7541), with a dynamic table of size 0: what a block means depends on nothing
//! before it. Both sides are held to that. This one never refers to the server's table. The server is told so by
//! the first frame of the session, before any request, and it takes frames in order: a response's head is packed
//! after that setting was taken, and from then on a larger table isn't the server's to use. So a field that it
//! asks to have kept is read and not kept, and a reference to a kept one, or a larger size, is a compression error.

mod fields;
mod huffman;

use super::{Error, MAX_HEAD_BYTES};

/// What a field counts beside its name and value (RFC 9113, section 10.5.1).
const FIELD_OVERHEAD_BYTES: usize = 32;

/// A size update to 0: the first thing a peer is to know of this side's table.
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

/// Appends a string as it is, without the Huffman code: it costs the server nothing to unpack.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, 0, 7, text.len());
    out.extend_from_slice(text);
}

/// Unpacks a block and calls `field` with each name and value. `scratch` is for strings that have to be decoded;
/// it is kept by the caller so that it is allocated once.
///
/// # Errors
/// [`Error::Compression`] if the block isn't valid or refers to a dynamic table; [`Error::HeadTooLarge`] if its
/// fields take more than [`MAX_HEAD_BYTES`], counted as RFC 9113 counts them.
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
            // The size of the table may change before the first field only.
            0x20..0x40 => {
                if begun || rest.integer(5)? != 0 {
                    return Err(Error::Compression);
                }
                continue;
            }
            _ => {
                // To be kept, not to be kept, never to be kept: none is.
                let index = rest.integer(if first >= 0x40 { 6 } else { 4 })?;
                let name = if index == 0 { rest.string(scratch)? } else { Text::Plain(named(index)?) };
                let value = rest.string(scratch)?;
                (name.of(scratch), value.of(scratch))
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

/// A string: where it lies in the block, or its place in the scratch buffer.
enum Text<'a> {
    Plain(&'a [u8]),
    Decoded { from: usize, to: usize },
}

impl<'a> Text<'a> {
    fn of(self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Plain(text) => text,
            Self::Decoded { from, to } => &scratch[from..to],
        }
    }
}

/// What is not yet read of a block.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Result<u8, Error> {
        let (&byte, rest) = self.0.split_first().ok_or(Error::Compression)?;
        self.0 = rest;
        Ok(byte)
    }

    /// An integer in the low `prefix` bits of the next byte, and in more bytes if it doesn't fit.
    #[inline]
    fn integer(&mut self, prefix: u8) -> Result<usize, Error> {
        let full = (1_usize << prefix) - 1;
        let value = self.byte()? as usize & full;
        if value < full { Ok(value) } else { self.long_integer(full) }
    }

    /// Four more bytes carry any length that is allowed here; longer ones are refused (section 5.1 asks for it).
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
