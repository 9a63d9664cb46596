//! I/O limits of a cgroup (`blkio.throttle.*` of version 1, `io.max` of version 2), and whether
//! they are reached. Such a limit delays requests before they reach the device, so the device's own
//! counters show an idle disk.

use std::collections::BTreeMap;

use crate::Evidence;
use crate::time::plateau::inner;
use crate::{Missing, View};
use holdup_recording::rows::Setting;
use holdup_recording::{Labels, metrics};

/// From this share (0-1) of a limit, requests are delayed: the kernel hands out the quota in tenths
/// of a second.
const REACHED: f64 = 0.9;

/// A limit must be reached in this share (0-1) of the intervals; otherwise it binds only now and
/// then.
const MOSTLY: f64 = 0.5;

/// A limit that is exceeded by this factor, in this share (0-1) of the intervals, is not in force.
const EXCEEDED: f64 = 1.2;
const OFTEN: f64 = 0.2;

/// The settings of a source are read within this time, nanoseconds.
const AT_ONCE_NS: i64 = 5_000_000_000;

const ENABLE: &str = "--watch pid:N for the app and the database, and the blkio or io controller";

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes a second.
    Bytes,
    /// Operations a second.
    Operations,
}

/// A limit that is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// The owner of the cgroup: `pid:N`, or `host` for holdup's own.
    pub source: String,
    /// The device.
    pub device: String,
    /// `read` or `write`.
    pub direction: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The limit, per second.
    pub limit: f64,
    /// Mean throughput, per second.
    pub rate: f64,
    /// Share (0-1) of the intervals in which it was reached.
    pub reached_ratio: f64,
    /// Name of the setting.
    pub setting: String,
    /// The limit before, per second, if it was changed while this was recorded; infinite if there was none.
    pub before: Option<f64>,
}

/// Beginning of the settings, before the device.
const PREFIX: &str = "cgroup.disk_limit[";

/// Last words of the settings, with direction and unit.
const LIMITS: [(&str, &str, Unit); 4] = [
    ("read_bytes_per_second", "read", Unit::Bytes),
    ("write_bytes_per_second", "write", Unit::Bytes),
    ("read_operations_per_second", "read", Unit::Operations),
    ("write_operations_per_second", "write", Unit::Operations),
];

impl Throttle {
    /// Whether requests were delayed most of the time.
    pub fn is_reached(&self) -> bool {
        self.reached_ratio >= MOSTLY
    }

    /// Evidence that points at the throughput.
    pub fn evidence(&self, view: &View<'_>, text: String) -> Evidence {
        let of = match self.unit {
            Unit::Bytes => metrics::cgroup::DISK_IO_BYTES.name,
            Unit::Operations => metrics::cgroup::DISK_OPERATIONS.name,
        };
        let labels = Labels::new([("metric", of), ("device", &self.device), ("direction", self.direction)]);
        let observed = format!("{:.0} of {:.0} a second", self.rate, self.limit);
        Evidence::new("samples", "value", labels, view.window, observed, "well below the limit", text)
    }
}

