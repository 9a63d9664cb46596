//! A provider's figures of a managed database: each as a course over time, with the stretch in which
//! it stood at a limit. They are means over a minute or more. The limits are those of the parameter
//! group, the instance's class and its volume, as far as they are described.

mod level;

use std::collections::BTreeMap;

use holdup_recording::words::{bytes, bytes_per_second, percent, thousands};
use holdup_recording::{Labels, metrics::aws};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::limits::{Documented, InstanceSize, KnownLimits, MostConnections};
use holdup_signals::host::throttle::Unit;
use holdup_signals::view::stretches::within;
use holdup_signals::{View, Window};

use super::load::time;
use crate::strength::{CERTAIN, FAIR, STRONG, Strength, WEAK};

/// The label that names the database.
const LABEL: &str = "db_instance";

/// Fewest points of a stretch that is more than a moment; a shorter view counts as a whole.
const POINTS: usize = 4;
/// A stretch of this length is more than a moment, whatever its points, nanoseconds.
const LASTING_NS: i64 = 600_000_000_000;
/// Share (0-1) of the points of a stretch that must be in the state.
const MOSTLY: f64 = 0.8;
/// Most points in a row that may be out of it.
const LAPSE: usize = 2;

/// How near (0-1) a rate is to a documented limit when it stands at it.
const NEAR: f64 = 0.06;
/// How near (0-1) the points of a level are to each other, where no limit is documented.
const LEVEL: f64 = 0.04;
/// A level without a documented limit has this many points.
const LEVEL_POINTS: usize = 8;
/// A queue or a latency of this factor of its usual value shows that requests wait …
const LONGER: f64 = 2.0;
/// … if so many requests are queued at least.
const QUEUED: f64 = 4.0;
/// A balance of credits (0-1) that is used up: it is a mean.
const USED_UP: f64 = 0.04;
/// A balance that was above this (0-1) shows that there were credits.
const HAD: f64 = 0.2;

/// One managed database.
pub(crate) struct CloudDatabase<'c> {
    view: View<'c>,
    /// Its name.
    pub name: String,
    pub size: InstanceSize,
    pub connections: Option<MostConnections>,
    limits: KnownLimits,
}

/// A figure over the whole recording.
pub(crate) struct Course<'c> {
    metric: &'static str,
    labels: Labels,
    points: Vec<(i64, f64)>,
    view: View<'c>,
}

/// A stretch of a course.
pub(crate) struct Run {
    metric: &'static str,
    labels: Labels,
    pub window: Window,
    pub mean: f64,
    pub least: f64,
    pub most: f64,
    pub points: usize,
}

impl Run {
    pub fn evidence(&self, observed: String, expected: impl Into<String>, text: String) -> Evidence {
        let labels = self.labels.clone().with("metric", self.metric);
        let text = format!("{text}, from {} to {} UTC", time(self.window.from), time(self.window.to));
        Evidence::new("samples", "value", labels, self.window, observed, expected, text)
    }
}

impl Course<'_> {
    /// The longest stretch of the view in which `is` mostly holds.
    pub fn run(&self, is: impl Fn(f64) -> bool) -> Option<Run> {
        let seen = within(&self.points, self.view.window);
        let mut best: Option<(usize, usize)> = None;
        let (mut from, mut held, mut lapse) = (0, 0, 0);
        for (n, (_, value)) in seen.iter().enumerate() {
            if is(*value) {
                (from, held) = if held == 0 { (n, 1) } else { (from, held + 1) };
                lapse = 0;
                let length = n + 1 - from;
                let is_mostly = held as f64 >= MOSTLY * length as f64;
                if is_mostly && best.is_none_or(|(from, to)| length > to + 1 - from) {
                    best = Some((from, n));
                }
            } else {
                lapse += 1;
                held = if lapse > LAPSE { 0 } else { held };
            }
        }
        let (from, to) = best?;
        let run = seen.get(from..=to)?;
        // Few points that were typed off a graph cover as much time as many of a file.
        let lasts = run.last()?.0 - run.first()?.0 >= LASTING_NS;
        if run.len() < POINTS && run.len() < seen.len() && !lasts {
            return None;
        }
        let values = || run.iter().map(|(_, value)| *value);
        let half = self.period() / 2;
        Some(Run {
            metric: self.metric,
            labels: self.labels.clone(),
            window: Window { from: run.first()?.0 - half, to: run.last()?.0 + half.max(1) },
            mean: values().sum::<f64>() / run.len() as f64,
            least: values().fold(f64::INFINITY, f64::min),
            most: values().fold(f64::NEG_INFINITY, f64::max),
            points: run.len(),
        })
    }

    fn period(&self) -> i64 {
        let mut steps: Vec<i64> = self.points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied().unwrap_or(0)
    }

    fn mean_in(&self, window: Window) -> Option<f64> {
        let seen = within(&self.points, window);
        (!seen.is_empty()).then(|| seen.iter().map(|(_, value)| *value).sum::<f64>() / seen.len() as f64)
    }

    /// The median of the whole recording without `window`.
    fn usual(&self, window: Window) -> Option<f64> {
        let mut rest: Vec<f64> =
            self.points.iter().filter(|(at, _)| !window.contains(*at)).map(|(_, value)| *value).collect();
        rest.sort_by(f64::total_cmp);
        rest.get(rest.len() / 2).copied()
    }

    /// Greatest of the recording outside of `window`.
    fn most_outside(&self, window: Window) -> Option<f64> {
        self.points.iter().filter(|(at, _)| !window.contains(*at)).map(|(_, value)| *value).reduce(f64::max)
    }

    /// Greatest in the view.
    fn most(&self) -> Option<f64> {
        within(&self.points, self.view.window).iter().map(|(_, value)| *value).reduce(f64::max)
    }
}

