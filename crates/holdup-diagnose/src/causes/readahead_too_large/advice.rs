//! What to do about a readahead that is too large: the window that fits a useful read.

use crate::causes::{bytes, capital};
use crate::change::host;
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit};
use crate::instant::facts::Facts;
use crate::resources::disk::PLAIN_READ_BYTES;
use crate::resources::mounts;
use holdup_signals::host::disk_waits::{DiskWaits, Wait};
use holdup_signals::host::threads::Place;
use holdup_signals::host::useful_reads::UsefulReads;
use holdup_signals::{Disk, Mount, View};

/// Bytes of the sectors that `blockdev --setra` counts.
const SECTOR_BYTES: f64 = 512.0;

pub(super) fn fixes(view: &View<'_>, disk: &Disk, useful: &UsefulReads, waits: &DiskWaits) -> Vec<Fix> {
    let window_kib = useful.window_bytes.map(|bytes| bytes / 1024.0);
    let why = format!("a useful read has {}", bytes(useful.useful_each()));
    let smaller = smaller_window(view, &disk.device, (window_kib, fitting_bytes(useful) / 1024.0), &why);
    let of_disk = |mount: &Mount| mounts::writes_access_times(mount) && view.whole_device(&mount.device) == disk.device;
    // Each of the reads writes as well, which a store that only reads never asked for.
    let mounted = mounts::on_devices(view).unwrap_or_default().into_iter().filter(of_disk);
    let quiet: Vec<Fix> = mounted.map(|mount| mounts::without_access_times(view, &mount)).collect();
    [smaller].into_iter().chain(quiet).chain(waits.place(&[Wait::Fault]).map(random_maps)).collect()
}

/// Only what maps its files can declare them random; LMDB has a word for it.
fn random_maps(place: &Place) -> Fix {
    let is_lmdb = place.path.as_deref().is_some_and(|path| path.ends_with(".mdb"));
    let how = if is_lmdb { "LMDB: open the environment with MDB_NORDAHEAD" } else { "MADV_RANDOM on the maps" };
    Fix::advice(
        format!(
            "Or have {} declare its mapped files random, which leaves other files' readahead alone ({how}).",
            place.process
        ),
        Some("Needs a change of the store's configuration or code, and a restart."),
    )
}

/// By the facts of one instant: a window of a page or two for the disk, and mounts on it that write for each
/// read.
pub(super) fn of_facts(facts: &Facts<'_>) -> Vec<Fix> {
    let window = facts.disk.as_ref().map(|disk| (disk, facts.readahead(&disk.device)));
    let smaller = window.map(|(disk, window)| {
        let from = window.map(|(bytes, _)| bytes / 1024.0);
        let to = PLAIN_READ_BYTES / 1024.0;
        smaller_window(&facts.view, &disk.device, (from, to), "a random read needs a page or two")
    });
    let strict = facts.strict_mounts();
    let mounts = strict.iter().map(|mount| mounts::without_access_times(&facts.view, mount));
    smaller.into_iter().chain(mounts).collect()
}

/// A window of a useful read, where the device's is larger; both in KiB.
fn smaller_window(view: &View<'_>, device: &str, (from, to): (Option<f64>, f64), why: &str) -> Fix {
    let name = format!("the readahead of {device}");
    // The kernel reads whole pages.
    let bounds = Bounds { least: 4.0, most: 65_536.0 };
    match SettingChange::new(Direction::Lower, &name, Unit::Kibibytes, from, to, bounds) {
        Ok(change) => {
            let (kb, sectors) = (change.to, change.to * 1024.0 / SECTOR_BYTES);
            let steps = host::Place::find(view, "host").machine(
                format!("blockdev --setra {sectors:.0} /dev/{device}"),
                format!("echo 'ACTION==\"add|change\", KERNEL==\"{device}\", ATTR{{queue/read_ahead_kb}}=\"{kb:.0}\"' > /etc/udev/rules.d/60-readahead-{device}.rules"),
            );
            change.fix(
                why,
                steps,
                "Applies also to files opened later. Sequential scans, dumps and backups of this device become slower.",
            )
        }
        Err(stay) => stay.fix(&format!("{}.", capital(why))),
    }
}

/// Smallest power of two in KiB that holds a useful read; at least a page.
pub(super) fn fitting_bytes(useful: &UsefulReads) -> f64 {
    let kb = (useful.useful_each() / 1024.0).max(4.0);
    // A useful read is a page, and rarely slightly more: that still counts as a page.
    2_f64.powi((kb * 0.95).log2().ceil() as i32) * 1024.0
}
