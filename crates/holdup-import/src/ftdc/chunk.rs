//! A chunk: a whole sample, and for each of its figures the differences of the samples after it.
//! They are one stream, figure after figure, of numbers in 7 bits a byte; a zero is followed by how
//! many more zeros there are, which may go on into the next figure. All of it is compressed by
//! zlib.
//!
//! Lengths and counts are bounded before memory is taken for them.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use holdup_mongodb::{BsonError, Document, Element};
use thiserror::Error;

/// Most bytes of a chunk, uncompressed.
const CHUNK_BYTES_MAX: usize = 32 << 20;

/// Most figures of a sample, and most elements of any kind: each is kept twice with its name. A
/// busy server has some 4,000.
const FIGURES_MAX: usize = 100_000;

/// Most values of a chunk: figures times samples, 24 MB. A server makes 300 samples of some 4,000.
const VALUES_MAX: usize = 3_000_000;

/// Most samples of a chunk, however few figures they have.
const SAMPLES_MAX: usize = 100_000;

/// Deepest nesting of a sample.
const DEPTH_MAX: usize = 60;

/// Why a chunk cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum ChunkError {
    #[error("a chunk that is too short")]
    Short,
    #[error("a chunk that says it has {0} bytes, which is more than any server writes")]
    Large(usize),
    #[error("a chunk that cannot be decompressed")]
    Zlib,
    #[error("a chunk whose length is not the one that it says")]
    Length,
    #[error("a chunk whose first sample is broken: {0}")]
    Sample(#[from] BsonError),
    #[error("a chunk that says it has {said} figures, and its first sample has {found}")]
    Figures { said: usize, found: usize },
    #[error("a chunk of {figures} figures and {samples} samples, which is more than any server writes")]
    Values { figures: usize, samples: usize },
    #[error("a chunk whose differences end too early")]
    Differences,
}

/// A chunk's values.
#[derive(Debug)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    samples: usize,
    /// By figure, then by sample.
    values: Vec<i64>,
}

impl Chunk {
    pub(super) fn read(data: &[u8]) -> Result<Self, ChunkError> {
        let (length, compressed) = data.split_first_chunk::<4>().ok_or(ChunkError::Short)?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > CHUNK_BYTES_MAX {
            return Err(ChunkError::Large(length));
        }
        let mut bytes = Vec::new();
        let limit = length as u64 + 1;
        ZlibDecoder::new(compressed).take(limit).read_to_end(&mut bytes).map_err(|_| ChunkError::Zlib)?;
        if bytes.len() != length {
            return Err(ChunkError::Length);
        }
        let (document, rest) = Document::split(&bytes)?;
        let mut firsts = Vec::new();
        let mut elements_left = FIGURES_MAX;
        numbers(document, 0, &mut elements_left, &mut firsts)?;
        let (counts, mut rest) = rest.split_first_chunk::<8>().ok_or(ChunkError::Short)?;
        let [a, b, c, d, e, f, g, h] = *counts;
        let (said, after) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize);
        if said != firsts.len() {
            return Err(ChunkError::Figures { said, found: firsts.len() });
        }
        let samples = after.saturating_add(1);
        if samples > SAMPLES_MAX || said.checked_mul(samples).is_none_or(|count| count > VALUES_MAX) {
            return Err(ChunkError::Values { figures: said, samples });
        }
        let values = values(&firsts, after, &mut rest)?;
        Ok(Self { bytes, samples, values })
    }

    /// The first sample.
    pub(super) fn reference(&self) -> Result<Document<'_>, BsonError> {
        Document::split(&self.bytes).map(|(document, _)| document)
    }

    /// Number of samples, the first included.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// A figure in a sample.
    pub(super) fn value(&self, figure: usize, sample: usize) -> i64 {
        self.values.get(figure * self.samples + sample).copied().unwrap_or(0)
    }
}

/// All values: the first ones, and the sums of the differences.
fn values(firsts: &[i64], after: usize, rest: &mut &[u8]) -> Result<Vec<i64>, ChunkError> {
    let mut values = Vec::with_capacity(firsts.len() * (after + 1));
    let mut zeros = 0_u64;
    for first in firsts {
        let mut value = *first;
        values.push(value);
        for _ in 0..after {
            if zeros > 0 {
                zeros -= 1;
            } else {
                let difference = number(rest)?;
                if difference == 0 {
                    zeros = number(rest)?;
                }
                value = value.wrapping_add(difference as i64);
            }
            values.push(value);
        }
    }
    Ok(values)
}

/// A number in 7 bits a byte, the lowest first.
fn number(rest: &mut &[u8]) -> Result<u64, ChunkError> {
    let mut number = 0_u64;
    for shift in (0..70).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(ChunkError::Differences)?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ChunkError::Differences)
}

/// The numbers of a sample in its order. A timestamp is two of them.
fn numbers(
    document: Document<'_>,
    depth: usize,
    elements_left: &mut usize,
    into: &mut Vec<i64>,
) -> Result<(), BsonError> {
    for element in document.elements() {
        *elements_left = elements_left.checked_sub(1).ok_or(BsonError::TooLarge)?;
        match element?.1 {
            Element::Map(inner) | Element::List(inner) => {
                if depth >= DEPTH_MAX {
                    return Err(BsonError::TooLarge);
                }
                numbers(inner, depth + 1, elements_left, into)?;
            }
            other => into.extend(leaf(other)),
        }
    }
    Ok(())
}

/// The numbers that a value counts as.
pub(super) fn leaf(element: Element<'_>) -> Vec<i64> {
    match element {
        // A sample keeps whole numbers only.
        Element::Double(number) => vec![number as i64],
        Element::Int(number) => vec![i64::from(number)],
        Element::Long(number) | Element::Time(number) => vec![number],
        Element::Bool(is_true) => vec![i64::from(is_true)],
        Element::Timestamp { seconds, increment } => vec![i64::from(seconds), i64::from(increment)],
        // Its first value is unknown, and its differences are right.
        Element::Decimal(_) => vec![0],
        Element::Text(_)
        | Element::Binary(_)
        | Element::Id(_)
        | Element::Other
        | Element::Map(_)
        | Element::List(_) => Vec::new(),
    }
}
