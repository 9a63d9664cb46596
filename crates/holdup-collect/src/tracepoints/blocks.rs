//! Requests issued to block devices: their number, their sizes, and how many are sequential.
//!
//! A device serves several readers at once, so a request counts as sequential if it begins where any of the last
//! [`STREAMS`] requests of its device and direction ended.

use std::collections::{BTreeMap, VecDeque};

use holdup_recording::{Labels, metrics};

use super::format::Format;
use super::ring::Record;
use crate::proc::Proc;
use crate::proc::devices::Devices;
use crate::reading::Out;

/// Number of request ends remembered per device and direction.
const STREAMS: usize = 32;

/// Upper bounds of the size classes, bytes; the last class has none.
const SIZES: [u64; 8] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];

/// Bytes of a sector in the kernel's counts.
const SECTOR_BYTES: u64 = 512;

/// The totals so far.
#[derive(Default)]
pub(super) struct Blocks {
    totals: BTreeMap<(u64, &'static str), Total>,
    devices: Devices,
}

#[derive(Default)]
struct Total {
    requests: u64,
    bytes: u64,
    sequential: u64,
    by_size: [u64; SIZES.len() + 1],
    ends: VecDeque<u64>,
}

impl Blocks {
    /// Counts one `block:block_rq_issue`. Flushes and discards carry no data and are skipped.
    pub fn take(&mut self, format: &Format, record: &Record<'_>) {
        let field = |name| format.number(record.raw, name);
        let (Some(device), Some(sector), Some(sectors)) = (field("dev"), field("sector"), field("nr_sector")) else {
            return;
        };
        let direction = match format.bytes(record.raw, "rwbs").unwrap_or_default() {
            // `F` before the direction marks a flush that comes with the data.
            [b'R', ..] | [b'F', b'R', ..] => "read",
            [b'W', ..] | [b'F', b'W', ..] => "write",
            _ => return,
        };
        if sectors > 0 {
            self.totals.entry((device, direction)).or_default().add(sector, sectors);
        }
    }

    /// Adds all totals to `out`.
    pub fn put(&mut self, proc: &Proc, out: &mut Out) {
        for ((device, direction), total) in &self.totals {
            // The kernel's own number has 12 bits of major and 20 of minor (linux/kdev_t.h).
            let number = format!("{}:{}", device >> 20, device & 0xf_ffff);
            let name = self.devices.name(proc, &number).unwrap_or(&number);
            let labels = Labels::new([("device", name), ("direction", *direction)]);
            out.put(metrics::tracepoints::DISK_REQUESTS, labels.clone(), total.requests as f64);
            out.put(metrics::tracepoints::DISK_REQUEST_BYTES, labels.clone(), total.bytes as f64);
            out.put(metrics::tracepoints::DISK_SEQUENTIAL_REQUESTS, labels.clone(), total.sequential as f64);
            let bounds = SIZES.iter().map(u64::to_string).chain(["more".to_owned()]);
            for (bound, requests) in bounds.zip(total.by_size).filter(|(_, requests)| *requests > 0) {
                let labels = labels.clone().with("size_max_bytes", bound);
                out.put(metrics::tracepoints::DISK_REQUESTS_BY_SIZE, labels, requests as f64);
            }
        }
    }
}

impl Total {
    fn add(&mut self, sector: u64, sectors: u64) {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_size[SIZES.iter().position(|bound| bytes <= *bound).unwrap_or(SIZES.len())] += 1;
        let end = sector.saturating_add(sectors);
        match self.ends.iter().position(|known| *known == sector) {
            Some(stream) => {
                self.sequential += 1;
                self.ends.remove(stream);
            }
            None if self.ends.len() == STREAMS => {
                self.ends.pop_front();
            }
            None => {}
        }
        self.ends.push_back(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_sequential_beside_another_and_jumps_are_not() {
        let mut total = Total::default();
        // Two readers side by side: of each the first request is a jump, the others follow.
        for step in 0..10 {
            total.add(1_000 + step * 8, 8);
            total.add(90_000 + step * 256, 256);
        }
        assert_eq!((total.requests, total.sequential), (20, 18));
        assert_eq!((total.by_size[0], total.by_size[5]), (10, 10));
        let mut random = Total::default();
        for step in 0..100 {
            random.add((step * 7_919) % 100_003 * 16, 8);
        }
        assert_eq!(random.sequential, 0);
        assert!(random.ends.len() <= STREAMS);
    }
}
