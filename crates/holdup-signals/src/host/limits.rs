//! What clouds allow: our table of the throughput and operations per second of instances and
//! volumes, with the documents and their dates. holdup never matches a level by its number alone:
//! it must know the instance or the volume. A level that matches no documented limit is reported as
//! just that.
//!
//! Figures that no document gives (volumes that a database service stripes) are left out: no limit
//! is better than a wrong one.

mod amazon;
mod class;
mod google;
mod microsoft;

pub use amazon::{of_instance, of_volume};
pub use class::{InstanceSize, MostConnections};

use crate::View;
use crate::host::throttle::Unit;

/// A level matches a documented limit within this share (0-1). EBS is designed to deliver 90 % of
/// its promise most of the time, and a minute's average of a busy volume misses by a few per cent.
const NEAR: f64 = 0.05;

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;

/// The attributes of `describe-instance-types`, as imported.
const DESCRIBED: [(&str, &str, Unit); 4] = [
    ("instance.ebs_baseline_throughput_bytes_per_second", "baseline", Unit::Bytes),
    ("instance.ebs_baseline_iops", "baseline", Unit::Operations),
    ("instance.ebs_burst_throughput_bytes_per_second", "burst", Unit::Bytes),
    ("instance.ebs_burst_iops", "burst", Unit::Operations),
];

/// The source of limits that a description of the volume gives.
const DESCRIBED_SO: &str = "as it was described";

/// The source of limits that follow from a rate beside its percentage.
pub const BY_PERCENTAGES: &str = "by the rate beside its percentage";

/// Whose limit it is. Both hold at once, so the smaller one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The instance's way to all of its volumes.
    Instance,
    /// The volume or disk itself.
    Volume,
}

/// A limit that a document gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Documented {
    /// Its subject, e.g. `baseline of db.r5.2xlarge`.
    pub of: String,
    /// Whose it is.
    pub place: Place,
    /// What is limited.
    pub unit: Unit,
    /// Per second: bytes or operations.
    pub limit: f64,
    /// The document and its date, or the setting.
    pub source: &'static str,
}

impl Documented {
    /// A limit of the volume or disk itself.
    fn volume(of: String, unit: Unit, limit: f64, source: &'static str) -> Self {
        Self { of, place: Place::Volume, unit, limit, source }
    }

    /// Whether it holds only for a while.
    pub fn is_burst(&self) -> bool {
        self.of.starts_with("burst")
    }
}

/// What is known about the instance and volume that a database runs on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownLimits {
    /// The instance's class or the volume's type, if either is known.
    pub what: Option<String>,
    /// Whether the user said what this host's disk is; otherwise a cloud's figures did.
    pub is_from_user: bool,
    /// The instance's class, if known.
    pub class: Option<String>,
    /// Its limits.
    pub limits: Vec<Documented>,
    /// Limits that the instance has instead if it was started before Amazon raised them; empty if
    /// it was created later.
    pub earlier: Vec<Documented>,
}