impl View<'_> {
    /// Whether the recording says if a cgroup has an I/O limit.
    pub fn knows_throttles(&self) -> bool {
        self.setting("cgroup.path", ENABLE).is_ok()
    }

    /// I/O limits that are set, the most often reached first. Of several values of one limit it is the one
    /// that what was done in the window fits: settings are read once a minute, and one that changed in
    /// between is known later.
    ///
    /// # Errors
    /// If there is one, and the throughput under it was not recorded.
    pub fn throttles(&self) -> Result<Vec<Throttle>, Missing> {
        let settings = self.recording.tables.settings.with_columns(&["source", "name", "value"]).unwrap_or_default();
        let mut by_limit: BTreeMap<(&str, &str), Vec<&Setting>> = BTreeMap::new();
        for row in settings.iter().filter(|row| row.name.starts_with(PREFIX)) {
            by_limit.entry((&row.source, &row.name)).or_default().push(row);
        }
        let began = |source: &str| settings.iter().filter(|s| s.source == source).map(|s| s.observed_at).min();
        let mut found: Vec<Throttle> = Vec::new();
        for ((source, _), mut rows) in by_limit {
            rows.sort_by_key(|row| row.observed_at);
            rows.dedup_by(|next, kept| next.value == kept.value);
            let began = began(source).unwrap_or(i64::MIN).saturating_add(AT_ONCE_NS);
            let mut before = rows.first().filter(|first| first.observed_at > began).map(|_| f64::INFINITY);
            let mut of_one: Vec<(Throttle, bool)> = Vec::new();
            for row in rows {
                let Some((throttle, is_in_force)) = self.throttle(row, before)? else { continue };
                before = Some(throttle.limit);
                of_one.push((throttle, is_in_force));
            }
            let in_force = of_one.iter().filter(|(_, is)| *is).map(|(throttle, _)| throttle);
            let most = in_force.max_by(|a, b| a.reached_ratio.total_cmp(&b.reached_ratio));
            found.extend(most.or(of_one.last().map(|(throttle, _)| throttle)).cloned());
        }
        // If a process shares holdup's own cgroup, the process is the relevant owner.
        found.sort_by(|a, b| {
            b.reached_ratio.total_cmp(&a.reached_ratio).then((a.source == "host").cmp(&(b.source == "host")))
        });
        Ok(found)
    }

    /// The limit that `row` sets, and whether it may have been in force in the window; none if it sets none.
    fn throttle(&self, row: &Setting, before: Option<f64>) -> Result<Option<(Throttle, bool)>, Missing> {
        let split = row.name.strip_prefix(PREFIX).and_then(|rest| rest.split_once("]."));
        let known = split.and_then(|(device, of)| Some((device, LIMITS.iter().find(|(name, ..)| *name == of)?)));
        let limit = row.value.parse::<f64>().ok().filter(|limit| *limit > 0.0);
        let Some(((device, (_, direction, unit)), limit)) = known.zip(limit) else { return Ok(None) };
        let metric = match unit {
            Unit::Bytes => metrics::cgroup::DISK_IO_BYTES.name,
            Unit::Operations => metrics::cgroup::DISK_OPERATIONS.name,
        };
        let labels = [("device", device), ("direction", *direction)];
        let growths = self.growths(|source| source == row.source, metric, &labels);
        let done = self.counter_where(|source| source == row.source, metric, &labels, ENABLE)?;
        let rates: Vec<f64> = inner(&growths).iter().map(|g| g.rate()).collect();
        let ratio =
            |least: f64| rates.iter().filter(|rate| **rate >= least * limit).count() as f64 / rates.len().max(1) as f64;
        let throttle = Throttle {
            source: row.source.clone(),
            device: device.to_owned(),
            direction,
            unit: *unit,
            limit,
            rate: done.rate(),
            reached_ratio: ratio(REACHED),
            setting: row.name.clone(),
            before,
        };
        Ok(Some((throttle, ratio(EXCEEDED) < OFTEN)))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;
    use crate::{View, Window};

    #[test]
    fn a_limit_that_is_reached_is_told_from_one_that_is_not() {
        let read = [("device", "vda"), ("direction", "read")];
        let write = [("device", "vda"), ("direction", "write")];
        let made = SyntheticRecording::new(12)
            .setting("pid:7", "cgroup.disk_limit[vda].read_bytes_per_second", "10000000")
            .setting("pid:7", "cgroup.disk_limit[vda].write_bytes_per_second", "10000000")
            .counter("pid:7", "cgroup_disk_io_bytes_total", &read, 9_900_000.0)
            .counter("host", "cgroup_disk_io_bytes_total", &read, 50_000_000.0)
            .counter("pid:7", "cgroup_disk_io_bytes_total", &write, 1_000_000.0);
        let throttles = made.seen(|view| view.throttles().unwrap());
        assert_eq!(throttles.iter().map(|t| t.is_reached()).collect::<Vec<_>>(), [true, false]);
        assert!((throttles[0].rate - 9.9e6).abs() < 1.0, "{throttles:?}");
        let less = made.without("cgroup_disk_io_bytes_total");
        assert!(less.seen(|view| view.throttles().is_err()));
    }

    #[test]
    fn a_limit_that_was_lowered_is_the_one_that_the_rate_fits() {
        let read = [("device", "vda"), ("direction", "read")];
        let bytes = |s: i64| 30e6 * s.min(10) as f64 + 5.9e6 * (s - 10).max(0) as f64;
        let set = |made: SyntheticRecording, at: i64, value: &str| {
            made.setting("pid:7", "cgroup.disk_limit[vda].read_bytes_per_second", value).tables(move |tables| {
                tables.settings.rows.last_mut().unwrap().observed_at = at * 1_000_000_000;
            })
        };
        let base = SyntheticRecording::new(30).counted("pid:7", "cgroup_disk_io_bytes_total", &read, bytes);
        // Read when it is over already, and set back before the end.
        let lowered = set(set(set(base.clone(), 0, "40000000"), 26, "6000000"), 30, "40000000");
        let first = set(base, 0, "40000000").setting("pid:7", "comm", "store");
        let throttles = |made: &SyntheticRecording| {
            made.seen(|view| {
                let window = Window { from: 10_000_000_000, to: 25_000_000_000 };
                let mut all = View { window, ..*view }.throttles().unwrap();
                assert_eq!(all.len(), 1, "{all:?}");
                let one = all.remove(0);
                (one.limit, one.before, one.is_reached())
            })
        };
        assert_eq!(throttles(&lowered), (6e6, Some(40e6), true));
        assert_eq!(throttles(&first), (40e6, None, false), "it was never changed");
    }

    #[test]
    fn a_limit_that_was_set_where_there_was_none_says_so() {
        let write = [("device", "vda"), ("direction", "write")];
        let made = SyntheticRecording::new(30)
            .counter("pid:7", "cgroup_disk_operations_total", &write, 49.0)
            .setting("pid:7", "comm", "store")
            .setting("pid:7", "cgroup.disk_limit[vda].write_operations_per_second", "50")
            .tables(|tables| tables.settings.rows.last_mut().unwrap().observed_at = 12_000_000_000);
        let throttles = made.seen(|view| view.throttles().unwrap());
        assert_eq!(throttles[0].before, Some(f64::INFINITY));
    }
}
