//! Records of one tracepoint on one CPU: opened, filtered in the kernel, read without waiting. The
//! ring's size limits the cost of an interval: records that do not fit are lost, and counted.

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd as _;

use perf_event::events::Tracepoint;
use perf_event::{Builder, SampleFlag, Sampler};

/// Bytes of one ring: some 4,000 records per interval.
const RING_BYTES: usize = 512 << 10;

/// `PERF_EVENT_IOC_SET_FILTER` of linux/perf_event.h: `_IOW('$', 6, char *)`.
const SET_FILTER: libc::Ioctl = 0x4008_2406_u32 as libc::Ioctl;

/// Record types (linux/perf_event.h).
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// One record.
pub(super) struct Record<'r> {
    /// The running process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Time, nanoseconds on the clock that all rings share.
    pub at: u64,
    /// The tracepoint's own bytes.
    pub raw: &'r [u8],
}

/// The records of one tracepoint on one CPU.
pub(super) struct Ring(Sampler);

impl Ring {
    /// Starts recording tracepoint `id` on `cpu`, only records that match `filter`.
    pub fn open(id: u64, cpu: usize, filter: Option<&str>) -> io::Result<Self> {
        let mut builder = Builder::new(Tracepoint::with_id(id));
        builder.any_pid().one_cpu(cpu).include_kernel().sample_period(1);
        builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::RAW);
        let counter = builder.build()?;
        if let Some(filter) = filter {
            let filter = CString::new(filter).map_err(io::Error::other)?;
            // SAFETY: the descriptor is open, and `filter` is a string that outlives the call.
            if unsafe { libc::ioctl(counter.as_raw_fd(), SET_FILTER, filter.as_ptr()) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let mut sampler = counter.sampled(RING_BYTES)?;
        sampler.as_counter_mut().enable()?;
        Ok(Self(sampler))
    }

    /// Hands every available record to `take`, and returns how many were lost since the last time.
    pub fn drain(&mut self, mut take: impl FnMut(Record<'_>)) -> u64 {
        let mut lost = 0;
        while let Some(record) = self.0.next_record() {
            let data = record.to_contiguous();
            match record.ty() {
                SAMPLE => {
                    if let Some(record) = sample(&data) {
                        take(record);
                    }
                }
                LOST => lost += u64_at(&data, 8).unwrap_or(0),
                _ => {}
            }
        }
        lost
    }
}

/// A sample with the requested parts, in the order of perf_event_open(2).
fn sample(data: &[u8]) -> Option<Record<'_>> {
    let length = u32_at(data, 16)? as usize;
    let raw = data.get(20..20_usize.checked_add(length)?)?;
    Some(Record { pid: u32_at(data, 0)?, tid: u32_at(data, 4)?, at: u64_at(data, 8)?, raw })
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_sample_is_none() {
        let mut data = Vec::new();
        data.extend(7_u32.to_ne_bytes());
        data.extend(8_u32.to_ne_bytes());
        data.extend(9_u64.to_ne_bytes());
        data.extend(4_u32.to_ne_bytes());
        data.extend([1, 2, 3, 4]);
        let whole = sample(&data).unwrap();
        assert_eq!((whole.pid, whole.tid, whole.at, whole.raw), (7, 8, 9, &[1_u8, 2, 3, 4][..]));
        for end in 0..data.len() {
            assert!(sample(&data[..end]).is_none(), "{end}");
        }
    }
}
