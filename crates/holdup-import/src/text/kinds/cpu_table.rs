//! CPU shares as sysstat's tools and vmstat name them, and what the collector calls them.

use super::super::columns::Values;

/// Column names and the collector's mode.
const NAMES: [(&[&str], &str); 8] = [
    (&["%user", "%usr", "us"], "user"),
    (&["%nice", "ni"], "nice"),
    (&["%system", "%sys", "sy"], "system"),
    (&["%idle", "id"], "idle"),
    (&["%iowait", "wa"], "iowait"),
    (&["%irq", "hi"], "interrupt"),
    (&["%soft", "si"], "softirq"),
    (&["%steal", "st"], "steal"),
];

/// The shares of a row, percent, by the collector's mode. vmstat's `si` is another thing, so its
/// reader leaves that out.
pub(super) fn shares(row: &Values<'_, '_>, left_out: &[&str]) -> Vec<(&'static str, f64)> {
    let known = NAMES.iter().filter(|(_, mode)| !left_out.contains(mode));
    let of_modes = known.filter_map(|(names, mode)| Some((*mode, row.number(names)?)));
    // Guests' time is part of user time in the kernel's file, but not in sysstat's columns.
    let guests = [("%guest", "user"), ("%gnice", "nice"), ("gu", "user")];
    let guests = guests.iter().filter_map(|(name, mode)| Some((*mode, row.number(&[name])?)));
    of_modes.chain(guests).collect()
}
