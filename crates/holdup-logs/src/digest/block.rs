//! A stretch of a log that can be read independently: whole records, and the context from earlier
//! ones. Files are cut into blocks of one size, so the result does not depend on the number of
//! threads.

use std::collections::BTreeMap;
use std::io::Read;

use crate::digest::event::Position;
use crate::digest::problem::{Problem, Problems};

/// Approximate bytes of a block: a core's own cache holds it together with the counts.
pub const SIZE: usize = 512 << 10;
/// Bytes of the longest record that is kept whole.
pub const LONGEST: usize = 16 << 20;

/// Context that records need not repeat.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Time of the previous record.
    pub at_us: Option<i64>,
    /// Database that was used last.
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
    /// Whether its last record continues, too long to be kept.
    pub cut: bool,
    /// Context from before it.
    pub context: Context,
}

impl Block {
    /// The place in the file of one of its bytes.
    pub fn position(&self, at: usize) -> Position {
        Position { file: self.file, offset: self.offset + at as u64 }
    }

    /// Its lines: where each begins, its text, and whether it continues, too long to be kept.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &[u8], bool)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.data.get(at..).filter(|rest| !rest.is_empty())?;
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let begin = at;
            at += length + 1;
            Some((begin, rest.get(..length)?, self.cut && begin + length >= self.data.len()))
        })
    }
}

/// A format's rules for cutting.
pub trait Cut {
    /// Start of the last record, if it is not the first.
    fn last(&self, data: &[u8]) -> Option<usize>;
    /// A certain start of a record behind the first byte.
    fn first(&self, data: &[u8]) -> Option<usize>;
    /// How much of the end of a growing log is whole records; the rest may be half of one.
    fn whole(&self, data: &[u8]) -> usize;
    /// The context that this stretch gives to the next one.
    fn context(&self, data: &[u8], before: &Context) -> Context;
}

/// Cuts a stream into blocks.
pub struct Blocks<'a> {
    reader: &'a mut (dyn Read + Send),
    cut: &'a (dyn Cut + Sync),
    file: u32,
    /// Start of the next block: the end of the bytes read so far, and its place.
    next: Block,
    target: usize,
    is_over: bool,
    holds_back: bool,
    /// Bytes handed over and skipped.
    pub bytes: u64,
    /// Problems on the way.
    pub problems: Problems,
    /// Line breaks that were skipped, by place.
    pub lines: Lines,
}

impl<'a> Blocks<'a> {
    /// The blocks of a stream of which `begin` has already been read, `offset` bytes behind the
    /// start of the file.
    pub fn new(reader: &'a mut (dyn Read + Send), file: u32, begin: Vec<u8>, cut: &'a (dyn Cut + Sync)) -> Self {
        let next = Block { data: begin, file, ..Block::default() };
        let (problems, lines) = (Problems::default(), Lines::default());
        Self { reader, cut, file, next, target: SIZE, is_over: false, holds_back: false, bytes: 0, problems, lines }
    }

    /// Leaves a possible half record at the end to the next run.
    pub fn held_back(mut self) -> Self {
        self.holds_back = true;
        self
    }

    /// Continues where another run stopped.
    pub fn resumed(mut self, offset: u64, context: Context) -> Self {
        (self.next.offset, self.next.context) = (offset, context);
        self
    }

    /// The next block; `spare` is reused, so that few are allocated.
    pub fn next(&mut self, mut spare: Block) -> Option<Block> {
        while !self.is_over {
            let read = fill(self.reader, &mut self.next.data, self.target);
            let is_end = self.next.data.len() < self.target;
            if is_end || read.is_err() {
                self.is_over = true;
                if let Err(error) = &read
                    && error.kind() != std::io::ErrorKind::Interrupted
                {
                    self.problems.add(Problem::CutOff, self.next.position(self.next.data.len()));
                }
                if self.holds_back && read.is_ok() {
                    let whole = self.cut.whole(&self.next.data);
                    self.next.data.truncate(whole);
                }
                return Some(self.give_all()).filter(|block| !block.data.is_empty());
            }
            let Some(at) = self.cut.last(&self.next.data) else {
                if self.target < LONGEST {
                    self.target = (self.target * 2).min(LONGEST);
                    continue;
                }
                return Some(self.give_cut());
            };
            spare.data.clear();
            spare.data.extend_from_slice(self.next.data.get(at..).unwrap_or_default());
            let before = self.next.data.get(..at).unwrap_or_default();
            let rest = Block {
                data: spare.data,
                file: self.file,
                offset: self.next.offset + at as u64,
                cut: false,
                context: self.cut.context(before, &self.next.context),
            };
            self.next.data.truncate(at);
            self.target = SIZE.max(rest.data.len() * 2).min(LONGEST);
            self.bytes += at as u64;
            return Some(std::mem::replace(&mut self.next, rest));
        }
        None
    }

