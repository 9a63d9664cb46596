//! What a disk's reads bring beside the pages that were asked for: readahead, and settings by which reads
//! cost more than they need.

use holdup_recording::Labels;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Disk, Mount};

use super::facts::Facts;
use crate::resources::disk::PLAIN_READ_BYTES;
use crate::resources::mounts;
use crate::strength::Strength;

/// A readahead of this many bytes reads data that random access does not need.
const WIDE_BYTES: f64 = 64.0 * 1024.0;

/// Pages of databases, bytes: reads of whole ones have these sizes.
const PAGES: [f64; 3] = [4_096.0, 8_192.0, 16_384.0];

/// How near (0-1) to a page the mean of reads of whole pages is.
const NEAR: f64 = 0.03;

/// From this share (0-1) of iowait on, threads wait for a disk whose figures are missing.
const WAITED: f64 = 0.2;

/// A mean since boot of as much utilization (0-1) has no room for another present.
const ALWAYS: f64 = 0.99;

impl Facts<'_> {
    /// What a sign by the disk's figures is worth: means since boot may hide the present.
    pub fn of_disk(&self, strength: Strength) -> Strength {
        const MEAN: f64 = 0.7;
        let is_always = self.disk.as_ref().is_some_and(|disk| disk.utilization >= ALWAYS);
        if self.is_disk_mean && !is_always { strength * MEAN } else { strength }
    }

    /// Whether a disk is waited for; none if disks were seen to have time left.
    pub fn is_disk_waited_for(&self) -> Option<bool> {
        match (&self.disk, &self.idle) {
            (Some(_), _) => self.full_disk().map(|_| true),
            (None, Some((_, waiting, _))) => (*waiting >= WAITED).then_some(true),
            (None, None) => Some(false),
        }
    }

    /// The readahead of `disk`, if it is wide enough to read data that random access does not need.
    pub fn wide_readahead(&self, disk: &Disk) -> Option<(f64, Evidence)> {
        self.readahead(&disk.device).filter(|(window, _)| *window >= WIDE_BYTES)
    }

    /// The wide readahead of the only device whose window is known.
    pub fn only_wide_readahead(&self) -> Option<(f64, Evidence)> {
        let settings = self.view.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
        let of = |name: &str| Some(name.strip_prefix("block.")?.strip_suffix(".read_ahead_kb")?.to_owned());
        let mut devices: Vec<String> = settings.iter().filter_map(|row| of(&row.name)).collect();
        devices.dedup();
        let [device] = devices.as_slice() else { return None };
        self.readahead(device).filter(|(window, _)| *window >= WIDE_BYTES)
    }

    /// The window of a device's readahead, bytes, with its setting.
    pub fn readahead(&self, device: &str) -> Option<(f64, Evidence)> {
        let settings = self.view.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
        let name = format!("block.{device}.read_ahead_kb");
        let kib: f64 = settings.iter().rev().find(|row| row.name == name)?.value.parse().ok()?;
        let text = format!("the readahead of {device} is {kib:.0} KiB");
        let labels = Labels::new([("name", name.as_str())]);
        let evidence =
            Evidence::new("settings", "value", labels, self.view.window, format!("{kib:.0} KiB"), "8 to 16 KiB", text);
        Some((kib * 1024.0, evidence))
    }

    /// The part (0-1) of what `disk` read beyond pages of a database: readahead may have brought it. 0 if
    /// it reads whole pages, or its window is known to be narrow.
    pub fn beyond_pages(&self, disk: &Disk) -> f64 {
        let each = disk.read.bytes_each();
        let is_page = PAGES.iter().any(|page| (each / page - 1.0).abs() <= NEAR);
        let is_narrow = self.readahead(&disk.device).is_some_and(|(window, _)| window < WIDE_BYTES);
        if is_page || is_narrow || each <= PLAIN_READ_BYTES { 0.0 } else { 1.0 - PLAIN_READ_BYTES / each }
    }

    /// Mounts whose options say that each read of a file writes its access time; of the disk that was seen,
    /// if one was. Older tools leave the default out, so a missing option says nothing.
    pub fn strict_mounts(&self) -> Vec<Mount> {
        let mut all = mounts::on_devices(&self.view).unwrap_or_default();
        let is_said = |mount: &Mount| ["strictatime", "atime"].iter().any(|option| mount.has_option(option));
        let is_on = |mount: &Mount| self.disk.as_ref().is_none_or(|disk| mount.device.starts_with(&disk.device));
        all.retain(|mount| mounts::writes_access_times(mount) && is_said(mount) && is_on(mount));
        all
    }
}
