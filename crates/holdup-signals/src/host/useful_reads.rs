//! Bytes that a device read, compared with the bytes that were asked for: a page fault asks for a
//! page, a read call for its length, as the process or MongoDB's storage engine counts it. The rest
//! is readahead. holdup underestimates readahead: a read call answered from the page cache counts as
//! asked of the device, and faults on any other device count as faults on this one.

use holdup_recording::metrics;

use crate::host::disk_waits::DiskWaits;
use crate::host::memory::{HOST, PAGE_BYTES, PROCESS};
use crate::{Counter, Disk, Missing, View};

/// The useful part of what a device read.
#[derive(Clone, Debug)]
pub struct UsefulReads {
    /// Bytes read from the device.
    pub read_bytes: f64,
    /// Bytes of them that were asked for, at most.
    pub useful_bytes: f64,
    /// Page faults that read from a disk.
    pub faults: Counter,
    /// Bytes that read calls asked for.
    pub call_bytes: f64,
    /// Read calls, if a storage engine counts its own; else 0.
    pub calls: f64,
    /// Read operations of the device.
    pub operations: f64,
    /// Share (0-1) of the bytes that watched processes caused, by each process's own counter; none
    /// if not recorded.
    pub own_ratio: Option<f64>,
    /// The readahead window of the device, bytes; none if it was not recorded.
    pub window_bytes: Option<f64>,
}

impl UsefulReads {
    /// Bytes read per byte asked for, for the watched processes only: an unwatched backup reads
    /// what it wants, and no source counts that.
    pub fn ratio(&self) -> f64 {
        (self.read_bytes * self.own() / self.useful_bytes.max(1.0)).max(1.0)
    }

    /// Useful bytes of a mean read operation.
    pub fn useful_each(&self) -> f64 {
        self.useful_bytes / self.operations.max(1.0)
    }

    /// Share (0-1) of the waits for reads that can be the service's own: other processes that read
    /// as much from the device add as much to the queue.
    pub fn own(&self) -> f64 {
        self.own_ratio.unwrap_or(1.0)
    }

    /// Bytes of a mean read operation.
    pub fn read_each(&self) -> f64 {
        self.read_bytes / self.operations.max(1.0)
    }

    /// Bytes read from the device per page fault or counted read call.
    pub fn read_per_fault(&self) -> f64 {
        self.read_bytes / (self.faults.delta + self.calls).max(1.0)
    }
}

/// Name of the setting with the readahead window of `device`, KB.
pub fn window_setting(device: &str) -> String {
    format!("block.{device}.read_ahead_kb")
}

impl View<'_> {
    /// The useful part of what `disk` read.
    ///
    /// # Errors
    /// If page faults or read calls were not recorded.
    pub fn useful_reads(&self, disk: &Disk, waits: &DiskWaits) -> Result<UsefulReads, Missing> {
        let faults = self.major_faults()?;
        let read_bytes = disk.read.bytes;
        let calls = self.counter(metrics::process::IO_CALLS_BYTES.name, &[("direction", "read")], PROCESS);
        let engine =
            |metric: metrics::Metric| self.counter(metric.name, &[], PROCESS).ok().map(|counter| counter.delta);
        let by_engine = engine(metrics::mongodb::SERVER_STATUS_WIRED_TIGER_BLOCK_MANAGER_BYTES_READ);
        let calls_counted = engine(metrics::mongodb::SERVER_STATUS_WIRED_TIGER_BLOCK_MANAGER_BLOCKS_READ);
        let call_bytes = match (calls, waits.fault_ratio()) {
            _ if by_engine.is_some() => by_engine.unwrap_or_default().min(read_bytes),
            // Read calls in which no thread waits are answered from memory.
            (Ok(calls), ratio) => calls.delta.min(read_bytes) * (1.0 - ratio.unwrap_or(0.0)),
            (Err(_), Some(ratio)) => read_bytes * (1.0 - ratio),
            (Err(missing), None) => return Err(missing),
        };
        let own = self.counter(metrics::process::DISK_IO_BYTES.name, &[("direction", "read")], PROCESS).ok();
        let window = self.setting(&window_setting(&disk.device), HOST).ok();
        Ok(UsefulReads {
            read_bytes,
            useful_bytes: (faults.delta * PAGE_BYTES + call_bytes).min(read_bytes),
            faults,
            call_bytes,
            calls: calls_counted.filter(|_| by_engine.is_some()).unwrap_or(0.0),
            operations: disk.read.operations,
            own_ratio: own.map(|own| (own.delta / read_bytes.max(1.0)).min(1.0)),
            window_bytes: window.and_then(|kb| kb.parse::<f64>().ok()).map(|kb| kb * 1024.0),
        })
    }
}
