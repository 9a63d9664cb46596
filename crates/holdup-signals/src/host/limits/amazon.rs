//! Amazon's figures: what instances may do with their volumes, and what volumes may do.

mod earlier;

use std::sync::LazyLock;

pub(super) use self::earlier::{is_before_the_raise, of_earlier_instance};
use super::{Documented, GIB, MIB, Place};
use crate::host::throttle::Unit;

/// Where instances' figures come from: the command's output for each type, as published in a copy.
const INSTANCES: &str = "Amazon EC2, describe-instance-types, as of October 2026";

/// Where volumes' figures come from. The page lists M6in and R6in (November 2022).
const VOLUMES: &str = "Amazon EC2 user guide, General Purpose SSD and Provisioned IOPS SSD volumes, as of early 2023";

/// Size from which RDS stripes a database over several volumes, bytes: a volume's own limits are
/// then not the database's.
const STRIPED_FROM: f64 = 400.0 * GIB;

/// An instance type: baseline MB/s and operations per second, and the burst (for at least 30
/// minutes in 24 hours where that is more).
type Row = (&'static str, f64, f64, f64, f64);

/// From [`INSTANCES`]: MB are 10⁶ bytes, with requests of 128 KiB; operations with 16 KiB.
static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("amazon/instances.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(row).collect()
});

fn row(line: &'static str) -> Option<Row> {
    let (class, figures) = line.split_once('\t')?;
    let mut figures = figures.split('\t').map(str::parse);
    let mut next = || figures.next()?.ok();
    Some((class, next()?, next()?, next()?, next()?))
}

/// Families that have the same figures, size by size.
const SAME: &[(&str, &str)] = &[
    ("m5d", "m5"),
    ("m5dn", "m5"),
    ("m5n", "m5"),
    ("m6gd", "m6g"),
    ("m6id", "m6i"),
    ("m6in", "r6in"),
    ("m7gd", "m7g"),
    ("r5", "m5"),
    ("r5d", "m5"),
    ("r5dn", "m5"),
    ("r5n", "m5"),
    ("r6g", "m6g"),
    ("r6gd", "m6g"),
    ("r6i", "m6i"),
    ("r6id", "m6i"),
    ("r7g", "m7g"),
    ("r7gd", "m7g"),
    ("r7i", "m7i"),
    ("r8g", "m8g"),
];

/// The family in the table and the size of an instance class.
fn family_and_size(class: &str) -> Option<(&str, &str)> {
    let (family, size) = class.trim_start_matches("db.").split_once('.')?;
    Some((SAME.iter().find(|(of, _)| *of == family).map_or(family, |(_, same)| same), size))
}

/// The class of the same family with the next higher baseline than `baseline` bytes or operations
/// per second, and that baseline. The name has `db.` if `class` has it.
pub(super) fn next_class(class: &str, unit: Unit, baseline: f64) -> Option<(String, f64)> {
    let (family, _) = family_and_size(class)?;
    let of_family = |row: &&Row| row.0.split_once('.').is_some_and(|(of, _)| of == family);
    let limit = |row: &Row| if unit == Unit::Bytes { row.1 * 1e6 } else { row.2 };
    let above = TABLE.iter().filter(of_family).filter(|row| limit(row) > (1.0 + super::NEAR) * baseline);
    let row = above.min_by(|a, b| limit(a).total_cmp(&limit(b)))?;
    let (own, (_, size)) = (class.rsplit_once('.')?.0, row.0.split_once('.')?);
    Some((format!("{own}.{size}"), limit(row)))
}

/// Limits of an instance class, with or without a leading `db.`.
pub fn of_instance(class: &str) -> Vec<Documented> {
    let Some((family, size)) = family_and_size(class) else { return Vec::new() };
    let of_class = |row: &&Row| row.0.split_once('.') == Some((family, size));
    TABLE.iter().find(of_class).map_or_else(Vec::new, |row| limits_of(row, class, INSTANCES))
}

