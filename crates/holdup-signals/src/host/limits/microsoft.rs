//! Microsoft's figures for Premium SSD, by the name of the size (`P30`), or by type and size in
//! bytes. They do not include what a virtual machine may do in all: the smaller of the two limits
//! holds.

use super::{Documented, GIB};
use crate::host::throttle::Unit;

const SOURCE: &str = "Azure documentation, Premium SSD size, as of 2024";

/// A size: its name, GiB, operations and MB per second, and those while credits last (half an hour
/// at most).
type Size = (&'static str, f64, f64, f64, Option<(f64, f64)>);

const BURST: Option<(f64, f64)> = Some((3_500.0, 170.0));

const SIZES: &[Size] = &[
    ("P1", 4.0, 120.0, 25.0, BURST),
    ("P2", 8.0, 120.0, 25.0, BURST),
    ("P3", 16.0, 120.0, 25.0, BURST),
    ("P4", 32.0, 120.0, 25.0, BURST),
    ("P6", 64.0, 240.0, 50.0, BURST),
    ("P10", 128.0, 500.0, 100.0, BURST),
    ("P15", 256.0, 1_100.0, 125.0, BURST),
    ("P20", 512.0, 2_300.0, 150.0, BURST),
    ("P30", 1_024.0, 5_000.0, 200.0, None),
    ("P40", 2_048.0, 7_500.0, 250.0, None),
    ("P50", 4_096.0, 7_500.0, 250.0, None),
    ("P60", 8_192.0, 16_000.0, 500.0, None),
    ("P70", 16_384.0, 18_000.0, 750.0, None),
    ("P80", 32_767.0, 20_000.0, 900.0, None),
];

/// Limits of a disk. `kind` is the size's name, or a type as `az disk show` prints it
/// (`Premium_LRS`) with the next size above `size` bytes. Empty if neither matches.
pub(super) fn of_disk(kind: &str, size: Option<f64>) -> Vec<Documented> {
    let is_premium = ["Premium_LRS", "Premium_ZRS"].contains(&kind);
    let fits = |of: &&Size| if is_premium { size.is_some_and(|size| size <= of.1 * GIB) } else { of.0 == kind };
    let Some((name, _, operations, megabytes, burst)) = SIZES.iter().find(fits) else { return Vec::new() };
    let new = |which: &str, unit, limit| Documented::volume(format!("{which} of the {name} disk"), unit, limit, SOURCE);
    let mut limits = vec![new("most", Unit::Operations, *operations), new("most", Unit::Bytes, megabytes * 1e6)];
    if let Some((operations, megabytes)) = burst {
        limits.push(new("burst", Unit::Operations, *operations));
        limits.push(new("burst", Unit::Bytes, megabytes * 1e6));
    }
    limits
}

/// The smallest size that sustains more than `needed` bytes or operations per second, and what it
/// does.
pub(super) fn next_size(kind: &str, unit: Unit, needed: f64) -> Option<(String, f64)> {
    SIZES.iter().find(|size| size.0 == kind)?;
    let limit = |size: &Size| if unit == Unit::Bytes { size.3 * 1e6 } else { size.2 };
    let above = SIZES.iter().find(|size| limit(size) > (1.0 + super::NEAR) * needed)?;
    Some((above.0.to_owned(), limit(above)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_known_by_its_name_or_has_the_size_above() {
        assert_eq!(of_disk("P20", None).iter().map(|d| d.limit).collect::<Vec<_>>(), [2_300.0, 150e6, 3_500.0, 170e6]);
        assert_eq!(of_disk("Premium_LRS", Some(600.0 * GIB)), of_disk("P30", None));
        assert_eq!(of_disk("Standard_LRS", Some(600.0 * GIB)), []);
        assert_eq!(next_size("P20", Unit::Bytes, 220e6), Some(("P40".to_owned(), 250e6)));
        assert_eq!(next_size("P80", Unit::Bytes, 900e6), None);
    }
}
