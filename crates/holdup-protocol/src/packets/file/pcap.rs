//! The older format: a head with byte order, resolution and link, then records of packets.

use super::{Consumed, FileError, RECORD_BYTES_MAX};
use crate::packets::packet::{Link, Packet};

/// Byte order of numbers, and the unit of fractions of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    is_big: bool,
    tick_ns: i64,
}

pub(crate) const HEAD: usize = 24;
const RECORD_HEAD: usize = 16;

/// The meaning of the first four bytes.
pub(crate) fn order(magic: [u8; 4]) -> Option<Order> {
    let (is_big, tick_ns) = match magic {
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000),
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1),
        _ => return None,
    };
    Some(Order { is_big, tick_ns })
}

impl Order {
    fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    }
}

/// A file of this format.
#[derive(Debug)]
pub(crate) struct Pcap {
    order: Order,
    link: Link,
}

impl Pcap {
    /// Reads the head; none if it is incomplete.
    pub fn begin(order: Order, bytes: &[u8]) -> Result<Option<(Self, usize)>, FileError> {
        if bytes.len() < HEAD {
            return Ok(None);
        }
        // The upper bits describe checksums at the end of frames.
        let number = order.u32_at(bytes, 20).unwrap_or(u32::MAX) & 0xffff;
        let link = Link::from_number(number).ok_or(FileError::Link(number))?;
        Ok(Some((Self { order, link }, HEAD)))
    }

    /// Length of the record that starts `bytes`, as far as is known.
    pub fn record_length(&self, bytes: &[u8]) -> usize {
        RECORD_HEAD + self.order.u32_at(bytes, 8).map_or(0, |stored| (stored as usize).min(RECORD_BYTES_MAX))
    }

    /// Passes on the packet that starts `bytes`.
    pub fn record(&self, bytes: &[u8], offset: u64, take: &mut dyn FnMut(&Packet<'_>)) -> Result<Consumed, FileError> {
        let number = |at| self.order.u32_at(bytes, at);
        let (Some(seconds), Some(fraction), Some(stored), Some(length)) = (number(0), number(4), number(8), number(12))
        else {
            return Ok(Consumed::More);
        };
        let (stored, length) = (stored as usize, length as usize);
        if stored > RECORD_BYTES_MAX {
            return Err(FileError::Broken { offset, what: "a packet of more than 1 MiB" });
        }
        let Some(content) = bytes.get(RECORD_HEAD..RECORD_HEAD + stored) else { return Ok(Consumed::More) };
        let at = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.order.tick_ns;
        take(&Packet { at, link: self.link, bytes: content, length: length.max(stored) });
        Ok(Consumed::Bytes(RECORD_HEAD + stored))
    }
}