/// A sign of a cause in a provider's figures.
pub(crate) type CloudSign = (Strength, Evidence);

impl<'c> CloudDatabase<'c> {
    /// The databases whose figures the view has.
    pub fn all(view: View<'c>) -> Vec<Self> {
        let of = [aws::CPU_UTILIZATION_RATIO, aws::DATABASE_CONNECTIONS, aws::READ_IOPS, aws::FREEABLE_MEMORY_BYTES];
        let others = [aws::NETWORK_RECEIVE_THROUGHPUT_BYTES_PER_SECOND, aws::BURST_BALANCE_RATIO, aws::WRITE_IOPS];
        let mut names: Vec<String> =
            of.iter().chain(&others).flat_map(|metric| view.label_values(metric.name, LABEL)).collect();
        names.sort_unstable();
        names.dedup();
        // Limits are those of the instance that is described as the measured one.
        let is_one = names.len() == 1;
        let one = |name: String| Self {
            view,
            name,
            size: if is_one { view.instance_size() } else { InstanceSize::default() },
            connections: view.most_connections().filter(|_| is_one),
            limits: if is_one { view.known_limits() } else { KnownLimits::default() },
        };
        names.into_iter().filter(|name| !name.is_empty()).map(one).collect()
    }

    /// The mean of `metric`, whatever other statistics there are.
    pub fn course(&self, metric: &'static str) -> Option<Course<'c>> {
        let labels = [(LABEL, self.name.as_str())];
        let series = self.view.index.series(metric, &labels);
        let ((_, labels), points) = series.min_by_key(|((_, labels), _)| labels.iter().count())?;
        let seen = within(points, self.view.window);
        (!seen.is_empty()).then(|| Course { metric, labels: labels.clone(), points: points.to_vec(), view: self.view })
    }

    /// Two figures of the same moments added up.
    fn sum(&self, first: &'static str, second: &'static str) -> Option<Course<'c>> {
        let (mut sum, second) = (self.course(first)?, self.course(second)?);
        let second: BTreeMap<i64, f64> = second.points.into_iter().collect();
        sum.points = sum.points.iter().filter_map(|(at, value)| Some((*at, value + second.get(at)?))).collect();
        (!within(&sum.points, self.view.window).is_empty()).then_some(sum)
    }