impl KnownLimits {
    /// The documented limit that `level` matches, if any.
    pub fn matching(&self, unit: Unit, level: f64) -> Option<&Documented> {
        let off = |d: &Documented| (d.limit - level).abs() / d.limit;
        let earlier = self.earlier.iter().filter(|d| d.unit == unit);
        let near = self.of_unit(unit).chain(earlier).filter(|d| off(d) <= NEAR);
        near.min_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// The present limit of the same kind that Amazon has raised `earlier` to.
    pub fn raised(&self, earlier: &Documented) -> Option<&Documented> {
        let is_earlier = self.earlier.contains(earlier);
        let same = |d: &&Documented| d.place == Place::Instance && d.is_burst() == earlier.is_burst();
        self.of_unit(earlier.unit).filter(same).find(|d| is_earlier && d.limit > earlier.limit)
    }

    /// What may be sustained, and what may be done for a while: in each case the smaller of the
    /// instance's and the volume's limit.
    pub fn smallest(&self, unit: Unit) -> (Option<&Documented>, Option<&Documented>) {
        let of = |place: Place| self.of_unit(unit).filter(move |d| d.place == place);
        let smaller = |a: &&Documented, b: &&Documented| a.limit.total_cmp(&b.limit);
        let sustained = |place: Place| of(place).filter(|d| !d.is_burst()).min_by(smaller);
        // A place without a burst sustains the most it does.
        let most = |place: Place| of(place).max_by(smaller);
        let both = [Place::Instance, Place::Volume];
        (both.into_iter().filter_map(sustained).min_by(smaller), both.into_iter().filter_map(most).min_by(smaller))
    }

    /// The limits of that unit.
    pub fn of_unit(&self, unit: Unit) -> impl Iterator<Item = &Documented> {
        self.limits.iter().filter(move |d| d.unit == unit)
    }

    /// The next class of the same family, or the next size of the same kind of disk, that sustains
    /// more than `needed` bytes or operations per second, and how much it does.
    pub fn next_up(&self, unit: Unit, needed: f64) -> Option<(String, f64)> {
        let what = self.what.as_deref()?;
        amazon::next_class(what, unit, needed).or_else(|| microsoft::next_size(what, unit, needed))
    }
}

/// Limits of one volume of any cloud, by its type in that cloud's terms, size in bytes, provisioned
/// operations and bytes per second, as far as known.
fn of_any_volume(kind: &str, size: Option<f64>, iops: Option<f64>, throughput: Option<f64>) -> Vec<Documented> {
    let found = [of_volume(kind, size, iops, throughput), google::of_disk(kind, size), microsoft::of_disk(kind, size)];
    let found = found.into_iter().find(|limits| !limits.is_empty()).unwrap_or_default();
    // The description of what is provisioned beats any table.
    let told = [(Unit::Operations, iops), (Unit::Bytes, throughput)];
    let given = told.into_iter().filter_map(|(unit, limit)| {
        let is_there = found.iter().any(|d| d.unit == unit && Some(d.limit) == limit);
        let of = format!("provisioned rate of the {kind} volume");
        Some(Documented::volume(of, unit, limit.filter(|_| !is_there)?, DESCRIBED_SO))
    });
    given.chain(found.iter().cloned()).collect()
}

/// The limits of a volume whose type is unknown: what was provisioned, or what percentages give.
fn of_nameless_volume(iops: Option<f64>, throughput: Option<f64>, from: Option<&str>) -> Vec<Documented> {
    let source = if from == Some("percentages") { BY_PERCENTAGES } else { DESCRIBED_SO };
    let given = [(Unit::Operations, iops), (Unit::Bytes, throughput)].into_iter();
    let of = || "provisioned rate of the volume".to_owned();
    given.filter_map(|(unit, limit)| Some(Documented::volume(of(), unit, limit?, source))).collect()
}

/// Whether there are figures for a volume of type `kind`.
pub fn knows_volume(kind: &str) -> bool {
    !of_any_volume(kind, Some(100.0 * GIB), Some(3_000.0), None).iter().all(|d| d.source == DESCRIBED_SO)
}

/// Where settings of the instance and the volume come from: the user of holdup, and an import from
/// AWS. The user's take precedence.
const SOURCES: [&str; 2] = ["told", "aws"];

impl View<'_> {
    /// What is known about the instance and its volume.
    pub fn known_limits(&self) -> KnownLimits {
        let settings = self.recording.tables.settings.with_columns(&["source", "name", "value"]).unwrap_or_default();
        let of = |source: &str, name: &str| {
            settings.iter().rev().find(|s| s.source == source && s.name == name).map(|s| s.value.as_str())
        };
        let text = |name: &str| SOURCES.iter().find_map(|source| of(source, name));
        let number = |name: &str| text(name).and_then(|v| v.parse::<f64>().ok()).filter(|v| *v > 0.0);
        let (class, kind) = (text("instance.class"), text("volume.type"));
        let mut limits: Vec<Documented> = DESCRIBED
            .iter()
            .filter_map(|(name, which, unit)| {
                let of = format!("{which} of {}", class.unwrap_or("the instance"));
                let (place, source) = (Place::Instance, "describe-instance-types");
                Some(Documented { of, place, unit: *unit, limit: number(name)?, source })
            })
            .collect();
        // Amazon's own description of the type is newer than any table.
        if limits.is_empty() {
            limits = class.map(of_instance).unwrap_or_default();
        }
        let (iops, throughput) = (number("volume.iops"), number("volume.throughput_bytes_per_second"));
        limits.extend(match kind {
            Some(kind) => of_any_volume(kind, number("volume.size_bytes"), iops, throughput),
            None => of_nameless_volume(iops, throughput, text("volume.limits_from")),
        });
        let is_from_user = ["instance.class", "volume.type"].iter().any(|name| of("told", name).is_some());
        let created = text("instance.created");
        let earlier = class.filter(|_| created.is_none_or(amazon::is_before_the_raise));
        let earlier = earlier.map_or_else(Vec::new, amazon::of_earlier_instance);
        let nameless = (!limits.is_empty()).then_some("the volume");
        let what = class.or(kind).or(nameless).map(str::to_owned);
        KnownLimits { what, is_from_user, class: class.map(str::to_owned), limits, earlier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    fn limit(limits: &[Documented], of: &str, unit: Unit) -> Option<f64> {
        limits.iter().find(|d| d.of.starts_with(of) && d.unit == unit).map(|d| d.limit)
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
        let nobody = SyntheticRecording::new(3);
        let known = nobody.seen(|view| view.known_limits());
        assert_eq!((known.matching(Unit::Bytes, 287.5e6), known.what.as_deref()), (None, None));
        let known = nobody.setting("aws", "instance.class", "db.r5.2xlarge").seen(|view| view.known_limits());
        assert_eq!(known.matching(Unit::Bytes, 280.0e6).unwrap().of, "baseline of db.r5.2xlarge");
        let earlier = known.matching(Unit::Bytes, 213.0e6).unwrap();
        assert_eq!(earlier.of, "baseline of a db.r5.2xlarge started before 3 December 2019");
        assert_eq!(known.raised(earlier).map(|now| now.limit), Some(287.5e6));
        assert_eq!(known.matching(Unit::Operations, 287.5e6), None);
        assert_eq!(known.next_up(Unit::Bytes, 213e6).unwrap().0, "db.r5.2xlarge");
        assert_eq!(known.next_up(Unit::Bytes, 287.5e6).unwrap(), ("db.r5.4xlarge".to_owned(), 593.75e6));
        let described = SyntheticRecording::new(3).setting("aws", "instance.class", "db.r7g.2xlarge").setting(
            "aws",
            "instance.ebs_baseline_throughput_bytes_per_second",
            "312500000",
        );
        let known = described.seen(|view| view.known_limits());
        assert_eq!(known.matching(Unit::Bytes, 310e6).unwrap().source, "describe-instance-types");
    }

    #[test]
    fn the_smaller_of_instance_and_volume_counts() {
        let made = SyntheticRecording::new(3)
            .setting("aws", "instance.class", "db.r5.2xlarge")
            .setting("aws", "instance.created", "2023-02-01T10:00:00+00:00")
            .setting("aws", "volume.type", "io1")
            .setting("aws", "volume.size_bytes", "107374182400");
        let of = |iops: &str| made.clone().setting("aws", "volume.iops", iops).seen(|view| view.known_limits());
        let limits = |known: &KnownLimits, unit| {
            let (sustained, most) = known.smallest(unit);
            (sustained.unwrap().limit, most.unwrap().limit)
        };
        let known = of("30000");
        assert_eq!(limits(&known, Unit::Operations), (12_000.0, 18_750.0), "the instance's");
        assert_eq!(known.matching(Unit::Bytes, 213e6), None, "created after the limits were raised");
        let known = of("1000");
        assert_eq!(limits(&known, Unit::Operations), (1_000.0, 1_000.0), "the volume's");
        assert_eq!(limits(&known, Unit::Bytes), (1_000.0 * 256.0 * 1_024.0, 1_000.0 * 256.0 * 1_024.0));
    }

    #[test]
    fn a_volume_named_by_the_user_goes_before_others() {
        let made =
            SyntheticRecording::new(3).setting("aws", "volume.type", "gp2").setting("told", "volume.type", "P30");
        let known = made.seen(|view| view.known_limits());
        assert_eq!((known.what.as_deref(), known.is_from_user), (Some("P30"), true));
        assert_eq!(known.matching(Unit::Bytes, 199e6).unwrap().of, "most of the P30 disk");
        let provisioned =
            SyntheticRecording::new(3).setting("told", "volume.type", "pd-ssd").setting("told", "volume.iops", "9000");
        let known = provisioned.seen(|view| view.known_limits());
        assert_eq!(known.matching(Unit::Operations, 8_900.0).unwrap().source, "as it was described");
        // Without a type, what was provisioned is still the limit.
        let nameless =
            SyntheticRecording::new(3).setting("aws", "volume.iops", "9000").seen(|view| view.known_limits());
        let limit = nameless.matching(Unit::Operations, 8_900.0).unwrap();
        assert_eq!(
            (limit.of.as_str(), nameless.what.as_deref()),
            ("provisioned rate of the volume", Some("the volume"))
        );
        assert!(knows_volume("gp3") && knows_volume("pd-balanced") && knows_volume("P10") && !knows_volume("floppy"));
    }
}
