//! Google's figures for Persistent Disk, by type and size. They do not include what a machine type
//! may do in all: the smaller of the two limits holds.

use super::{Documented, GIB, MIB};
use crate::host::throttle::Unit;

const SOURCE: &str = "Google Compute Engine documentation, Persistent Disk performance, as of 2025";

/// A type of disk. Figures apply to reads and to writes separately; where the two differ, this is
/// the smaller.
struct Kind {
    name: &'static str,
    /// Operations per second: fixed part, per GiB, and at most on any machine.
    operations: (f64, f64, f64),
    /// MiB per second: fixed part, per GiB, and at most on any machine.
    mebibytes: (f64, f64, f64),
}

const KINDS: &[Kind] = &[
    Kind { name: "pd-standard", operations: (0.0, 0.75, 7_500.0), mebibytes: (0.0, 0.12, 400.0) },
    Kind { name: "pd-balanced", operations: (3_000.0, 6.0, 80_000.0), mebibytes: (140.0, 0.28, 1_200.0) },
    Kind { name: "pd-ssd", operations: (6_000.0, 30.0, 100_000.0), mebibytes: (240.0, 0.48, 1_200.0) },
];

/// Limits of a disk of type `kind` and `size` bytes; empty if the type is not Google's or the size
/// is unknown.
pub(super) fn of_disk(kind: &str, size: Option<f64>) -> Vec<Documented> {
    let (Some(disk), Some(size)) = (KINDS.iter().find(|k| k.name == kind), size) else { return Vec::new() };
    let gib = size / GIB;
    let limit = |(always, each, most): (f64, f64, f64)| (always + each * gib).min(most);
    let new = |unit, limit| Documented::volume(format!("most of the {kind} disk"), unit, limit, SOURCE);
    vec![new(Unit::Operations, limit(disk.operations)), new(Unit::Bytes, limit(disk.mebibytes) * MIB)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_grows_with_its_size_to_what_a_machine_can_take() {
        let limits = |kind, gib: f64| -> Vec<f64> { of_disk(kind, Some(gib * GIB)).iter().map(|d| d.limit).collect() };
        assert_eq!(limits("pd-balanced", 500.0), [6_000.0, 280.0 * MIB]);
        assert_eq!(limits("pd-ssd", 10_000.0), [100_000.0, 1_200.0 * MIB]);
        assert_eq!(limits("pd-standard", 1_000.0), [750.0, 120.0 * MIB]);
        assert!(limits("gp3", 500.0).is_empty());
        assert_eq!(of_disk("pd-ssd", None), []);
    }
}
