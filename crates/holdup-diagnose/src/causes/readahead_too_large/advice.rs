//! What to do about a readahead that is too large: the window that fits a useful read.

use crate::causes::bytes;
use crate::change::host::Place;
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit};
use holdup_signals::host::useful_reads::UsefulReads;
use holdup_signals::{Disk, View};

/// Bytes of the sectors that `blockdev --setra` counts.
const SECTOR_BYTES: f64 = 512.0;

pub(super) fn fixes(view: &View<'_>, disk: &Disk, useful: &UsefulReads) -> Vec<Fix> {
    vec![
        smaller_window(view, disk, useful),
        Fix {
            text: "Or have the store declare its reads random, which leaves other files' readahead alone: MADV_RANDOM on the map (LMDB: open the environment with MDB_NORDAHEAD)."
                .to_owned(),
            command: None,
            keep: None,
            risk: Some("Needs a change of the store's configuration or code, and a restart.".to_owned()),
        },
    ]
}

/// A window of a useful read, where the device's is larger.
fn smaller_window(view: &View<'_>, disk: &Disk, useful: &UsefulReads) -> Fix {
    let device = &disk.device;
    let name = format!("the readahead of {device}");
    let from = useful.window_bytes.map(|bytes| bytes / 1024.0);
    // The kernel reads whole pages.
    let bounds = Bounds { least: 4.0, most: 65_536.0 };
    let to = fitting_bytes(useful) / 1024.0;
    match SettingChange::new(Direction::Lower, &name, Unit::Kibibytes, from, to, bounds) {
        Ok(change) => {
            let (kb, sectors) = (change.to, change.to * 1024.0 / SECTOR_BYTES);
            let steps = Place::find(view, "host").machine(
                format!("blockdev --setra {sectors:.0} /dev/{device}"),
                format!("echo 'ACTION==\"add|change\", KERNEL==\"{device}\", ATTR{{queue/read_ahead_kb}}=\"{kb:.0}\"' > /etc/udev/rules.d/60-readahead-{device}.rules"),
            );
            change.fix(
                &format!("a useful read has {}", bytes(useful.useful_each())),
                steps,
                "Applies also to files opened later. Sequential scans, dumps and backups of this device become slower.",
            )
        }
        Err(stay) => stay.fix(&format!("A useful read of {device} has {}.", bytes(useful.useful_each()))),
    }
}

/// Smallest power of two in KiB that holds a useful read; at least a page.
pub(super) fn fitting_bytes(useful: &UsefulReads) -> f64 {
    let kb = (useful.useful_each() / 1024.0).max(4.0);
    // A useful read is a page, and rarely slightly more: that still counts as a page.
    2_f64.powi((kb * 0.95).log2().ceil() as i32) * 1024.0
}
