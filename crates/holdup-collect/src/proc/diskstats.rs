//! A line of `/proc/diskstats` (Documentation/admin-guide/iostats.rst). Kernels before 4.18 have 11
//! numbers per device, before 5.5 15 (discards), later ones 17 (flushes). Callers choose the
//! devices and say what the numbers are.

use crate::ReadError;
use crate::proc::{clip, number};

/// Unit of the sector counts, whatever the device's own sector is.
pub const SECTOR_BYTES: f64 = 512.0;

/// Numbers of a device since Linux 5.5.
pub const NUMBERS: usize = 17;

/// Position of the requests in flight. Some kernels' count is off: it then is negative, or near 2^32.
const IN_FLIGHT: usize = 8;

const FILE: &str = "/proc/diskstats";

/// The device of a line, as in `/dev`.
pub fn device(line: &str) -> Option<&str> {
    line.split_ascii_whitespace().nth(2)
}

/// The numbers behind the device's name; none where the kernel has none, or an impossible one in
/// flight.
///
/// # Errors
/// If a number is missing or malformed.
pub fn numbers(line: &str) -> Result<[Option<u64>; NUMBERS], ReadError> {
    let device = device(line).ok_or_else(|| ReadError(format!("{FILE}: a line without a device")))?;
    let (mut numbers, mut known) = ([None; NUMBERS], 0);
    // Numbers that a later kernel adds are ignored.
    for (slot, field) in numbers.iter_mut().zip(line.split_ascii_whitespace().skip(3)) {
        let value = u64::try_from(number::<i128>(FILE, device, Some(field))?).ok();
        *slot = if known == IN_FLIGHT { value.filter(|count| *count < 1 << 31) } else { value };
        if slot.is_none() && known != IN_FLIGHT {
            return Err(ReadError(format!("{FILE}: {} is out of range", clip(device))));
        }
        known += 1;
    }
    if ![11, 15, NUMBERS].contains(&known) {
        return Err(ReadError(format!("{FILE}: {known} numbers of {}, not 11, 15 or 17", clip(device))));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = " 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";

    #[test]
    fn kernels_of_three_times() {
        assert_eq!(device(LINE), Some("vda"));
        for (line, count) in
            [(LINE, 17), (LINE.strip_suffix(" 16 17").unwrap(), 15), (" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11", 11)]
        {
            let found: Vec<u64> = numbers(line).unwrap().into_iter().flatten().collect();
            assert_eq!(found, (1..=count).collect::<Vec<u64>>());
        }
        assert!(numbers(&format!("{LINE} 18 x")).is_ok());
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
            assert!(numbers(bad).is_err(), "{bad}");
        }
        assert!(numbers(&LINE.replace(" 10 ", " -10 ")).is_err());
    }

    /// Seen on kernels whose count of requests under way went below zero.
    #[test]
    fn a_count_in_flight_that_can_not_be() {
        for odd in [" -1 ", " 4294967295 "] {
            assert_eq!(numbers(&LINE.replace(" 9 ", odd)).unwrap()[IN_FLIGHT], None);
        }
    }
}