    fn give_all(&mut self) -> Block {
        self.bytes += self.next.data.len() as u64;
        let context = self.cut.context(&self.next.data, &self.next.context);
        let offset = self.next.offset + self.next.data.len() as u64;
        std::mem::replace(&mut self.next, Block { file: self.file, offset, context, ..Block::default() })
    }

    /// Handles a record that is too long: keeps its head, and skips the rest.
    fn give_cut(&mut self) -> Block {
        let mut block = self.give_all();
        block.cut = true;
        let tail = block.data.get(block.data.len().saturating_sub(OVERLAP)..).unwrap_or_default().to_vec();
        if let Err(error) = self.skip(tail) {
            self.is_over = true;
            if error.kind() != std::io::ErrorKind::Interrupted {
                self.problems.add(Problem::CutOff, self.next.position(0));
            }
        }
        self.target = SIZE;
        block
    }

    /// Skips bytes before the next record.
    fn skip(&mut self, mut data: Vec<u8>) -> std::io::Result<()> {
        let begun = self.next.offset;
        let mut overlap = data.len();
        let mut lines = 0;
        loop {
            let length = data.len();
            fill(self.reader, &mut data, length + SIZE)?;
            let found = self.cut.first(&data);
            let is_end = data.len() < length + SIZE;
            let passed = found.unwrap_or(if is_end { data.len() } else { data.len() - OVERLAP });
            // Bytes that are read again were counted with the block before.
            lines += line_breaks(data.get(overlap.min(passed)..passed).unwrap_or_default());
            self.next.offset += passed.saturating_sub(overlap) as u64;
            overlap = overlap.saturating_sub(passed);
            data.drain(..passed);
            if found.is_some() || is_end {
                self.bytes += self.next.offset - begun;
                self.lines.add(self.file, begun, lines);
                self.next.data = data;
                return Ok(());
            }
        }
    }

    /// The context at the end, from which the next run continues.
    pub fn end(&self) -> (u64, &Context) {
        (self.next.offset, &self.next.context)
    }
}

/// Bytes that are read again where a record may begin.
const OVERLAP: usize = 256;

fn fill(reader: &mut dyn Read, data: &mut Vec<u8>, target: usize) -> std::io::Result<usize> {
    let missing = target.saturating_sub(data.len());
    data.reserve(missing);
    reader.take(missing as u64).read_to_end(data)
}

/// Number of lines that end in `data`.
pub fn line_breaks(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}

/// Counts the lines that end in each stretch of each file, and the line numbers of requested
/// places.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    stretches: Vec<(Position, u64)>,
    /// For a place: the start of its stretch, and the lines that end before it within the stretch.
    places: BTreeMap<Position, (Position, u64)>,
}

impl Lines {
    /// Adds the number of lines that end in the stretch at `offset`.
    pub fn add(&mut self, file: u32, offset: u64, lines: u64) {
        self.stretches.push((Position { file, offset }, lines));
    }

    /// Adds a block that was read, and those places of problems that are in it.
    pub fn read(&mut self, block: &Block, problems: &Problems) {
        let begin = block.position(0);
        self.stretches.push((begin, line_breaks(&block.data)));
        for place in problems.all().flat_map(|(_, _, places)| places) {
            let within = place.offset.checked_sub(block.offset).and_then(|within| usize::try_from(within).ok());
            let Some(before) = within.filter(|_| place.file == block.file).and_then(|at| block.data.get(..at)) else {
                continue;
            };
            self.places.entry(*place).or_insert_with(|| (begin, line_breaks(before)));
        }
    }

    /// Adds another thread's counts.
    pub fn merge(&mut self, other: Self) {
        self.stretches.extend(other.stretches);
        self.places.extend(other.places);
    }

    /// Lines of a file that end in the bytes read, and before them.
    pub fn in_file(&self, file: u32) -> u64 {
        self.stretches.iter().filter(|(begin, _)| begin.file == file).map(|(_, lines)| lines).sum()
    }

    /// Line number of a place, from 1. `None` if the place was not requested when its block was
    /// read.
    pub fn number(&self, place: Position) -> Option<u64> {
        let before = |end: Position| {
            let earlier = self.stretches.iter().filter(|(begin, _)| begin.file == end.file && *begin < end);
            earlier.map(|(_, lines)| lines).sum::<u64>()
        };
        if let Some((begin, within)) = self.places.get(&place) {
            return Some(before(*begin) + within + 1);
        }
        // The end of a file is not in a block.
        let is_end = self.stretches.iter().all(|(begin, _)| begin.file != place.file || *begin < place);
        (is_end && !self.stretches.is_empty()).then(|| before(place) + 1)
    }
}
