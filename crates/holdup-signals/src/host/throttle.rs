//! I/O limits of a cgroup (`blkio.throttle.*` of version 1, `io.max` of version 2), and whether
//! they are reached. Such a limit delays requests before they reach the device, so the device's own
//! counters show an idle disk.

use crate::Evidence;
use crate::time::plateau::inner;
use crate::{Missing, View};
use holdup_recording::{Labels, metrics};

/// From this share (0-1) of a limit, requests are delayed: the kernel hands out the quota in tenths
/// of a second.
const REACHED: f64 = 0.9;

/// A limit must be reached in this share (0-1) of the intervals; otherwise it binds only now and
/// then.
const MOSTLY: f64 = 0.5;

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
}

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

    /// I/O limits that are set, the most often reached first.
    ///
    /// # Errors
    /// If there is one, and the throughput under it was not recorded.
    pub fn throttles(&self) -> Result<Vec<Throttle>, Missing> {
        let settings = self.recording.tables.settings.with_columns(&["source", "name", "value"]).unwrap_or_default();
        let mut found: Vec<Throttle> = Vec::new();
        for row in settings {
            let Some(rest) = row.name.strip_prefix("cgroup.disk_limit[") else { continue };
            let Some((device, of)) = rest.split_once("].") else { continue };
            let Some((_, direction, unit)) = LIMITS.iter().find(|(name, ..)| *name == of) else { continue };
            let Some(limit) = row.value.parse::<f64>().ok().filter(|limit| *limit > 0.0) else { continue };
            let metric = match unit {
                Unit::Bytes => metrics::cgroup::DISK_IO_BYTES.name,
                Unit::Operations => metrics::cgroup::DISK_OPERATIONS.name,
            };
            let labels = [("device", device), ("direction", *direction)];
            let growths = self.growths(|source| source == row.source, metric, &labels);
            let done = self.counter_where(|source| source == row.source, metric, &labels, ENABLE)?;
            let rates: Vec<f64> = inner(&growths).iter().map(|g| g.rate()).collect();
            let reached = rates.iter().filter(|rate| **rate >= REACHED * limit).count();
            found.retain(|known| known.source != row.source || known.setting != row.name);
            found.push(Throttle {
                source: row.source.clone(),
                device: device.to_owned(),
                direction,
                unit: *unit,
                limit,
                rate: done.rate(),
                reached_ratio: reached as f64 / rates.len().max(1) as f64,
                setting: row.name.clone(),
            });
        }
        // If a process shares holdup's own cgroup, the process is the relevant owner.
        found.sort_by(|a, b| {
            b.reached_ratio.total_cmp(&a.reached_ratio).then((a.source == "host").cmp(&(b.source == "host")))
        });
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

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
}
