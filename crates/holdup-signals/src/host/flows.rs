//! Throughput of a disk, of several together, or of a cloud database's volume (CloudWatch): bytes
//! and operations of reads and writes added up, with the queue, interval by interval. Also which
//! limit binds. Cloud limits apply to the sum: neither part has to be flat.

mod lowered;

pub use self::lowered::Slowed;

use crate::Evidence;
use crate::host::throttle::Unit;
use crate::time::plateau::{Ceiling, Freer, QueuedRate, ceilings, freer_before, sum};
use crate::{Missing, View, Window};
use holdup_recording::{Labels, metrics};

/// What to record for disks.
const HOST: &str =
    "--watch host, or figures of CloudWatch (aws_read_throughput_bytes_per_second and the like) imported";

/// Mean request size above which bytes are the limit and not their number, bytes. Clouds count one
/// operation for up to 16 to 256 KiB of sequential I/O, and adjacent requests are merged up to that
/// size.
pub const SMALL_BYTES: f64 = 32.0 * 1024.0;

/// A ceiling must hold for this share (0-1) of the episode to be its reason.
const MOSTLY: f64 = 0.5;

/// The rate that spreads less than this share (0-1) of the other's spread is the limited one; the
/// other follows the size of requests.
const FLATTER: f64 = 0.5;

/// Smaller spreads come from clocks.
const LEAST_SPREAD: f64 = 0.005;

/// The source of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowSource {
    /// The kernel's counters of devices.
    Host,
    /// CloudWatch's gauges of a database instance.
    Cloud,
}

/// The throughput of one place.
#[derive(Clone, Debug)]
pub struct Flow {
    /// A device, `all disks`, or a database instance.
    pub name: String,
    /// The source of its figures.
    pub counted: FlowSource,
    /// Bytes read and written.
    pub bytes: Vec<QueuedRate>,
    /// Reads and writes.
    pub operations: Vec<QueuedRate>,
    /// Device or instance as a label; none for several devices.
    label: Option<(&'static str, String)>,
    /// Metric of the queue.
    queue: &'static str,
}

/// The limit that binds.
#[derive(Clone, Debug)]
pub struct Binding {
    /// What is limited.
    pub unit: Unit,
    /// The level during the episode.
    pub ceiling: Ceiling,
    /// All levels of the recording, in time order.
    pub all: Vec<Ceiling>,
}

impl Flow {
    /// Whether it is the sum of several disks.
    pub fn is_of_several(&self) -> bool {
        self.label.is_none()
    }

    fn series(&self, unit: Unit) -> &[QueuedRate] {
        match unit {
            Unit::Bytes => &self.bytes,
            Unit::Operations => &self.operations,
        }
    }

    /// Metric of the throughput.
    fn metric(&self, unit: Unit) -> &'static str {
        match (self.counted, unit) {
            (FlowSource::Host, Unit::Bytes) => metrics::host::DISK_IO_BYTES.name,
            (FlowSource::Host, Unit::Operations) => metrics::host::DISK_OPERATIONS.name,
            (FlowSource::Cloud, Unit::Bytes) => metrics::aws::READ_THROUGHPUT_BYTES_PER_SECOND.name,
            (FlowSource::Cloud, Unit::Operations) => metrics::aws::READ_IOPS.name,
        }
    }

    /// Mean over `window`, per second; none if nothing was recorded in it.
    pub fn mean(&self, unit: Unit, window: Window) -> Option<f64> {
        mean(self.series(unit), window, |i| i.done)
    }

    /// Queued or in service over `window`, on average.
    pub fn queued(&self, window: Window) -> Option<f64> {
        mean(&self.bytes, window, |i| i.queued)
    }

    /// Greatest of any interval, per second.
    pub fn most(&self, unit: Unit) -> f64 {
        self.series(unit).iter().map(|i| i.done).fold(0.0, f64::max)
    }

