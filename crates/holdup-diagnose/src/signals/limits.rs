//! What clouds allow: a table of ours of the throughput and operations a second that instances and volumes may have, with the
//! documents and their dates. A level is never matched by its number alone: only where the instance or the volume is known, and
//! then a level that is none of the documented is reported as just that.
//!
//! Figures that no document at hand gives (families after 2021, volumes that a database service stripes) are left out: no limit is
//! better than a wrong one.

use super::View;
use super::throttle::Unit;

/// A level is a documented one if it is as near as this (0-1): EBS is designed to deliver 90 % of what it promises most of the
/// time, and a minute's average of a busy volume misses by a few per cent.
const NEAR: f64 = 0.05;

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;

/// Where instances' figures come from. The page lists m6i (August 2021) and not yet r6i (November 2021).
const INSTANCES: &str = "Amazon EC2 user guide, Amazon EBS-optimized instances, as of autumn 2021";

/// Where volumes' figures come from. The page lists M6in and R6in (November 2022).
const VOLUMES: &str = "Amazon EC2 user guide, General Purpose SSD and Provisioned IOPS SSD volumes, as of early 2023";

/// What `describe-instance-types` says, as an import has it.
const DESCRIBED: [(&str, &str, Unit); 4] = [
    ("instance.ebs_baseline_throughput_bytes_per_second", "baseline", Unit::Bytes),
    ("instance.ebs_baseline_iops", "baseline", Unit::Operations),
    ("instance.ebs_burst_throughput_bytes_per_second", "burst", Unit::Bytes),
    ("instance.ebs_burst_iops", "burst", Unit::Operations),
];

/// Size from which on RDS stripes a database over several volumes, bytes: then a volume's own limits are not the database's.
const STRIPED_FROM: f64 = 400.0 * GIB;