    /// Bytes or operations of the volume per second, reads and writes together.
    fn flow(&self, unit: Unit) -> Option<Course<'c>> {
        match unit {
            Unit::Bytes => {
                self.sum(aws::READ_THROUGHPUT_BYTES_PER_SECOND.name, aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name)
            }
            Unit::Operations => self.sum(aws::READ_IOPS.name, aws::WRITE_IOPS.name),
        }
    }

    /// Whether the volume's own figures were read.
    pub fn sees_volume(&self) -> bool {
        let of = [aws::WRITE_LATENCY, aws::DISK_QUEUE_DEPTH, aws::WRITE_IOPS];
        of.iter().any(|metric| self.course(metric.name).is_some())
    }

    /// Whether requests to the volume waited longer in `window` than otherwise; none if no figure says.
    fn waits_at_volume(&self, window: Window) -> Option<bool> {
        let longer = |metric: &'static str, least: f64| {
            let course = self.course(metric)?;
            let (now, usual) = (course.mean_in(window)?, course.usual(window));
            Some(now >= least && usual.is_none_or(|usual| now >= LONGER * usual))
        };
        let all = [
            longer(aws::DISK_QUEUE_DEPTH.name, QUEUED),
            longer(aws::READ_LATENCY.name, 0.002),
            longer(aws::WRITE_LATENCY.name, 0.002),
        ];
        let told: Vec<bool> = all.into_iter().flatten().collect();
        (!told.is_empty()).then(|| told.iter().any(|is| *is))
    }

    /// The volume's bytes or operations stand at a limit.
    pub fn at_ceiling(&self, unit: Unit) -> Option<CloudSign> {
        let flow = self.flow(unit)?;
        let documented = self.limits.of_unit(unit).chain(self.limits.earlier.iter().filter(|d| d.unit == unit));
        let at = |limit: &Documented| {
            let run = flow.run(|value| (value / limit.limit - 1.0).abs() <= NEAR)?;
            Some((run, limit.clone()))
        };
        if let Some((run, limit)) = documented.filter_map(at).max_by_key(|(run, _)| run.points) {
            let strength = match self.waits_at_volume(run.window) {
                Some(true) => CERTAIN,
                None => FAIR,
                Some(false) => return None,
            };
            let (level, most) = (rate(unit, run.mean), rate(unit, limit.limit));
            let text = format!("{} read and wrote {level} together, the {} ({most})", self.name, limit.of);
            return Some((strength * self.unless_out_of_credits(), run.evidence(level, format!("below {most}"), text)));
        }
        self.at_level(unit, &flow)
    }

    /// The part of a ceiling's evidence that is left where credits ran out: the ceiling is then what they
    /// left.
    fn unless_out_of_credits(&self) -> f64 {
        if self.out_of_credits().is_some() { 0.6 } else { 1.0 }
    }

    /// Credits of the volume or of the instance's way to it are used up.
    pub fn out_of_credits(&self) -> Option<CloudSign> {
        let balances =
            [aws::BURST_BALANCE_RATIO.name, aws::EBS_BYTE_BALANCE_RATIO.name, aws::EBS_IO_BALANCE_RATIO.name];
        let used_up = |metric: &'static str| {
            let balance = self.course(metric)?;
            let run = balance.run(|value| value <= USED_UP)?;
            let had = balance.most_outside(run.window).is_none_or(|most| most >= HAD);
            had.then_some(run)
        };
        let run = balances.into_iter().filter_map(used_up).max_by_key(|run| run.points)?;
        let strength = match self.waits_at_volume(run.window) {
            Some(true) | None => CERTAIN,
            Some(false) => WEAK,
        };
        let left = percent(run.mean);
        let whose = if run.metric == aws::BURST_BALANCE_RATIO.name { "volume" } else { "instance" };
        let text = format!("{}: {left} of the {whose}'s burst credits were left", self.name);
        Some((strength, run.evidence(left, "some", text)))
    }

    /// A burstable class without CPU credits, at what it sustains.
    pub fn out_of_cpu_credits(&self) -> Option<CloudSign> {
        const LEFT: f64 = 2.0;
        let balance = self.course("aws_cpu_credit_balance")?;
        let run = balance.run(|value| value <= LEFT)?;
        balance.most_outside(run.window).is_none_or(|most| most >= 10.0 * LEFT).then_some(())?;
        let busy = self.course(aws::CPU_UTILIZATION_RATIO.name)?.mean_in(run.window)?;
        let sustained = self.size.sustained_cpu?;
        let stands = (busy / sustained - 1.0).abs() <= 0.2;
        let text = format!(
            "{} had {:.0} CPU credits left and its CPUs were {} busy, of {} that its class sustains",
            self.name,
            run.mean,
            percent(busy),
            percent(sustained)
        );
        stands.then(|| (CERTAIN, run.evidence(format!("{:.0} credits", run.mean), "some", text)))
    }

    /// Connections at their limit, or standing where they never went further.
    pub fn at_connection_limit(&self) -> Option<CloudSign> {
        /// Slots that the server keeps for itself and for administrators.
        const RESERVED: f64 = 6.0;
        /// The part (0-1) of a formula's result that Amazon's own processes leave.
        const LEFT_OF_MEMORY: f64 = 0.85;
        let open = self.course(aws::DATABASE_CONNECTIONS.name)?;
        let limit = self.connections?;
        let at = |value: f64| match limit.is_exact {
            true => value >= (0.98 * limit.most).min(limit.most - RESERVED).max(0.9 * limit.most),
            false => value >= LEFT_OF_MEMORY * limit.most,
        };
        let run = open.run(at)?;
        // A formula gives no exact number, so the connections must also stand at one.
        let stands = run.least >= 0.97 * run.most && run.points >= POINTS;
        if !limit.is_exact && !stands {
            return None;
        }
        let (had, most) = (thousands(run.mean.round()), thousands(limit.most));
        let about = if limit.is_exact { "" } else { "about " };
        let text = format!("{had} connections were open of {}, and max_connections is {about}{most}", self.name);
        let strength = if limit.is_exact { CERTAIN } else { STRONG };
        Some((strength, run.evidence(had, format!("below {most}"), text)))
    }

    /// CPUs without time left.
    pub fn cpus_full(&self) -> Option<(Strength, Run)> {
        const BUSY: f64 = 0.92;
        const FULL: f64 = 0.96;
        let run = self.course(aws::CPU_UTILIZATION_RATIO.name)?.run(|value| value >= BUSY)?;
        Some((if run.mean >= FULL { STRONG } else { FAIR }, run))
    }

    /// Hardly any memory left, and more and more of it swapped out.
    pub fn out_of_memory(&self) -> Vec<CloudSign> {
        /// Share (0-1) of the memory below which the kernel takes from what is in use.
        const SHORT: f64 = 0.06;
        /// The same where the memory is unknown, bytes.
        const SHORT_BYTES: f64 = 160.0 * 1_048_576.0;
        /// Growth of swapped-out memory that is more than chance, bytes.
        const SWAPPED: f64 = 64.0 * 1_048_576.0;
        let Some(free) = self.course(aws::FREEABLE_MEMORY_BYTES.name) else { return Vec::new() };
        let short = self.size.memory.map_or(SHORT_BYTES, |memory| SHORT * memory);
        let Some(run) = free.run(|value| value <= short) else { return Vec::new() };
        let least = bytes(run.least);
        let of = self.size.memory.map_or_else(String::new, |memory| format!(" of {}", bytes(memory)));
        let text = format!("{least}{of} of memory were free or could be freed on {}", self.name);
        let low = run.evidence(least, "some", text);
        let swapped = self.course(aws::SWAP_USAGE_BYTES.name).and_then(|swap| {
            let before = swap.points.iter().map(|(_, value)| *value).reduce(f64::min)?;
            let grown = swap.run(|value| value - before >= SWAPPED)?;
            let growth = bytes(grown.most - before);
            let text = format!("{growth} more were swapped out on {}", self.name);
            Some(grown.evidence(growth, "no growth", text))
        });
        match swapped {
            Some(swapped) => vec![(STRONG, swapped), (FAIR, low)],
            None => vec![(WEAK * 0.5, low)],
        }
    }

    /// A direction of the network at what the class sustains, or at a level far above the usual.
    pub fn network_full(&self) -> Option<CloudSign> {
        let ways = [
            ("received", aws::NETWORK_RECEIVE_THROUGHPUT_BYTES_PER_SECOND.name),
            ("sent", aws::NETWORK_TRANSMIT_THROUGHPUT_BYTES_PER_SECOND.name),
        ];
        let of = |(verb, metric): (&str, &'static str)| {
            let flow = self.course(metric)?;
            let Some(limit) = self.size.network else {
                let most = flow.most()?;
                let run = flow.run(|value| value >= (1.0 - LEVEL) * most)?;
                let stands = run.points >= LEVEL_POINTS && run.mean >= 3.0 * flow.usual(run.window)?;
                let level = bytes_per_second(run.mean);
                let text = format!("{} {verb} {level}, and never more", self.name);
                return stands.then(|| (WEAK, run.evidence(level, "following the demand", text)));
            };
            let run = flow.run(|value| (value / limit - 1.0).abs() <= NEAR)?;
            let (level, most) = (bytes_per_second(run.mean), bytes_per_second(limit));
            let text = format!("{} {verb} {level}, all that its class sustains ({most})", self.name);
            Some((STRONG, run.evidence(level, format!("below {most}"), text)))
        };
        ways.into_iter().filter_map(of).max_by(|a, b| a.0.chance().total_cmp(&b.0.chance()))
    }

    /// Checkpoints that were asked for because the log grew.
    pub fn requested_checkpoints(&self) -> Option<CloudSign> {
        let requested = self.course("aws_pi_db_checkpoint_checkpoints_req").or_else(|| {
            let (_, points) = self.view.index.series("aws_pi_db_checkpoint_checkpoints_req", &[]).next()?;
            let metric = "aws_pi_db_checkpoint_checkpoints_req";
            Some(Course { metric, labels: Labels::none(), points: points.to_vec(), view: self.view })
        })?;
        let run = requested.run(|value| value > 0.0)?;
        let a_minute = format!("{:.1} a minute", 60.0 * run.mean);
        let text = format!("{a_minute} checkpoints were requested because the log grew");
        Some((STRONG, run.evidence(a_minute, "0", text)))
    }
}

/// A rate in its unit.
fn rate(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes => bytes_per_second(value),
        Unit::Operations => format!("{} operations/s", thousands(value.round())),
    }
}
