//! CPU shares as sysstat's tools, vmstat and top name them, and what the collector calls them.

/// Names of columns and fields, and the collector's mode.
const NAMES: [(&[&str], &str); 8] = [
    (&["%user", "%usr", "us", "user", "usr"], "user"),
    (&["%nice", "ni", "nice"], "nice"),
    (&["%system", "%sys", "sy", "system", "sys"], "system"),
    (&["%idle", "id", "idle"], "idle"),
    (&["%iowait", "wa", "iowait"], "iowait"),
    (&["%irq", "hi", "irq"], "interrupt"),
    (&["%soft", "si", "soft"], "softirq"),
    (&["%steal", "st", "steal"], "steal"),
];

/// Guests' time is part of user time in the kernel's file, but not in sysstat's columns.
const GUESTS: [(&str, &str); 6] = [
    ("%guest", "user"),
    ("%gnice", "nice"),
    ("gu", "user"),
    ("guest", "user"),
    ("gnice", "nice"),
    ("guest_nice", "nice"),
];

/// The collector's mode of a name.
pub(super) fn mode(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|(names, _)| names.contains(&name)).map(|(_, mode)| *mode)
}

/// The shares of a row, percent, by the collector's mode. vmstat's `si` is another thing, so its
/// reader leaves that out.
pub(super) fn shares(number: impl Fn(&[&str]) -> Option<f64>, left_out: &[&str]) -> Vec<(&'static str, f64)> {
    let known = NAMES.iter().filter(|(_, mode)| !left_out.contains(mode));
    let of_modes = known.filter_map(|(names, mode)| Some((*mode, number(names)?)));
    of_modes.chain(GUESTS.iter().filter_map(|(name, mode)| Some((*mode, number(&[name])?)))).collect()
}
