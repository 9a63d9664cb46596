//! The newer format: blocks, which sections and interfaces describe. Packets without a time
//! ("simple" ones) are skipped.

use super::{Consumed, FileError, RECORD_BYTES_MAX};
use crate::packets::packet::{Link, Packet};

const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

/// Options: end of options, resolution of time, seconds to add, packets dropped by the interface
/// and by the system.
const END: u16 = 0;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
const DROPPED: [u16; 2] = [5, 7];

/// Most interfaces of a section.
const INTERFACES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Interface {
    /// None if its packets are not supported.
    link: Option<Link>,
    number: u32,
    /// Ticks per second.
    ticks: u64,
    offset_seconds: i64,
    dropped: u64,
}

/// A file of this format.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    is_big: bool,
    interfaces: Vec<Interface>,
    /// Bytes to skip.
    pub skip: usize,
}

impl Pcapng {
    fn u16_at(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let two = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) })
    }

    fn u32_at(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    }

    /// A number of 8 bytes, of which the upper half comes first in either byte order.
    fn split_u64_at(&self, bytes: &[u8], at: usize) -> Option<u64> {
        Some(u64::from(self.u32_at(bytes, at)?) << 32 | u64::from(self.u32_at(bytes, at + 4)?))
    }

    fn u64_of(&self, bytes: &[u8]) -> Option<u64> {
        let eight = *bytes.first_chunk()?;
        Some(if self.is_big { u64::from_be_bytes(eight) } else { u64::from_le_bytes(eight) })
    }

    /// Length of the block that starts `bytes`, as far as it is known and worth waiting for.
    pub fn block_length(&self, bytes: &[u8]) -> usize {
        self.u32_at(bytes, 4).map_or(12, |length| (length as usize).min(RECORD_BYTES_MAX + 64)).max(12)
    }

    /// Takes the block that starts `bytes`.
    pub fn block(
        &mut self,
        bytes: &[u8],
        offset: u64,
        dropped: &mut u64,
        take: &mut dyn FnMut(&Packet<'_>),
    ) -> Result<Consumed, FileError> {
        let broken = |what| Err(FileError::Broken { offset, what });
        if bytes.len() < 12 {
            return Ok(Consumed::More);
        }
        // The kind of a section's head is the same in both byte orders; the next field tells them
        // apart.
        if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            match bytes.get(8..12) {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => self.is_big = true,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => self.is_big = false,
                _ => return broken("a section without its byte order"),
            }
            self.interfaces.clear();
        }
        let (Some(kind), Some(length)) = (self.u32_at(bytes, 0), self.u32_at(bytes, 4)) else {
            return Ok(Consumed::More);
        };
        let length = length as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return broken("a block of an impossible length");
        }
        if !matches!(kind, INTERFACE | OLD_PACKET | STATISTICS | PACKET) {
            return Ok(Consumed::Bytes(length));
        }
        if length > RECORD_BYTES_MAX + 64 {
            return broken("a packet of more than 1 MiB");
        }
        let Some(block) = bytes.get(..length) else { return Ok(Consumed::More) };
        let body = block.get(8..length - 4).unwrap_or_default();
        match kind {
            INTERFACE => self.interface(body),
            STATISTICS => self.statistics(body, dropped),
            _ => {
                let Some(packet) = self.packet(body, kind == OLD_PACKET) else {
                    return broken("a packet that is cut off");
                };
                match packet {
                    Ok(packet) => take(&packet),
                    Err(number) => return Err(FileError::Link(number)),
                }
            }
        }
        Ok(Consumed::Bytes(length))
    }

    fn interface(&mut self, body: &[u8]) {
        if self.interfaces.len() >= INTERFACES_MAX {
            return;
        }
        let number = self.u16_at(body, 0).map_or(u32::MAX, u32::from);
        let mut interface =
            Interface { link: Link::from_number(number), number, ticks: 1_000_000, offset_seconds: 0, dropped: 0 };
        for (code, value) in self.options(body.get(8..).unwrap_or_default()) {
            match (code, value) {
                (RESOLUTION, [power, ..]) => {
                    let exponent = u32::from(power & 0x7f);
                    let ticks =
                        if power & 0x80 != 0 { 1_u64.checked_shl(exponent) } else { 10_u64.checked_pow(exponent) };
                    interface.ticks = ticks.unwrap_or(1_000_000);
                }
                (OFFSET, value) => interface.offset_seconds = self.u64_of(value).unwrap_or(0) as i64,
                _ => {}
            }
        }
        self.interfaces.push(interface);
    }

    fn statistics(&mut self, body: &[u8], dropped: &mut u64) {
        let count: u64 = self
            .options(body.get(12..).unwrap_or_default())
            .filter(|(code, _)| DROPPED.contains(code))
            .filter_map(|(_, value)| self.u64_of(value))
            .fold(0, u64::saturating_add);
        let index = self.u32_at(body, 0).map_or(usize::MAX, |index| index as usize);
        if let Some(interface) = self.interfaces.get_mut(index) {
            // It counts from the start, and is reported now and then.
            *dropped = dropped.saturating_add(count.saturating_sub(interface.dropped));
            interface.dropped = interface.dropped.max(count);
        }
    }

    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a, '_> {
        std::iter::from_fn(move || {
            let (code, length) = (self.u16_at(bytes, 0)?, usize::from(self.u16_at(bytes, 2)?));
            let value = bytes.get(4..4 + length)?;
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            (code != END).then_some((code, value))
        })
    }

    /// The packet in a block, or the number of its link if that is not supported.
    fn packet<'a>(&self, body: &'a [u8], is_old: bool) -> Option<Result<Packet<'a>, u32>> {
        let index = if is_old { u32::from(self.u16_at(body, 0)?) } else { self.u32_at(body, 0)? };
        let time = self.split_u64_at(body, 4)?;
        let (stored, length) = (self.u32_at(body, 12)? as usize, self.u32_at(body, 16)? as usize);
        let bytes = body.get(20..20_usize.checked_add(stored)?)?;
        let interface = self.interfaces.get(index as usize)?;
        let Some(link) = interface.link else { return Some(Err(interface.number)) };
        let ticks = u128::from(interface.ticks.max(1));
        let ns = i64::try_from(u128::from(time) * 1_000_000_000 / ticks).unwrap_or(i64::MAX);
        let at = ns.saturating_add(interface.offset_seconds.saturating_mul(1_000_000_000));
        Some(Ok(Packet { at, link, bytes, length: length.max(stored) }))
    }
}