    /// Typical bytes of a read or write in `window`: the median of its intervals, because a few
    /// large ones would move a mean.
    pub fn bytes_each(&self, window: Window) -> f64 {
        let usual = |unit| {
            let within = self.series(unit).iter().filter(|i| overlap(i.window, window) > 0.0);
            let mut rates: Vec<f64> = within.map(|i| i.done).collect();
            rates.sort_by(f64::total_cmp);
            rates.get(rates.len() / 2).copied().unwrap_or(0.0)
        };
        let operations = usual(Unit::Operations);
        if operations > 0.0 { usual(Unit::Bytes) / operations } else { 0.0 }
    }

    /// The ceiling of that unit that held for most of `slow`, and all there are.
    fn ceiling(&self, unit: Unit, slow: Window) -> Option<(Ceiling, Vec<Ceiling>)> {
        let all = ceilings(self.series(unit), None);
        let there = |c: &Ceiling| c.stretches.iter().map(|s| overlap(*s, slow)).sum::<f64>();
        let most = all.iter().max_by(|a, b| there(a).total_cmp(&there(b)))?;
        // Of the recorded part: samples may begin later and end earlier.
        let recorded: f64 = self.series(unit).iter().map(|i| overlap(i.window, slow)).sum();
        let at_any: f64 = all.iter().map(there).sum();
        (recorded > 0.0 && at_any >= MOSTLY * recorded).then(|| (most.clone(), all.clone()))
    }

    /// All levels of that unit in the recording, per second.
    pub fn levels(&self, unit: Unit) -> Vec<f64> {
        ceilings(self.series(unit), None).into_iter().map(|ceiling| ceiling.level).collect()
    }

    /// Spread of that unit's rate in `windows`: interquartile range over median.
    fn spread(&self, unit: Unit, windows: &[Window]) -> f64 {
        let is_in = |i: &&QueuedRate| windows.iter().any(|w| w.contains(i.window.from) && w.contains(i.window.to));
        let within = self.series(unit).iter().filter(is_in);
        let mut rates: Vec<f64> = within.map(|i| i.done).collect();
        rates.sort_by(f64::total_cmp);
        let at = |share: usize| rates.get(rates.len() * share / 4).copied().unwrap_or(0.0);
        ((at(3) - at(1)) / at(2).max(f64::MIN_POSITIVE)).max(LEAST_SPREAD)
    }

    /// The limit that binds in `slow`, if any. If both rates are level it is the flatter one's. If
    /// requests are alike in size both are as flat: then bytes limit large ones, operations limit
    /// small ones, and between them the steadier rate decides.
    pub fn binding(&self, slow: Window) -> Option<Binding> {
        let (bytes, operations) = (self.ceiling(Unit::Bytes, slow), self.ceiling(Unit::Operations, slow));
        let each = self.bytes_each(slow);
        let by_bytes = match (&bytes, &operations) {
            (None, None) => return None,
            // Small requests of one size: their bytes are as level as their number is, which is what
            // is limited. A few of another size hide the level of the one or of the other.
            (Some((bytes, all)), None) if each <= SMALL_BYTES / 2.0 && self.is_as_steady(bytes) => {
                let counted = |level: &Ceiling| self.in_operations(level);
                return Some(Binding {
                    unit: Unit::Operations,
                    ceiling: counted(bytes),
                    all: all.iter().map(counted).collect(),
                });
            }
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((b, _)), Some((o, _))) => {
                let [of_bytes, of_operations] = [Unit::Bytes, Unit::Operations].map(|unit| self.spread(unit, &[slow]));
                match () {
                    () if of_bytes < FLATTER * of_operations => true,
                    () if of_operations < FLATTER * of_bytes => false,
                    () => each > SMALL_BYTES || each > SMALL_BYTES / 2.0 && b.at_level_ratio > o.at_level_ratio,
                }
            }
        };
        let (unit, (ceiling, all)) = if by_bytes { (Unit::Bytes, bytes?) } else { (Unit::Operations, operations?) };
        // Many large requests: their bytes are limited, not their number. A limit on operations is
        // not reached with these.
        if unit == Unit::Operations && each > SMALL_BYTES {
            return None;
        }
        Some(Binding { unit, ceiling, all })
    }

    /// Whether operations vary as little as bytes do at that level.
    fn is_as_steady(&self, bytes: &Ceiling) -> bool {
        self.spread(Unit::Operations, &bytes.stretches) <= self.spread(Unit::Bytes, &bytes.stretches)
    }

    /// A level of bytes as one of operations: their mean over its stretches.
    fn in_operations(&self, of: &Ceiling) -> Ceiling {
        let seconds: f64 = of.stretches.iter().map(Window::seconds).sum();
        let means = of.stretches.iter().filter_map(|s| Some(self.mean(Unit::Operations, *s)? * s.seconds()));
        Ceiling { level: means.sum::<f64>() / seconds.max(f64::MIN_POSITIVE), ..of.clone() }
    }

    /// The higher throughput before `ceiling`, if it lasted a while and never returned.
    pub fn freer_before(&self, unit: Unit, ceiling: &Ceiling) -> Option<Freer> {
        freer_before(self.series(unit), ceiling)
    }

    /// Evidence that points at the throughput in `window`.
    pub fn evidence(&self, unit: Unit, window: Window, observed: String, expected: String, text: String) -> Evidence {
        self.evidence_of(self.metric(unit), window, observed, expected, text)
    }

    /// Evidence that points at the queue in `window`.
    pub fn queue_evidence(&self, window: Window, observed: String, expected: String, text: String) -> Evidence {
        self.evidence_of(self.queue, window, observed, expected, text)
    }

    fn evidence_of(
        &self,
        metric: &'static str,
        window: Window,
        observed: String,
        expected: String,
        text: String,
    ) -> Evidence {
        let mut labels = Labels::new([("metric", metric)]);
        if let Some((name, value)) = &self.label {
            labels = labels.with(name, value.clone());
        }
        Evidence::new("samples", "value", labels, window, observed, expected, text)
    }
}