/// An instance type: baseline MB/s and operations a second, and the most (for at least 30 minutes in 24 hours where that is more).
type Row = (&'static str, f64, f64, f64, f64);

/// By [`INSTANCES`]: MB are 10⁶ bytes, measured there with 128 KiB; operations with 16 KiB.
const TABLE: &[Row] = &[
    ("m5.large", 81.25, 3_600.0, 593.75, 18_750.0),
    ("m5.xlarge", 143.75, 6_000.0, 593.75, 18_750.0),
    ("m5.2xlarge", 287.5, 12_000.0, 593.75, 18_750.0),
    ("m5.4xlarge", 593.75, 18_750.0, 593.75, 18_750.0),
    ("m5.8xlarge", 850.0, 30_000.0, 850.0, 30_000.0),
    ("m5.12xlarge", 1_187.5, 40_000.0, 1_187.5, 40_000.0),
    ("m5.16xlarge", 1_700.0, 60_000.0, 1_700.0, 60_000.0),
    ("m5.24xlarge", 2_375.0, 80_000.0, 2_375.0, 80_000.0),
    ("m6g.large", 78.75, 3_600.0, 593.75, 20_000.0),
    ("m6g.xlarge", 148.5, 6_000.0, 593.75, 20_000.0),
    ("m6g.2xlarge", 296.875, 12_000.0, 593.75, 20_000.0),
    ("m6g.4xlarge", 593.75, 20_000.0, 593.75, 20_000.0),
    ("m6g.8xlarge", 1_187.5, 40_000.0, 1_187.5, 40_000.0),
    ("m6g.12xlarge", 1_781.25, 50_000.0, 1_781.25, 50_000.0),
    ("m6g.16xlarge", 2_375.0, 80_000.0, 2_375.0, 80_000.0),
    ("m6i.large", 81.25, 3_600.0, 1_250.0, 40_000.0),
    ("m6i.xlarge", 156.25, 6_000.0, 1_250.0, 40_000.0),
    ("m6i.2xlarge", 312.5, 12_000.0, 1_250.0, 40_000.0),
    ("m6i.4xlarge", 625.0, 20_000.0, 1_250.0, 40_000.0),
    ("m6i.8xlarge", 1_250.0, 40_000.0, 1_250.0, 40_000.0),
    ("m6i.12xlarge", 1_875.0, 60_000.0, 1_875.0, 60_000.0),
    ("m6i.16xlarge", 2_500.0, 80_000.0, 2_500.0, 80_000.0),
    ("m6i.24xlarge", 3_750.0, 120_000.0, 3_750.0, 120_000.0),
    ("m6i.32xlarge", 5_000.0, 160_000.0, 5_000.0, 160_000.0),
    ("r5.large", 81.25, 3_600.0, 593.75, 18_750.0),
    ("r5.xlarge", 143.75, 6_000.0, 593.75, 18_750.0),
    ("r5.2xlarge", 287.5, 12_000.0, 593.75, 18_750.0),
    ("r5.4xlarge", 593.75, 18_750.0, 593.75, 18_750.0),
    ("r5.8xlarge", 850.0, 30_000.0, 850.0, 30_000.0),
    ("r5.12xlarge", 1_187.5, 40_000.0, 1_187.5, 40_000.0),
    ("r5.16xlarge", 1_700.0, 60_000.0, 1_700.0, 60_000.0),
    ("r5.24xlarge", 2_375.0, 80_000.0, 2_375.0, 80_000.0),
    ("r5b.large", 156.25, 5_417.0, 1_250.0, 43_333.0),
    ("r5b.xlarge", 312.5, 10_833.0, 1_250.0, 43_333.0),
    ("r5b.2xlarge", 625.0, 21_667.0, 1_250.0, 43_333.0),
    ("r5b.4xlarge", 1_250.0, 43_333.0, 1_250.0, 43_333.0),
    ("r5b.8xlarge", 2_500.0, 86_667.0, 2_500.0, 86_667.0),
    ("r5b.12xlarge", 3_750.0, 130_000.0, 3_750.0, 130_000.0),
    ("r5b.16xlarge", 5_000.0, 173_333.0, 5_000.0, 173_333.0),
    ("r5b.24xlarge", 7_500.0, 260_000.0, 7_500.0, 260_000.0),
    ("r6g.large", 78.75, 3_600.0, 593.75, 20_000.0),
    ("r6g.xlarge", 148.5, 6_000.0, 593.75, 20_000.0),
    ("r6g.2xlarge", 296.875, 12_000.0, 593.75, 20_000.0),
    ("r6g.4xlarge", 593.75, 20_000.0, 593.75, 20_000.0),
    ("r6g.8xlarge", 1_187.5, 40_000.0, 1_187.5, 40_000.0),
    ("r6g.12xlarge", 1_781.25, 50_000.0, 1_781.25, 50_000.0),
    ("r6g.16xlarge", 2_375.0, 80_000.0, 2_375.0, 80_000.0),
    ("t3.micro", 10.86, 500.0, 260.57, 11_800.0),
    ("t3.small", 21.71, 1_000.0, 260.57, 11_800.0),
    ("t3.medium", 43.43, 2_000.0, 260.57, 11_800.0),
    ("t3.large", 86.86, 4_000.0, 347.5, 15_700.0),
    ("t3.xlarge", 86.86, 4_000.0, 347.5, 15_700.0),
    ("t3.2xlarge", 86.86, 4_000.0, 347.5, 15_700.0),
    ("t4g.micro", 8.0, 500.0, 325.75, 11_800.0),
    ("t4g.small", 16.0, 1_000.0, 325.75, 11_800.0),
    ("t4g.medium", 32.0, 2_000.0, 325.75, 11_800.0),
    ("t4g.large", 64.0, 4_000.0, 434.37, 15_700.0),
    ("t4g.xlarge", 128.0, 4_000.0, 434.37, 15_700.0),
    ("t4g.2xlarge", 256.0, 4_000.0, 434.37, 15_700.0),
];

/// Families that the same page gives the same figures size by size.
const SAME: &[(&str, &str)] = &[
    ("r5d.", "r5."),
    ("r5n.", "r5."),
    ("r5dn.", "r5."),
    ("m5d.", "m5."),
    ("m5n.", "m5."),
    ("m5dn.", "m5."),
    ("r6gd.", "r6g."),
    ("m6gd.", "m6g."),
];

/// A limit that a document gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Documented {
    /// What it is of, e.g. `baseline of db.r5.2xlarge`.
    pub of: String,
    /// What is limited.
    pub unit: Unit,
    /// Per second: bytes or operations.
    pub limit: f64,
    /// The document and its date, or the setting.
    pub source: &'static str,
}

