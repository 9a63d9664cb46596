//! A stretch of a log that can be read by itself: whole records, and what those before told it. Files are cut into blocks
//! of one size, whoever reads them, so that the outcome is the same however many do.

use std::io::Read;

use crate::event::Position;
use crate::problem::{Problem, Problems};

/// Bytes of a block, about: as much as a core's own cache holds.
pub const SIZE: usize = 1 << 20;
/// Bytes of the longest record that is kept whole.
pub const LONGEST: usize = 16 << 20;

/// What records need not repeat.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Time of the record before.
    pub at_us: Option<i64>,
    /// Database that was last used.
    pub database: Vec<u8>,
}

/// A stretch of a log.
#[derive(Debug, Default)]
pub struct Block {
    /// Its bytes.
    pub data: Vec<u8>,
    /// Number of its file.
    pub file: u32,
    /// Bytes of the file before it.
    pub offset: u64,
    /// Whether its last record goes on, too long to be kept.
    pub cut: bool,
    /// What was before it.
    pub context: Context,
}

impl Block {
    /// Where in the file a byte of it stands.
    pub fn position(&self, at: usize) -> Position {
        Position { file: self.file, offset: self.offset + at as u64 }
    }
}

/// What a format has to say about where to cut.
pub trait Cut {
    /// Where the last record begins, if it is not the first.
    fn last(&self, data: &[u8]) -> Option<usize>;
    /// Where a record begins for certain behind the first byte.
    fn first(&self, data: &[u8]) -> Option<usize>;
    /// What this stretch tells the one behind it.
    fn context(&self, data: &[u8], before: &Context) -> Context;
}

/// Cuts a stream into blocks and hands each over, with an empty one to be filled given back.
///
/// # Errors
/// What reading brings; what was read before it has been handed over.
pub fn each(
    reader: &mut dyn Read,
    file: u32,
    begin: Vec<u8>,
    cut: &dyn Cut,
    problems: &mut Problems,
    mut take: impl FnMut(Block) -> Block,
) -> std::io::Result<()> {
    let mut block = Block { data: begin, file, ..Block::default() };
    let mut spare = Block::default();
    let mut target = SIZE;
    loop {
        let read = fill(reader, &mut block.data, target);
        let is_end = block.data.len() < target;
        if is_end || read.is_err() {
            let position = block.position(block.data.len());
            if !block.data.is_empty() {
                take(block);
            }
            if let Err(error) = &read
                && error.kind() != std::io::ErrorKind::Interrupted
            {
                problems.add(Problem::CutOff, position);
            }
            return read.map(|_| ());
        }
        let Some(at) = cut.last(&block.data) else {
            if target < LONGEST {
                target = (target * 2).min(LONGEST);
                continue;
            }
            // Its head is read, the rest is passed over.
            block.cut = true;
            let context = cut.context(&block.data, &block.context);
            let offset = block.offset + block.data.len() as u64;
            let tail = block.data.get(block.data.len().saturating_sub(OVERLAP)..).unwrap_or_default().to_vec();
            spare = take(block);
            let (data, offset) = skip(reader, tail, offset, cut)?;
            block = Block { data, file, offset, cut: false, context };
            target = SIZE;
            continue;
        };
        let context = cut.context(block.data.get(..at).unwrap_or_default(), &block.context);
        spare.data.clear();
        spare.data.extend_from_slice(block.data.get(at..).unwrap_or_default());
        let next = Block {
            data: std::mem::take(&mut spare.data),
            file,
            offset: block.offset + at as u64,
            cut: false,
            context,
        };
        block.data.truncate(at);
        spare = take(std::mem::replace(&mut block, next));
        target = SIZE.max(block.data.len() * 2).min(LONGEST);
    }
}

/// Bytes that are looked at again where a record may begin.
const OVERLAP: usize = 256;

fn fill(reader: &mut dyn Read, data: &mut Vec<u8>, target: usize) -> std::io::Result<usize> {
    let missing = target.saturating_sub(data.len());
    data.reserve(missing);
    reader.take(missing as u64).read_to_end(data)
}

/// Passes over what lies before the next record; returns what was read of it, and its place.
fn skip(reader: &mut dyn Read, mut data: Vec<u8>, mut offset: u64, cut: &dyn Cut) -> std::io::Result<(Vec<u8>, u64)> {
    offset -= data.len() as u64;
    loop {
        let length = data.len();
        fill(reader, &mut data, length + SIZE)?;
        if let Some(at) = cut.first(&data) {
            data.drain(..at);
            return Ok((data, offset + at as u64));
        }
        if data.len() < length + SIZE {
            return Ok((Vec::new(), offset + data.len() as u64));
        }
        let passed = data.len() - OVERLAP;
        data.drain(..passed);
        offset += passed as u64;
    }
}