fn mean(series: &[QueuedRate], window: Window, of: impl Fn(&QueuedRate) -> f64) -> Option<f64> {
    let parts = || series.iter().map(|i| (overlap(i.window, window), i));
    let seconds: f64 = parts().map(|(s, _)| s).sum();
    (seconds > 0.0).then(|| parts().map(|(s, i)| s * of(i)).sum::<f64>() / seconds)
}

/// Seconds that two windows have in common.
fn overlap(a: Window, b: Window) -> f64 {
    ((a.to.min(b.to) - a.from.max(b.from)) as f64 / 1e9).max(0.0)
}

impl View<'_> {
    /// Every disk that file systems and servers use, all of them together, and volumes of databases
    /// that CloudWatch reports.
    ///
    /// # Errors
    /// If no disk was recorded.
    pub fn flows(&self) -> Result<Vec<Flow>, Missing> {
        let mut flows = self.cloud_flows();
        match self.disks() {
            Ok(disks) => {
                let devices: Vec<String> = disks.tops().map(|d| d.device.clone()).collect();
                flows.extend(devices.iter().map(|device| self.disk_flow(&[device])));
                if devices.len() > 1 {
                    let all: Vec<&String> = devices.iter().collect();
                    flows.push(self.disk_flow(&all));
                }
            }
            Err(missing) if flows.is_empty() => return Err(Missing { enable: HOST.to_owned(), ..missing }),
            Err(_) => {}
        }
        Ok(flows)
    }

    /// One series of samples in time order: the one with the fewest labels, if others cover parts
    /// or other statistics.
    fn one(&self, metric: &str, labels: &[(&str, &str)]) -> Vec<(i64, f64)> {
        let series = self.index.series(metric, labels).min_by_key(|((_, labels), _)| labels.iter().count());
        let within = |(at, _): &&(i64, f64)| self.window.contains(*at);
        series.map(|(_, series)| series.iter().filter(within).copied().collect()).unwrap_or_default()
    }

    fn disk_flow(&self, devices: &[&String]) -> Flow {
        let totals = |metric: &str| {
            let parts: Vec<Vec<(i64, f64)>> = devices
                .iter()
                .flat_map(|device| ["read", "write"].map(|direction| (device, direction)))
                .map(|(device, direction)| self.one(metric, &[("device", device.as_str()), ("direction", direction)]))
                .collect();
            sum(&parts)
        };
        let waited: Vec<Vec<(i64, f64)>> = devices
            .iter()
            .map(|device| self.one(metrics::host::DISK_WEIGHTED_IO_TIME.name, &[("device", device.as_str())]))
            .collect();
        let waited = sum(&waited);
        let name = match devices {
            [one] => (*one).clone(),
            _ => "all disks together".to_owned(),
        };
        let label = (devices.len() == 1).then(|| ("device", name.clone()));
        let of = |metric| growing(&totals(metric), &waited);
        let (bytes, operations) = (of(metrics::host::DISK_IO_BYTES.name), of(metrics::host::DISK_OPERATIONS.name));
        let queue = metrics::host::DISK_WEIGHTED_IO_TIME.name;
        Flow { name, counted: FlowSource::Host, bytes, operations, label, queue }
    }

    fn cloud_flows(&self) -> Vec<Flow> {
        const LABEL: &str = "db_instance";
        let instances = self.label_values(metrics::aws::READ_THROUGHPUT_BYTES_PER_SECOND.name, LABEL);
        instances.into_iter().map(|name| self.cloud_flow(LABEL, name)).filter(|f| !f.bytes.is_empty()).collect()
    }

    fn cloud_flow(&self, label: &'static str, name: String) -> Flow {
        let labels = [(label, name.as_str())];
        let both = |read: &str, write: &str| sum(&[self.one(read, &labels), self.one(write, &labels)]);
        let bytes = both(
            metrics::aws::READ_THROUGHPUT_BYTES_PER_SECOND.name,
            metrics::aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name,
        );
        let operations = both(metrics::aws::READ_IOPS.name, metrics::aws::WRITE_IOPS.name);
        let mut queue = metrics::aws::DISK_QUEUE_DEPTH.name;
        let mut queued = self.one(queue, &labels);
        if queued.is_empty() {
            queue = metrics::aws::READ_LATENCY.name;
            queued = self.in_flight_by_latency(&labels);
        }
        let of = |rates: &[(i64, f64)]| standing(rates, &queued);
        let (bytes, operations) = (of(&bytes), of(&operations));
        Flow { label: Some((label, name.clone())), name, counted: FlowSource::Cloud, bytes, operations, queue }
    }

    /// Operations in flight by Little's law: operations per second times the seconds that each
    /// took.
    fn in_flight_by_latency(&self, labels: &[(&str, &str)]) -> Vec<(i64, f64)> {
        let directions = [
            (metrics::aws::READ_IOPS.name, metrics::aws::READ_LATENCY.name),
            (metrics::aws::WRITE_IOPS.name, metrics::aws::WRITE_LATENCY.name),
        ];
        let of = |(rate, latency): (&str, &str)| {
            let latency = self.one(latency, labels);
            let took = |at: i64| latency.binary_search_by_key(&at, |(t, _)| *t).ok().map(|i| latency[i].1);
            self.one(rate, labels).into_iter().filter_map(|(at, rate)| Some((at, rate * took(at)?))).collect()
        };
        sum(&directions.map(of))
    }
}

