//! A line of `/proc/diskstats` (Documentation/admin-guide/iostats.rst). Kernels before 4.18 have 11
//! numbers per device, before 5.5 15 (discards), later ones 17 (flushes). Callers choose the
//! devices.

use crate::ReadError;
use crate::proc::{clip, number};

/// Unit of the sector counts, whatever the device's own sector is.
pub const SECTOR_BYTES: f64 = 512.0;

const FILE: &str = "/proc/diskstats";

/// Requests of one kind since the device came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Completed.
    pub operations: u64,
    /// Merged into other requests before reaching the device.
    pub merged: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// The sum of their durations, milliseconds.
    pub time_ms: u64,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk<'a> {
    /// Name, as in `/dev`.
    pub device: &'a str,
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Requests in flight; none if the kernel's count is off (it then shows a negative number, or
    /// one near 2^32).
    pub in_flight: Option<u32>,
    /// Time with at least one request in flight, milliseconds.
    pub busy_ms: u64,
    /// Time weighted by requests in flight, milliseconds.
    pub weighted_ms: u64,
    /// Discards, since Linux 4.18.
    pub discards: Option<Requests>,
    /// Flushes, since Linux 5.5: their number, and their time in milliseconds.
    pub flushes: Option<(u64, u64)>,
}

/// The device of a line.
pub fn device(line: &str) -> Option<&str> {
    line.split_ascii_whitespace().nth(2)
}

/// Numbers of a line after the device's name, since Linux 5.5.
const NUMBERS: usize = 17;

impl<'a> Disk<'a> {
    /// Parses one line.
    ///
    /// # Errors
    /// If a number is missing or malformed.
    pub fn parse(line: &'a str) -> Result<Self, ReadError> {
        let mut fields = line.split_ascii_whitespace().skip(2);
        let device = fields.next().ok_or_else(|| ReadError(format!("{FILE}: a line without a device")))?;
        let mut numbers = [0_i128; NUMBERS];
        let mut known = 0;
        // Numbers that a later kernel adds are ignored.
        for (slot, field) in numbers.iter_mut().zip(fields) {
            *slot = number(FILE, device, Some(field))?;
            known += 1;
        }
        if ![11, 15, 17].contains(&known) {
            return Err(ReadError(format!("{FILE}: {known} numbers of {}, not 11, 15 or 17", clip(device))));
        }
        let counter = |at: usize| {
            u64::try_from(numbers[at]).map_err(|_| ReadError(format!("{FILE}: {} is out of range", clip(device))))
        };
        let requests = |at: usize| -> Result<Requests, ReadError> {
            Ok(Requests {
                operations: counter(at)?,
                merged: counter(at + 1)?,
                sectors: counter(at + 2)?,
                time_ms: counter(at + 3)?,
            })
        };
        Ok(Self {
            device,
            reads: requests(0)?,
            writes: requests(4)?,
            in_flight: u32::try_from(numbers[8]).ok().filter(|count| *count < 1 << 31),
            busy_ms: counter(9)?,
            weighted_ms: counter(10)?,
            discards: (known >= 15).then(|| requests(11)).transpose()?,
            flushes: if known >= 17 { Some((counter(15)?, counter(16)?)) } else { None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = " 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";

    #[test]
    fn kernels_of_three_times() {
        let disk = Disk::parse(LINE).unwrap();
        assert_eq!(device(LINE), Some("vda"));
        assert_eq!((disk.device, disk.reads.operations, disk.reads.sectors, disk.writes.time_ms), ("vda", 1, 3, 8));
        assert_eq!((disk.in_flight, disk.busy_ms, disk.weighted_ms), (Some(9), 10, 11));
        assert_eq!((disk.discards.unwrap().sectors, disk.flushes), (14, Some((16, 17))));
        let disk = Disk::parse(LINE.strip_suffix(" 16 17").unwrap()).unwrap();
        assert_eq!((disk.discards.unwrap().operations, disk.flushes), (12, None));
        assert_eq!(Disk::parse(LINE.strip_suffix(" 12 13 14 15 16 17").unwrap()).unwrap().discards, None);
        assert!(Disk::parse(&format!("{LINE} 18 x")).is_ok());
    }

    #[test]
    fn other_lengths_and_no_numbers_are_errors() {
        for bad in [
            "",
            "254 0",
            "254 0 vda",
            "254 0 vda 1 2 3 4",
            " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12",
            "8 0 sda 1 2 3 4 5 6 7 8 9 10 x",
        ] {
            assert!(Disk::parse(bad).is_err(), "{bad}");
        }
        assert!(Disk::parse(&LINE.replace(" 10 ", " -10 ")).is_err());
    }

    /// Seen on kernels whose count of requests under way went below zero.
    #[test]
    fn a_count_in_flight_that_can_not_be() {
        for odd in [" -1 ", " 4294967295 "] {
            assert_eq!(Disk::parse(&LINE.replace(" 9 ", odd)).unwrap().in_flight, None);
        }
    }
}
