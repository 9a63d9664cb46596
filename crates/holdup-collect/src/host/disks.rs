//! Whole block devices in use: `/proc/diskstats`. Partitions are left out. A loop, device-mapper or
//! RAID device appears beside the disks beneath it, so devices must not be added up (settings say
//! which lies on which).

use std::collections::HashSet;

use holdup_recording::metrics::Metric;
use holdup_recording::{Labels, metrics};

use super::Reader;
use crate::ReadError;
use crate::proc::Tree;
use crate::proc::diskstats::{self, Disk, SECTOR_BYTES};
use crate::reading::Out;

pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let devices = whole_devices(reader)?;
    out.begin();
    let text = reader.proc.read_lines("diskstats", &mut reader.buffer)?;
    for line in text.lines() {
        let device = diskstats::device(line);
        let device = device.ok_or_else(|| ReadError("/proc/diskstats: a line without a device".to_owned()))?;
        if devices.contains(device) {
            put(&Disk::parse(line)?, out);
        }
    }
    Ok(())
}

fn put(disk: &Disk, out: &mut Out) {
    let of = |direction: &str| Labels::new([("device", disk.device), ("direction", direction)]);
    for (direction, requests) in [("read", &disk.reads), ("write", &disk.writes)] {
        out.put(metrics::host::DISK_OPERATIONS, of(direction), requests.operations as f64);
        out.put(metrics::host::DISK_MERGED, of(direction), requests.merged as f64);
        out.put(metrics::host::DISK_IO_BYTES, of(direction), requests.sectors as f64 * SECTOR_BYTES);
        out.put(metrics::host::DISK_OPERATION_TIME, of(direction), requests.time_ms as f64 / 1e3);
    }
    let mut whole = |metric: Metric, value: f64| out.put(metric, Labels::new([("device", disk.device)]), value);
    if let Some(in_flight) = disk.in_flight {
        whole(metrics::host::DISK_IN_FLIGHT, f64::from(in_flight));
    }
    whole(metrics::host::DISK_IO_TIME, disk.busy_ms as f64 / 1e3);
    whole(metrics::host::DISK_WEIGHTED_IO_TIME, disk.weighted_ms as f64 / 1e3);
    if let Some(discards) = disk.discards {
        whole(metrics::host::DISK_DISCARDS, discards.operations as f64);
    }
    if let Some((flushes, time_ms)) = disk.flushes {
        whole(metrics::host::DISK_FLUSHES, flushes as f64);
        whole(metrics::host::DISK_FLUSH_TIME, time_ms as f64 / 1e3);
    }
}

/// Devices with a folder in `/sys/block` (partitions have none) and a size: an unused loop or zram
/// device has size 0.
fn whole_devices(reader: &mut Reader) -> Result<HashSet<String>, ReadError> {
    let folder = reader.proc.path(Tree::Sys, "block");
    let wrap = |e: std::io::Error| ReadError(format!("{}: {e}", folder.display()));
    let mut devices = HashSet::new();
    for entry in std::fs::read_dir(&folder).map_err(wrap)? {
        let name = entry.map_err(wrap)?.file_name().to_string_lossy().into_owned();
        let size = reader.proc.read_in(Tree::Sys, &format!("block/{name}/size"), &mut reader.buffer);
        // A device may be removed meanwhile: then its size cannot be read, and it is skipped.
        if size.is_ok_and(|sectors| sectors.trim() != "0") {
            // sysfs writes `!` for a slash in a device's name.
            devices.insert(name.replace('!', "/"));
        }
    }
    Ok(devices)
}
