//! Whole block devices in use: `/proc/diskstats`. Partitions are left out. A loop, device-mapper or
//! RAID device appears beside the disks beneath it, so devices must not be added up (settings say
//! which lies on which).

use std::collections::HashSet;

use holdup_recording::Labels;
use holdup_recording::layouts::diskstats::NUMBERS;

use super::Reader;
use crate::ReadError;
use crate::proc::Tree;
use crate::proc::diskstats;
use crate::reading::Out;

/// Adds the numbers of every device.
pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let devices = whole_devices(reader)?;
    out.begin();
    let text = reader.proc.read_lines("diskstats", &mut reader.buffer)?;
    for line in text.lines() {
        let device = diskstats::device(line);
        let device = device.ok_or_else(|| ReadError("/proc/diskstats: a line without a device".to_owned()))?;
        if devices.contains(device) {
            let numbers = diskstats::numbers(line)?;
            for (place, metric, direction, unit) in NUMBERS {
                let labels = Labels::new([("device", device)].into_iter().chain(direction.map(|it| ("direction", it))));
                out.put_known(&labels, [(metric, numbers[place].map(|number| number as f64 / unit))]);
            }
        }
    }
    Ok(())
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
