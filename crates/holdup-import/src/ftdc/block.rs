//! The documents of a file, one after the other. A length is held against a limit, and memory grows
//! with the bytes that are there. Behind a length that makes no sense nothing can be found again:
//! the file ends there.

use std::io::{self, Read};

/// Largest document: a server limits those of its own to 16 MiB.
const BLOCK_BYTES_MAX: usize = (16 << 20) + (64 << 10);

/// Smallest: a length and the zero at the end.
const BLOCK_BYTES_MIN: usize = 5;

/// A piece of a file.
pub(super) enum Block {
    /// A document with its length.
    Whole(Vec<u8>),
    /// The rest, and why it cannot be read.
    Broken(&'static str),
}

/// The documents of a file.
pub(super) struct Blocks<R> {
    file: R,
    /// Where the last one begins.
    pub(super) begun: u64,
    read: u64,
    is_over: bool,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(file: R) -> Self {
        Self { file, begun: 0, read: 0, is_over: false }
    }

    /// The next document; none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Block>> {
        if self.is_over {
            return Ok(None);
        }
        self.begun = self.read;
        let mut bytes = Vec::new();
        self.fill(&mut bytes, 4)?;
        let length = match bytes.first_chunk() {
            _ if bytes.is_empty() => return Ok(None),
            Some(length) => u32::from_le_bytes(*length) as usize,
            None => return Ok(Some(self.broken("the file ends in the middle of a document"))),
        };
        // A server makes room for the newest file before it writes.
        if length == 0 {
            self.is_over = true;
            return Ok(None);
        }
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&length) {
            return Ok(Some(self.broken("a document of an impossible length; the rest of the file is left out")));
        }
        self.fill(&mut bytes, length)?;
        if bytes.len() < length {
            return Ok(Some(self.broken("the file ends in the middle of a document")));
        }
        Ok(Some(Block::Whole(bytes)))
    }

    fn broken(&mut self, why: &'static str) -> Block {
        self.is_over = true;
        Block::Broken(why)
    }

    /// Reads until there are `count` bytes, or no more.
    fn fill(&mut self, bytes: &mut Vec<u8>, count: usize) -> io::Result<()> {
        let missing = count.saturating_sub(bytes.len());
        self.read += self.file.by_ref().take(missing as u64).read_to_end(bytes)? as u64;
        Ok(())
    }
}