/// The limits of a row, as those of the instance `named`.
fn limits_of(
    (_, mb, operations, most_mb, most_operations): &Row,
    named: &str,
    source: &'static str,
) -> Vec<Documented> {
    let place = Place::Instance;
    let new = |which: &str, unit, limit| Documented { of: format!("{which} of {named}"), place, unit, limit, source };
    let mut limits = vec![new("baseline", Unit::Bytes, mb * 1e6), new("baseline", Unit::Operations, *operations)];
    if most_mb > mb {
        limits.push(new("burst", Unit::Bytes, most_mb * 1e6));
        limits.push(new("burst", Unit::Operations, *most_operations));
    }
    limits
}

/// Limits of one EBS volume of `kind` (gp2, gp3, io1, io2), by its size in bytes, provisioned
/// operations and bytes per second, as far as known.
pub fn of_volume(kind: &str, size: Option<f64>, iops: Option<f64>, throughput: Option<f64>) -> Vec<Documented> {
    let mut limits: Vec<Documented> = Vec::new();
    let mut add = |which: &str, unit, limit: Option<f64>| {
        let of = format!("{which} of the {kind} volume");
        limits.extend(limit.map(|limit| Documented::volume(of, unit, limit, VOLUMES)));
    };
    let is_striped = size.is_some_and(|size| size >= STRIPED_FROM);
    match kind {
        "gp2" => {
            let gib = size.map(|size| size / GIB);
            // A volume has three per GiB; striping does not change the sum.
            let most = if is_striped { 64_000.0 } else { 16_000.0 };
            let baseline = gib.map(|gib| (3.0 * gib).clamp(100.0, most));
            add("baseline", Unit::Operations, baseline);
            add("burst", Unit::Operations, baseline.filter(|b| *b < 3_000.0 && !is_striped).map(|_| 3_000.0));
            let bytes = gib.filter(|_| !is_striped).map(|gib| if gib <= 170.0 { 128.0 * MIB } else { 250.0 * MIB });
            add("most", Unit::Bytes, throughput.or(bytes));
        }
        "gp3" => {
            let included = |amount: f64| Some(amount).filter(|_| !is_striped);
            add("baseline", Unit::Operations, iops.or(included(3_000.0)));
            add("baseline", Unit::Bytes, throughput.or(included(125.0 * MIB)));
        }
        "io1" | "io2" => {
            add("provisioned rate", Unit::Operations, iops);
            // Up to 32,000: 256 KiB each, 500 MiB/s at most; beyond, 16 KiB each.
            let bytes = iops.filter(|iops| *iops <= 64_000.0 && !is_striped).map(|iops| {
                if iops <= 32_000.0 { (iops * 256.0 * 1024.0).min(500.0 * MIB) } else { iops * 16.0 * 1024.0 }
            });
            // io2 depends on the instance: Block Express gives 0.256 MiB/s per operation, up to
            // 4,000 MiB/s.
            add("most", Unit::Bytes, throughput.or(bytes.filter(|_| kind == "io1")));
        }
        _ => {}
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_has_no_burst_below_a_baseline() {
        assert_eq!(TABLE.len(), include_str!("amazon/instances.tsv").lines().count() - 1, "every line is a row");
        for row in TABLE.iter() {
            assert!(row.3 >= row.1 && row.4 >= row.2, "{}", row.0);
            assert_eq!(TABLE.iter().filter(|r| r.0 == row.0).count(), 1, "{}", row.0);
        }
        let is_family = |name: &str| TABLE.iter().any(|row| row.0.split_once('.').is_some_and(|(of, _)| of == name));
        assert!(SAME.iter().all(|(other, same)| is_family(same) && !is_family(other)));
    }

    #[test]
    fn families_of_a_kind_have_the_same_figures() {
        for class in ["db.r5dn.large", "m5.large", "r5.large"] {
            assert_eq!(of_instance(class)[0].limit, 81.25e6, "{class}");
        }
        assert_eq!(of_instance("db.r7g.2xlarge")[0].limit, 312.5e6);
        assert_eq!(next_class("db.r7g.2xlarge", Unit::Bytes, 312.5e6), Some(("db.r7g.4xlarge".to_owned(), 625e6)));
        assert_eq!(next_class("r5.large", Unit::Operations, 6_000.0), Some(("r5.2xlarge".to_owned(), 12_000.0)));
        assert_eq!(of_instance("db.r99.large"), []);
    }
}