/// What is known of the instance and volume that a database runs on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The instance's class or the volume's type, if either is known.
    pub what: Option<String>,
    /// Limits of it.
    pub limits: Vec<Documented>,
}

impl Known {
    /// The documented limit that `level` is, if it is one.
    pub fn matching(&self, unit: Unit, level: f64) -> Option<&Documented> {
        let off = |d: &Documented| (d.limit - level).abs() / d.limit;
        let near = self.of_unit(unit).filter(|d| off(d) <= NEAR);
        near.min_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// The limits of that unit.
    pub fn of_unit(&self, unit: Unit) -> impl Iterator<Item = &Documented> {
        self.limits.iter().filter(move |d| d.unit == unit)
    }

    /// The size of the same family with the next higher baseline than `baseline` bytes a second, and that baseline.
    pub fn next_class(&self, baseline: f64) -> Option<(&'static str, f64)> {
        let (family, _) = self.what.as_deref()?.trim_start_matches("db.").split_once('.')?;
        let of_family = |row: &&Row| row.0.split_once('.').is_some_and(|(f, _)| f == family);
        let above = TABLE.iter().filter(of_family).filter(|row| row.1 * 1e6 > (1.0 + NEAR) * baseline);
        above.min_by(|a, b| a.1.total_cmp(&b.1)).map(|row| (row.0, row.1 * 1e6))
    }
}

/// Limits of an instance class, with or without `db.` before it.
pub fn of_instance(class: &str) -> Vec<Documented> {
    let mut name = class.trim_start_matches("db.").to_owned();
    if let Some((from, to)) = SAME.iter().find(|(from, _)| name.starts_with(from)) {
        name = name.replacen(from, to, 1);
    }
    let Some((_, mb, operations, most_mb, most_operations)) = TABLE.iter().find(|row| row.0 == name) else {
        return Vec::new();
    };
    let new =
        |which: &str, unit, limit| Documented { of: format!("{which} of {class}"), unit, limit, source: INSTANCES };
    let mut limits = vec![new("baseline", Unit::Bytes, mb * 1e6), new("baseline", Unit::Operations, *operations)];
    if most_mb > mb {
        limits.push(new("burst", Unit::Bytes, most_mb * 1e6));
        limits.push(new("burst", Unit::Operations, *most_operations));
    }
    limits
}

/// Limits of one EBS volume of `kind` (gp2, gp3, io1, io2): its size in bytes, provisioned operations a second and bytes a second, as
/// far as they are known.
pub fn of_volume(kind: &str, size: Option<f64>, iops: Option<f64>, throughput: Option<f64>) -> Vec<Documented> {
    let mut limits: Vec<Documented> = Vec::new();
    let mut add = |which: &str, unit, limit: Option<f64>| {
        limits.extend(limit.map(|limit| Documented {
            of: format!("{which} of the {kind} volume"),
            unit,
            limit,
            source: VOLUMES,
        }));
    };
    let is_striped = size.is_some_and(|size| size >= STRIPED_FROM);
    match kind {
        "gp2" => {
            let gib = size.map(|size| size / GIB);
            // What a volume has is three a GiB; of several it is the same in all.
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
            add("provisioned", Unit::Operations, iops);
            // Up to 32,000: 256 KiB each, 500 MiB/s at most; beyond, 16 KiB each.
            let bytes = iops.filter(|iops| *iops <= 64_000.0 && !is_striped).map(|iops| {
                if iops <= 32_000.0 { (iops * 256.0 * 1024.0).min(500.0 * MIB) } else { iops * 16.0 * 1024.0 }
            });
            // Of io2 it depends on the instance: Block Express gives 0.256 MiB/s an operation, up to 4,000 MiB/s.
            add("most", Unit::Bytes, throughput.or(bytes.filter(|_| kind == "io1")));
        }
        _ => {}
    }
    limits
}

impl View<'_> {
    /// What is known of the instance and the volume beneath (settings of source `aws`).
    pub fn known_limits(&self) -> Known {
        let settings = self.recording.tables.settings.with_columns(&["source", "name", "value"]).unwrap_or_default();
        let text =
            |name: &str| settings.iter().rev().find(|s| s.source == "aws" && s.name == name).map(|s| s.value.as_str());
        let number = |name: &str| text(name).and_then(|v| v.parse::<f64>().ok()).filter(|v| *v > 0.0);
        let (class, kind) = (text("instance.class"), text("volume.type"));
        let mut limits: Vec<Documented> = DESCRIBED
            .iter()
            .filter_map(|(name, which, unit)| {
                let of = format!("{which} of {}", class.unwrap_or("the instance"));
                Some(Documented { of, unit: *unit, limit: number(name)?, source: "describe-instance-types" })
            })
            .collect();
        // What Amazon itself says of the type is newer than any table.
        if limits.is_empty() {
            limits = class.map(of_instance).unwrap_or_default();
        }
        limits.extend(kind.map_or_else(Vec::new, |kind| {
            of_volume(
                kind,
                number("volume.size_bytes"),
                number("volume.iops"),
                number("volume.throughput_bytes_per_second"),
            )
        }));
        Known { what: class.or(kind).map(str::to_owned), limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::testing::Made;

    fn limit(limits: &[Documented], of: &str, unit: Unit) -> Option<f64> {
        limits.iter().find(|d| d.of.starts_with(of) && d.unit == unit).map(|d| d.limit)
    }

    #[test]
    fn the_table_is_in_order_and_has_no_burst_below_a_baseline() {
        for row in TABLE {
            assert!(row.3 >= row.1 && row.4 >= row.2, "{}", row.0);
            assert_eq!(TABLE.iter().filter(|r| r.0 == row.0).count(), 1, "{}", row.0);
        }
        assert!(SAME.iter().all(|(_, to)| TABLE.iter().any(|row| row.0.starts_with(to))));
    }

    #[test]
    fn volumes_are_what_their_size_and_provision_make_them() {
        let gp2 = |gib: f64| of_volume("gp2", Some(gib * GIB), None, None);
        assert_eq!(limit(&gp2(20.0), "baseline", Unit::Operations), Some(100.0));
        assert_eq!(limit(&gp2(100.0), "baseline", Unit::Operations), Some(300.0));
        assert_eq!(limit(&gp2(100.0), "burst", Unit::Operations), Some(3_000.0));
        assert_eq!(limit(&gp2(100.0), "most", Unit::Bytes), Some(128.0 * MIB));
        assert_eq!(limit(&gp2(350.0), "most", Unit::Bytes), Some(250.0 * MIB));
        assert_eq!(limit(&gp2(2_000.0), "baseline", Unit::Operations), Some(6_000.0));
        assert_eq!(limit(&gp2(2_000.0), "most", Unit::Bytes), None, "striped: not known");
        assert_eq!(limit(&of_volume("gp3", None, None, None), "baseline", Unit::Bytes), Some(125.0 * MIB));
        let io1 = |iops| limit(&of_volume("io1", None, Some(iops), None), "most", Unit::Bytes);
        assert_eq!((io1(30_000.0), io1(48_000.0)), (Some(500.0 * MIB), Some(750.0 * MIB)));
        assert_eq!(of_volume("standard", None, None, None), []);
    }

    #[test]
    fn a_number_alone_matches_nothing() {
        let nobody = Made::new(3);
        let known = nobody.with(|case| case.slow().known_limits());
        assert_eq!((known.matching(Unit::Bytes, 287.5e6), known.what.as_deref()), (None, None));
        let known = nobody.setting("aws", "instance.class", "db.r5.2xlarge").with(|case| case.slow().known_limits());
        assert_eq!(known.matching(Unit::Bytes, 280.0e6).unwrap().of, "baseline of db.r5.2xlarge");
        assert_eq!(known.matching(Unit::Bytes, 213.0e6), None);
        assert_eq!(known.matching(Unit::Operations, 287.5e6), None);
        assert_eq!(known.next_class(213e6).unwrap().0, "r5.2xlarge");
        assert_eq!(known.next_class(287.5e6).unwrap(), ("r5.4xlarge", 593.75e6));
        let described = Made::new(3).setting("aws", "instance.class", "db.r7g.2xlarge").setting(
            "aws",
            "instance.ebs_baseline_throughput_bytes_per_second",
            "312500000",
        );
        let known = described.with(|case| case.slow().known_limits());
        assert_eq!(known.matching(Unit::Bytes, 310e6).unwrap().source, "describe-instance-types");
        assert_eq!(of_instance("db.r5dn.large")[0].limit, 81.25e6);
        assert_eq!(of_instance("db.r99.large"), []);
    }
}
