//! Reads the values of an encoded histogram without building one. A second has some hundred values,
//! but a histogram has some ten thousand counts that would all be allocated, cleared and walked.
//!
//! The encoding is HdrHistogram's V2, compressed: two headers, each with a cookie and a length, and
//! counts as ZigZag LEB128-64b9B variable-length integers, where a negative one stands for that
//! many zeros. Other encodings and damaged ones yield `None` here, and HdrHistogram's own reader
//! decides on them.

use flate2::{Decompress, FlushDecompress, Status};

/// The first bytes of the compressed header and of the header inside it.
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;

/// Most bytes of a histogram's counts, decompressed; larger ones are left to HdrHistogram's own
/// reader.
const ROOM: usize = 1 << 16;

/// Bytes of the inner header: cookie, length, offset, digits, least value, greatest value, ratio.
const HEAD: usize = 40;

/// The values that occurred.
pub(super) struct Sparse {
    /// Least value that differs from 0, greatest value, and digits.
    pub bounds: (u64, u64, u8),
    /// For each value that occurred: the least and the greatest equivalent value, and the count.
    pub counts: Vec<(u64, u64, u64)>,
}

/// Reads histograms one after another.
pub(super) struct Reader {
    inflate: Decompress,
    plain: Vec<u8>,
}

impl Reader {
    pub fn new() -> Self {
        Self { inflate: Decompress::new(true), plain: Vec::with_capacity(ROOM) }
    }

    /// The values of `encoded`; none if only HdrHistogram's own reader can tell.
    pub fn read(&mut self, encoded: &[u8]) -> Option<Sparse> {
        if number(encoded, 0)? != COMPRESSED {
            return None;
        }
        self.inflate.reset(true);
        self.plain.clear();
        let compressed = encoded.get(8..)?.get(..number(encoded, 4)? as usize)?;
        let status = self.inflate.decompress_vec(compressed, &mut self.plain, FlushDecompress::Finish).ok()?;
        let plain = self.plain.as_slice();
        let is_plain = status == Status::StreamEnd && number(plain, 0)? == PLAIN && number(plain, 8)? == 0;
        if !is_plain || f64::from_be_bytes(plain.get(32..HEAD)?.try_into().ok()?) != 1.0 {
            return None;
        }
        let payload = plain.get(HEAD..)?.get(..number(plain, 4)? as usize)?;
        let long = |at: usize| Some(u64::from_be_bytes(plain.get(at..at + 8)?.try_into().ok()?));
        let bounds = (long(16)?, long(24)?, u8::try_from(number(plain, 12)?).ok()?);
        Some(Sparse { bounds, counts: counts(payload, bounds.0, bounds.2)? })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn counts(mut payload: &[u8], least: u64, digits: u8) -> Option<Vec<(u64, u64, u64)>> {
    if digits > 5 || least == 0 {
        return None;
    }
    // As in HdrHistogram: each bucket has as many values as the digits need, and is twice as wide
    // as the previous one.
    let unit = least.ilog2();
    let half = (2 * 10_u64.pow(u32::from(digits))).next_power_of_two().ilog2().max(1) - 1;
    let mut counts = Vec::new();
    let mut index: u64 = 0;
    while !payload.is_empty() {
        let told = signed(&mut payload)?;
        if told < 0 {
            index = index.checked_add(told.unsigned_abs())?;
            continue;
        }
        if told > 0 {
            let bucket = (index >> half).saturating_sub(1);
            let within = if index >> half == 0 { index } else { (index & ((1 << half) - 1)) + (1 << half) };
            let shift = u32::try_from(bucket).ok()?.checked_add(unit).filter(|shift| *shift + half < 62)?;
            counts.push((within << shift, (within << shift) + ((1 << shift) - 1), told.unsigned_abs()));
        }
        index = index.checked_add(1)?;
    }
    Some(counts)
}

/// The next integer: seven bits per byte, least significant first, all eight bits of a ninth byte;
/// the lowest bit is the sign.
fn signed(payload: &mut &[u8]) -> Option<i64> {
    let mut value: u64 = 0;
    for place in 0..9 {
        let (byte, rest) = payload.split_first()?;
        *payload = rest;
        if place == 8 {
            value |= u64::from(*byte) << 56;
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    use super::*;

    #[test]
    fn the_values_are_those_of_the_histogram() {
        let mut random = 7_u64;
        for (least, digits) in [(1_000, 3), (1, 3), (64, 2), (1_000_000, 1), (1, 5)] {
            let mut histogram = Histogram::<u64>::new_with_bounds(least, least * 64, digits).unwrap();
            histogram.auto(true);
            for _ in 0..500 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                histogram.record_n(random >> (24 + random % 40), 1 + random % 300).unwrap();
            }
            let mut encoded = Vec::new();
            V2DeflateSerializer::new().serialize(&histogram, &mut encoded).unwrap();
            let sparse = Reader::new().read(&encoded).unwrap();
            let expected: Vec<(u64, u64)> =
                histogram.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
            assert_eq!(sparse.counts.iter().map(|c| (c.1, c.2)).collect::<Vec<_>>(), expected);
            assert!(sparse.counts.iter().all(|c| histogram.lowest_equivalent(c.1) == c.0));
            assert_eq!(sparse.bounds, (histogram.low(), histogram.high(), digits));
            for cut in 0..encoded.len() {
                assert!(Reader::new().read(&encoded[..cut]).is_none(), "{cut} of {} bytes", encoded.len());
            }
        }
    }
}
