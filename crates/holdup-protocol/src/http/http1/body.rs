//! Finds the end of a response's body: by a byte count, chunks (RFC 9112, section 7.1), or the
//! connection's end. It does not look at the content; to keep it, ask beforehand which bytes are
//! content.

use super::{MAX_HEAD_BYTES, Malformed};

/// Most bytes of a chunk's size line, extensions included.
const MAX_CHUNK_LINE_BYTES: u32 = 16 * 1024;

/// Most digits of a chunk's size: below 2^60, so that no sum overflows.
const MAX_CHUNK_DIGITS: u8 = 15;

/// What remains of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// The head is not complete yet.
    Head,
    /// So many bytes.
    Sized(u64),
    /// A chunk's size line.
    ChunkSize(SizeLine),
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end after a chunk; whether its CR has come.
    ChunkEnd { cr: bool },
    /// Trailer lines: whether the present one has bytes, whether a CR has come, and the total
    /// bytes.
    Trailer { begun: bool, cr: bool, total: u32 },
    /// Everything until the server closes.
    UntilClose,
}

/// Progress in a chunk's size line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SizeLine {
    size: u64,
    digits: u8,
    /// An extension, or white space, has begun.
    past_digits: bool,
    cr: bool,
    bytes: u32,
}

/// The result of feeding bytes to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyProgress {
    /// All of them belonged to it, and more will come.
    All,
    /// This many completed it.
    Whole { used: usize },
}

impl Body {
    pub fn chunked() -> Self {
        Self::ChunkSize(SizeLine::default())
    }

    /// Its length in bytes, if known beforehand.
    #[inline]
    pub fn length(&self) -> Option<u64> {
        if let Self::Sized(length) = *self { Some(length) } else { None }
    }

    /// How many of the next `count` bytes are content; any after them are not.
    pub fn proper(&self, count: usize) -> usize {
        match *self {
            Self::Sized(left) | Self::Chunk(left) => left.min(count as u64) as usize,
            Self::UntilClose => count,
            _ => 0,
        }
    }

    /// Takes bytes, and adds the content bytes to `counted`.
    #[inline]
    pub fn take(&mut self, bytes: &[u8], counted: &mut u64) -> Result<BodyProgress, Malformed> {
        match self {
            Self::Sized(left) => {
                let used = (*left).min(bytes.len() as u64);
                *left -= used;
                *counted += used;
                Ok(if *left == 0 { BodyProgress::Whole { used: used as usize } } else { BodyProgress::All })
            }
            Self::UntilClose => {
                *counted += bytes.len() as u64;
                Ok(BodyProgress::All)
            }
            _ => self.take_chunks(bytes, counted),
        }
    }

    fn take_chunks(&mut self, bytes: &[u8], counted: &mut u64) -> Result<BodyProgress, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            if let Self::Chunk(left) = self {
                let used = (*left).min((bytes.len() - at) as u64);
                *left -= used;
                *counted += used;
                at += used as usize;
                if *left == 0 {
                    *self = Self::ChunkEnd { cr: false };
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match self {
                Self::ChunkSize(line) => {
                    if let Some(size) = line.take(byte)? {
                        let last = Self::Trailer { begun: false, cr: false, total: 0 };
                        *self = if size == 0 { last } else { Self::Chunk(size) };
                    }
                }
                Self::ChunkEnd { cr } => match byte {
                    b'\n' => *self = Self::chunked(),
                    b'\r' if !*cr => *cr = true,
                    _ => return Err(Malformed::BadFraming),
                },
                Self::Trailer { begun, cr, total } => {
                    *total += 1;
                    match byte {
                        b'\n' if !*begun => return Ok(BodyProgress::Whole { used: at }),
                        b'\n' => (*begun, *cr) = (false, false),
                        // A CR is valid only in a line end.
                        _ if *cr => return Err(Malformed::BadFraming),
                        b'\r' => *cr = true,
                        _ => *begun = true,
                    }
                    if *total as usize > MAX_HEAD_BYTES {
                        return Err(Malformed::HeadTooLarge);
                    }
                }
                _ => return Err(Malformed::BadFraming),
            }
        }
        Ok(BodyProgress::All)
    }
}

impl SizeLine {
    /// Takes a byte; returns the chunk's size when the line is complete.
    fn take(&mut self, byte: u8) -> Result<Option<u64>, Malformed> {
        self.bytes += 1;
        let digit = (byte as char).to_digit(16).filter(|_| !self.past_digits);
        match byte {
            b'\n' if self.digits > 0 => return Ok(Some(self.size)),
            // A CR is valid only in the line end, and a size needs a digit.
            _ if self.cr || byte == b'\n' => return Err(Malformed::BadFraming),
            _ => {}
        }
        match digit {
            Some(digit) if self.digits < MAX_CHUNK_DIGITS => {
                self.size = self.size * 16 + u64::from(digit);
                self.digits += 1;
            }
            Some(_) => return Err(Malformed::BadFraming),
            None if self.digits == 0 || self.bytes > MAX_CHUNK_LINE_BYTES => return Err(Malformed::BadFraming),
            None if byte == b'\r' => self.cr = true,
            None if self.past_digits || matches!(byte, b';' | b' ' | b'\t') => self.past_digits = true,
            None => return Err(Malformed::BadFraming),
        }
        Ok(None)
    }
}
