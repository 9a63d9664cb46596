//! Block devices over a window: what each had to do, how long it took and how much waited, from the
//! kernel's own counters (`/proc/diskstats`). Also which device stands on which: a loop device on a
//! file of a disk, a volume on its parts, a partition on its disk. The same read shows at every
//! level of such a stack, so levels must never be added up.
//!
//! This module does not say what the service's threads waited for: a device serves all processes,
//! write-back included.

use std::collections::BTreeSet;

use holdup_recording::metrics;

use crate::Evidence;
use crate::{Gauge, Missing, View};

/// What to record for disks.
pub const HOST: &str = "--watch host";

/// Deepest stack that holdup follows: a deeper one is a cycle in the recording.
const DEEPEST: usize = 8;

/// One direction of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfers {
    /// Operations that ended.
    pub operations: f64,
    /// Bytes.
    pub bytes: f64,
    /// Total time of these operations from their entry into the queue to their end, seconds.
    pub seconds: f64,
}

impl Transfers {
    /// Bytes of a mean operation; 0 without any.
    pub fn bytes_each(&self) -> f64 {
        if self.operations > 0.0 { self.bytes / self.operations } else { 0.0 }
    }

    /// Milliseconds from entry into the queue to the end (iostat's `r_await`, `w_await`); 0 without an operation.
    pub fn await_ms(&self) -> f64 {
        if self.operations > 0.0 { self.seconds / self.operations * 1e3 } else { 0.0 }
    }
}

/// A device over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Its name, e.g. `vda`.
    pub device: String,
    /// Seconds that the counts cover.
    pub seconds: f64,
    /// Reads.
    pub read: Transfers,
    /// Writes.
    pub write: Transfers,
    /// Operations queued or in service on average (weighted I/O time; iostat's `aqu-sz`).
    pub queue: f64,
    /// Share (0-1) of the time with at least one operation.
    pub utilization: f64,
    /// Devices it stands on, nearest first, as far as recorded.
    pub beneath: Vec<String>,
}

impl Disk {
    /// Reads and writes a second.
    pub fn operations_per_second(&self) -> f64 {
        (self.read.operations + self.write.operations) / self.seconds.max(1e-9)
    }

    /// Bytes read and written a second.
    pub fn bytes_per_second(&self) -> f64 {
        (self.read.bytes + self.write.bytes) / self.seconds.max(1e-9)
    }

    /// Bytes of a mean read or write.
    pub fn bytes_each(&self) -> f64 {
        let operations = self.read.operations + self.write.operations;
        if operations > 0.0 { (self.read.bytes + self.write.bytes) / operations } else { 0.0 }
    }

    /// Total time of its operations, seconds.
    pub fn operation_seconds(&self) -> f64 {
        self.read.seconds + self.write.seconds
    }

    /// `loop0 (on vda)`.
    pub fn name(&self) -> String {
        if self.beneath.is_empty() {
            return self.device.clone();
        }
        format!("{} (on {})", self.device, self.beneath.join(", "))
    }
}

/// What lies beneath each device.
pub struct Stacks<'a> {
    view: View<'a>,
}

impl Stacks<'_> {
    /// Devices and partitions directly beneath `device`.
    fn right_beneath(&self, device: &str) -> Vec<String> {
        let setting = |fact: &str| self.view.setting(&format!("block.{device}.{fact}"), HOST).ok();
        if let Some(parent) = setting("parent") {
            return vec![parent.to_owned()];
        }
        if let Some(parts) = setting("parts") {
            return parts.split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect();
        }
        let mount = setting("backing").and_then(|file| self.view.mount_of(file));
        mount.filter(|m| !m.is_in_memory()).map(|m| m.device).into_iter().collect()
    }

    /// All devices beneath `device`, nearest first; a partition stands for its disk.
    pub fn beneath(&self, device: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut level = self.right_beneath(device);
        for _ in 0..DEEPEST {
            let next: Vec<String> = level.iter().flat_map(|d| self.right_beneath(d)).collect();
            for device in level {
                if !found.contains(&device) {
                    found.push(device);
                }
            }
            level = next;
        }
        found.retain(|d| d != device);
        found
    }
}

/// Disks of a window, busiest (longest queue) first.
#[derive(Clone, Debug, PartialEq)]
pub struct Disks {
    /// Every device that did I/O, busiest first.
    pub all: Vec<Disk>,
}

impl Disks {
    /// The device of that name.
    pub fn named(&self, device: &str) -> Option<&Disk> {
        self.all.iter().find(|d| d.device == device)
    }

    /// Active devices on which no other active device stands: what file systems and servers use.
    pub fn tops(&self) -> impl Iterator<Item = &Disk> {
        self.all.iter().filter(|d| !self.all.iter().any(|above| above.beneath.contains(&d.device)))
    }

    /// Total time of all operations, seconds, each counted at one level of its stack. Where a
    /// device does more than what stands on it asked for, the rest counts too.
    pub fn operation_seconds(&self, of: impl Fn(&Disk) -> f64) -> f64 {
        self.all
            .iter()
            .map(|disk| {
                let stands_on = |d: &Disk| d.beneath.contains(&disk.device);
                // A device on top of one in between is counted there.
                let is_between = |d: &Disk| self.all.iter().any(|e| stands_on(e) && d.beneath.contains(&e.device));
                let above = self.all.iter().filter(|d| stands_on(d) && !is_between(d));
                (of(disk) - above.map(&of).sum::<f64>()).max(0.0)
            })
            .sum()
    }
}