/// Intervals between samples of a counter and of the queueing time of operations. A fall is a
/// restart, and that interval is left out.
fn growing(done: &[(i64, f64)], waited: &[(i64, f64)]) -> Vec<QueuedRate> {
    let at = |t: i64| waited.binary_search_by_key(&t, |(at, _)| *at).ok().map(|i| waited[i].1);
    let between = |pair: &[(i64, f64)]| {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        let (seconds, waited) = ((to - from) as f64 / 1e9, at(to)? - at(from)?);
        let is_usable = after >= before && waited >= 0.0 && seconds > 0.0;
        let window = Window { from, to };
        is_usable.then(|| QueuedRate { window, done: (after - before) / seconds, queued: waited / seconds })
    };
    done.windows(2).filter_map(between).collect()
}

/// Gauges over periods: a sample stands in the middle of its period, and periods are as long as the
/// usual step.
fn standing(rates: &[(i64, f64)], queue: &[(i64, f64)]) -> Vec<QueuedRate> {
    let mut steps: Vec<i64> = rates.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_unstable();
    let Some(step) = steps.get(steps.len() / 2).copied() else { return Vec::new() };
    let queued = |t: i64| queue.binary_search_by_key(&t, |(at, _)| *at).ok().map(|i| queue[i].1);
    let asked = |&(at, done): &(i64, f64)| {
        Some(QueuedRate { window: Window { from: at - step / 2, to: at + step / 2 }, done, queued: queued(at)? })
    };
    rates.iter().filter_map(asked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn a_sample_that_a_part_lacks_is_a_gap_of_the_sum() {
        let at = |s: i64| s * 1_000_000_000;
        let made = SyntheticRecording::new(6).disk("vda", (100.0, 4_096.0, 10.0), (50.0, 4_096.0, 10.0));
        let made = made.tables(|tables| {
            tables.samples.rows.retain(|row| {
                let is_read = row.metric == "system_disk_io_bytes_total" && row.labels.get("direction") == Some("read");
                !(is_read && row.observed_at == at(3))
            });
        });
        let flows = made.seen(|view| view.flows().unwrap());
        let windows: Vec<(i64, i64)> = flows[0].bytes.iter().map(|i| (i.window.from, i.window.to)).collect();
        assert!(windows.contains(&(at(2), at(4))) && !windows.contains(&(at(2), at(3))), "{windows:?}");
        assert!(
            flows[0].bytes.iter().all(|i| (i.done - 150.0 * 4_096.0).abs() < 1e-6 && (i.queued - 1.5).abs() < 1e-9)
        );
    }

    #[test]
    fn where_no_queue_is_told_latency_tells_it() {
        let labels = [("db_instance", "db")];
        let mut made = SyntheticRecording::new(6);
        for (direction, rate, seconds) in [("read", 1_000.0, 0.02), ("write", 500.0, 0.06)] {
            made = made
                .gauge("cw", &format!("aws_{direction}_iops"), &labels, rate)
                .gauge("cw", &format!("aws_{direction}_latency_seconds"), &labels, seconds)
                .gauge("cw", &format!("aws_{direction}_throughput_bytes_per_second"), &labels, rate * 8_192.0)
                // A further statistic of the same is not added to it.
                .gauge("cw", &format!("aws_{direction}_iops"), &[("db_instance", "db"), ("stat", "Maximum")], 9e9);
        }
        let flow = made.seen(|view| view.flows().unwrap().remove(0));
        assert!(flow.operations.iter().all(|i| i.done == 1_500.0 && (i.queued - 50.0).abs() < 1e-9), "{flow:?}");
        assert!((flow.bytes_each(made.seen(|view| view.window)) - 8_192.0).abs() < 1e-6);
    }

    #[test]
    fn small_requests_of_one_size_are_limited_in_number() {
        // Ten quiet seconds, then thirty with a queue: bytes at a level, and operations that exceed theirs now and then.
        let flow = |operations: fn(usize) -> f64| {
            let series = |quiet: f64, busy: &dyn Fn(usize) -> f64| -> Vec<QueuedRate> {
                let at = |i: usize| Window { from: i as i64 * 1_000_000_000, to: (i as i64 + 1) * 1_000_000_000 };
                let rate = |i: usize| if i < 10 { (quiet, 0.1) } else { (busy(i), 2.0) };
                (0..40).map(|i| QueuedRate { window: at(i), done: rate(i).0, queued: rate(i).1 }).collect()
            };
            Flow {
                name: "vda".to_owned(),
                counted: FlowSource::Host,
                bytes: series(200e3, &|i| 1.35e6 * [0.95, 1.0, 1.05][i % 3]),
                operations: series(20.0, &operations),
                label: Some(("device", "vda".to_owned())),
                queue: metrics::host::DISK_WEIGHTED_IO_TIME.name,
            }
        };
        let slow = Window { from: 10_000_000_000, to: 40_000_000_000 };
        let alike = flow(|i| if i % 8 == 0 { 150.0 } else { 132.0 }).binding(slow).unwrap();
        assert_eq!(alike.unit, Unit::Operations);
        assert!((130.0..138.0).contains(&alike.ceiling.level), "{}", alike.ceiling.level);
        // Of any size, their number varies and their bytes do not.
        let mixed = flow(|i| 100.0 + 20.0 * (i % 5) as f64).binding(slow).unwrap();
        assert_eq!(mixed.unit, Unit::Bytes);
    }
}
