//! Whole block devices that are in use: `/proc/diskstats`. Partitions are left out; a device-mapper or RAID device
//! stands beside the disks beneath it, so devices must not be added up.

use std::collections::HashSet;

use holdup_recording::Labels;

use super::Reader;
use crate::ReadError;
use crate::proc::{Tree, number};
use crate::reading::Out;

/// Unit of the sector counts, whatever the device's own sector is (Documentation/admin-guide/iostats.rst).
const SECTOR_BYTES: f64 = 512.0;

pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let devices = whole_devices(reader)?;
    out.begin();
    let text = reader.proc.read_lines("diskstats", &mut reader.buffer)?;
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let device = fields.nth(2).ok_or_else(|| ReadError("/proc/diskstats: a line without a device".to_owned()))?;
        if !devices.contains(device) {
            continue;
        }
        // Reads: done, merged, sectors, ms; the same of writes; in flight, busy ms, weighted ms.
        let mut values = [0.0; 11];
        for (position, value) in values.iter_mut().enumerate() {
            *value = number("/proc/diskstats", &format!("field {} of {device}", position + 1), fields.next())?;
        }
        let of = |direction: &str| Labels::of([("device", device), ("direction", direction)]);
        for (direction, first) in [("read", 0), ("write", 4)] {
            out.put("system_disk_operations_total", of(direction), values[first]);
            out.put("system_disk_io_bytes_total", of(direction), values[first + 2] * SECTOR_BYTES);
            out.put("system_disk_operation_time_seconds_total", of(direction), values[first + 3] / 1e3);
        }
        let whole = Labels::of([("device", device)]);
        out.put("system_disk_in_flight", whole.clone(), values[8]);
        out.put("system_disk_io_time_seconds_total", whole.clone(), values[9] / 1e3);
        out.put("system_disk_weighted_io_time_seconds_total", whole, values[10] / 1e3);
    }
    Ok(())
}

/// Devices with a folder in `/sys/block` (partitions have none) and a size: a loop or zram device that is not set up has size 0.
fn whole_devices(reader: &mut Reader) -> Result<HashSet<String>, ReadError> {
    let folder = reader.proc.path(Tree::Sys, "block");
    let wrap = |e: std::io::Error| ReadError(format!("{}: {e}", folder.display()));
    let mut devices = HashSet::new();
    for entry in std::fs::read_dir(&folder).map_err(wrap)? {
        let name = entry.map_err(wrap)?.file_name().to_string_lossy().into_owned();
        let size = reader.proc.read_in(Tree::Sys, &format!("block/{name}/size"), &mut reader.buffer);
        // A device may go while we look: then it has no size to read, and is none.
        if size.is_ok_and(|sectors| sectors.trim() != "0") {
            // A slash of the device's name is written `!` in sysfs.
            devices.insert(name.replace('!', "/"));
        }
    }
    Ok(devices)
}