impl<'a> View<'a> {
    /// Every device that did I/O.
    ///
    /// # Errors
    /// If one of its counters was not recorded.
    pub fn disks(&self) -> Result<Disks, Missing> {
        let devices: BTreeSet<String> =
            self.label_values(metrics::host::DISK_OPERATIONS.name, "device").into_iter().collect();
        if devices.is_empty() {
            return Err(Missing::new("samples of system_disk_operations_total", HOST));
        }
        let stacks = self.stacks();
        let mut all = Vec::new();
        for device in devices {
            let transfers = |direction| -> Result<Transfers, Missing> {
                let labels = [("device", device.as_str()), ("direction", direction)];
                let grew = |metric| self.counter(metric, &labels, HOST).map(|c| c.delta);
                Ok(Transfers {
                    operations: grew(metrics::host::DISK_OPERATIONS.name)?,
                    bytes: grew(metrics::host::DISK_IO_BYTES.name)?,
                    seconds: grew(metrics::host::DISK_OPERATION_TIME.name)?,
                })
            };
            let labels = [("device", device.as_str())];
            // A device that came or went meanwhile may lack two samples around the window; the
            // others count.
            let Ok(busy) = self.counter(metrics::host::DISK_IO_TIME.name, &labels, HOST) else { continue };
            let (read, write) = (transfers("read")?, transfers("write")?);
            if read.operations + write.operations == 0.0 {
                continue;
            }
            let weighted = self.counter(metrics::host::DISK_WEIGHTED_IO_TIME.name, &labels, HOST)?;
            let mut beneath = stacks.beneath(&device);
            // A partition does not count as a device: its disk does.
            beneath.retain(|d| self.setting(&format!("block.{d}.parent"), HOST).is_err());
            all.push(Disk {
                seconds: busy.seconds,
                read,
                write,
                queue: weighted.rate(),
                utilization: busy.rate().min(1.0),
                beneath,
                device,
            });
        }
        if all.is_empty() {
            // No disk did any I/O: that is a fact only if disks were recorded.
            self.counter(metrics::host::DISK_IO_TIME.name, &[], HOST)?;
        }
        all.sort_by(|a, b| b.queue.total_cmp(&a.queue));
        Ok(Disks { all })
    }

    /// What lies beneath each device.
    pub fn stacks(&self) -> Stacks<'a> {
        Stacks { view: *self }
    }

    /// The whole device that holds a file system's `device`: for a partition, its disk.
    pub fn whole_device(&self, device: &str) -> String {
        self.setting(&format!("block.{device}.parent"), HOST).unwrap_or(device).to_owned()
    }

    /// Evidence of what `disk` did, in iostat's terms.
    ///
    /// # Errors
    /// If its queue was not recorded.
    pub fn disk_evidence(&self, disk: &Disk, expected: &str, text: String) -> Result<Evidence, Missing> {
        let labels = [("device", disk.device.as_str())];
        let weighted = self.counter(metrics::host::DISK_WEIGHTED_IO_TIME.name, &labels, HOST)?;
        Ok(weighted.evidence(format!("{:.1} in the queue", disk.queue), expected, text))
    }

    /// Operations in flight at `device` at the sampling instants.
    pub fn in_flight(&self, device: &str) -> Option<Gauge> {
        self.gauge(metrics::host::DISK_IN_FLIGHT.name, &[("device", device)], HOST).ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    const NONE: (f64, f64, f64) = (0.0, 0.0, 0.0);

    #[test]
    fn rates_waits_and_queue_are_iostats() {
        let made =
            SyntheticRecording::new(10).disk("vda", (200.0, 8192.0, 10.0), (50.0, 4096.0, 4.0)).disk("vdb", NONE, NONE);
        let disks = made.seen(|view| view.disks().unwrap());
        assert_eq!(disks.all.len(), 1, "vdb was asked for nothing");
        let vda = &disks.all[0];
        assert!((vda.operations_per_second() - 250.0).abs() < 1e-6 && (vda.read.await_ms() - 10.0).abs() < 1e-6);
        assert!((vda.queue - 2.2).abs() < 1e-6 && (vda.bytes_each() - 7372.8).abs() < 0.1, "{vda:?}");
    }

    #[test]
    fn levels_of_a_stack_are_not_added_up() {
        let made = SyntheticRecording::new(10)
            .disk("dm-0", (100.0, 4096.0, 10.0), NONE)
            .disk("loop3", (100.0, 4096.0, 9.0), NONE)
            .disk("vda", (100.0, 4096.0, 8.0), (100.0, 4096.0, 2.0))
            .setting("host", "block.dm-0.parts", "loop3")
            .setting("host", "block.loop3.backing", "/data/image")
            .setting("host", "mount[/data].fstype", "ext4")
            .setting("host", "mount[/data].device", "vda1")
            .setting("host", "block.vda1.parent", "vda");
        let disks = made.seen(|view| view.disks().unwrap());
        assert_eq!(disks.named("dm-0").unwrap().beneath, ["loop3", "vda"]);
        assert_eq!(disks.tops().map(|d| d.device.as_str()).collect::<Vec<_>>(), ["dm-0"]);
        // 1 s/s of reads at the top; the loop's are among them; vda's own writes make 0.1 s/s more.
        let all = disks.operation_seconds(|d| d.operation_seconds()) / 10.0;
        assert!((all - 1.1).abs() < 0.01, "{all}");
    }

    #[test]
    fn without_a_counter_nothing_is_said() {
        let made = SyntheticRecording::new(10).disk("vda", (1.0, 1.0, 1.0), NONE);
        for metric in [
            "system_disk_operations_total",
            "system_disk_io_bytes_total",
            "system_disk_operation_time_seconds_total",
            "system_disk_weighted_io_time_seconds_total",
        ] {
            assert!(made.clone().without(metric).seen(|view| view.disks().is_err()), "{metric}");
        }
    }
}
