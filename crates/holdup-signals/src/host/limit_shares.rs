//! Shares of a limit, as a provider reports them: percentages of the operations, bytes or CPUs that
//! a database may use. One that stands at 95 to 100 % is the provider's own statement that its limit
//! binds, whatever the instance or the volume is. What the limit is in operations or bytes it does
//! not say.

use holdup_recording::{Labels, metrics};

use crate::Evidence;
use crate::{View, Window};

/// From this share (0-1) on a limit binds: an average over a minute misses it by a few per cent.
pub const BINDS: f64 = 0.95;

/// A limit binds in a window if it did in this share (0-1) of the periods.
const MOSTLY: f64 = 0.5;

/// Fewest periods at a limit that are more than a moment.
const PERIODS: usize = 3;

/// The dimension that names the database.
const LABEL: &str = "db_instance";

/// What the limit is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// Operations of the volume.
    Operations,
    /// Bytes to and from the volume.
    Bytes,
    /// One of both: the provider does not say which.
    OperationsOrBytes,
    /// Bytes written to the log.
    LogBytes,
    /// CPU time.
    Cpu,
}

/// The percentages that providers report.
const SHARES: [(&str, Limited, &str); 6] = [
    (metrics::aws::DISK_IOPS_CONSUMED_RATIO.name, Limited::Operations, "the limit on operations"),
    (metrics::aws::DISK_THROUGHPUT_CONSUMED_RATIO.name, Limited::Bytes, "the limit on bytes"),
    (metrics::aws::DISK_IO_CONSUMED_RATIO.name, Limited::OperationsOrBytes, "the limit on I/O"),
    (metrics::aws::DATA_IO_CONSUMED_RATIO.name, Limited::OperationsOrBytes, "the limit on I/O to data files"),
    (metrics::aws::LOG_WRITE_CONSUMED_RATIO.name, Limited::LogBytes, "the limit on bytes of the log"),
    (metrics::aws::CPU_UTILIZATION_RATIO.name, Limited::Cpu, "the CPUs"),
];

/// A share of one limit of one database.
#[derive(Clone, Debug)]
pub struct LimitShare {
    /// The database.
    pub instance: String,
    /// What is limited.
    pub limited: Limited,
    /// The limit in words.
    pub limit: &'static str,
    metric: &'static str,
    /// Middles of the periods, and the share of each.
    points: Vec<(i64, f64)>,
}

impl LimitShare {
    fn within(&self, window: Window) -> impl Iterator<Item = f64> {
        self.points.iter().filter(move |(at, _)| window.contains(*at)).map(|(_, share)| *share)
    }

    /// Share (0-1) of the periods in `window` at which the limit bound; none without a period.
    pub fn bound_ratio(&self, window: Window) -> Option<f64> {
        let all = self.within(window).count();
        (all > 0).then(|| self.within(window).filter(|share| *share >= BINDS).count() as f64 / all as f64)
    }

    /// Whether the limit bound for most of `window`.
    pub fn binds(&self, window: Window) -> bool {
        self.bound_ratio(window).is_some_and(|ratio| ratio >= MOSTLY)
    }

    /// The mean share (0-1) in `window`.
    pub fn mean(&self, window: Window) -> f64 {
        let all = self.within(window).count();
        self.within(window).sum::<f64>() / all.max(1) as f64
    }

    /// The longest time for which the limit bound without a break; none if that was a moment.
    pub fn longest(&self) -> Option<Window> {
        let runs = self.points.chunk_by(|a, b| (a.1 >= BINDS) == (b.1 >= BINDS));
        let bound = runs.filter(|run| run[0].1 >= BINDS && run.len() >= PERIODS);
        let longest = bound.max_by_key(|run| run[run.len() - 1].0 - run[0].0)?;
        let half = (longest[1].0 - longest[0].0) / 2;
        Some(Window { from: longest[0].0 - half, to: longest[longest.len() - 1].0 + half })
    }

    /// Evidence that points at the share in `window`.
    pub fn evidence(&self, window: Window, observed: String, text: String) -> Evidence {
        let labels = Labels::new([("metric", self.metric), (LABEL, self.instance.as_str())]);
        Evidence::new("samples", "value", labels, window, observed, "well below 95 %", text)
    }
}

impl View<'_> {
    /// The shares of limits that providers reported, of every database.
    pub fn limit_shares(&self) -> Vec<LimitShare> {
        let of = |(metric, limited, limit): (&'static str, Limited, &'static str)| {
            let names = self.label_values(metric, LABEL);
            names.into_iter().map(move |instance| {
                let labels = [(LABEL, instance.as_str())];
                // The series with the fewest labels is the average; others are its maximum or minimum.
                let series = self.index.series(metric, &labels).min_by_key(|((_, labels), _)| labels.iter().count());
                let within = |(at, _): &&(i64, f64)| self.window.contains(*at);
                let points = series.map(|(_, all)| all.iter().filter(within).copied().collect());
                LimitShare { instance, limited, limit, metric, points: points.unwrap_or_default() }
            })
        };
        SHARES.into_iter().flat_map(of).filter(|share| !share.points.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    fn made(of: impl Fn(i64) -> f64) -> Vec<LimitShare> {
        let labels = [("db_instance", "db")];
        let made = SyntheticRecording::new(20).counted("azure", "aws_disk_io_consumed_ratio", &labels, of);
        made.seen(|view| view.limit_shares())
    }

    #[test]
    fn a_share_at_its_limit_binds_and_a_moment_there_does_not() {
        let shares = made(|s| if (5..15).contains(&s) { 0.99 } else { 0.4 });
        assert_eq!((shares.len(), shares[0].limited), (1, Limited::OperationsOrBytes));
        let longest = shares[0].longest().unwrap();
        assert!((longest.seconds() - 10.0).abs() < 1e-6, "{longest:?}");
        assert!(shares[0].binds(longest) && (shares[0].mean(longest) - 0.99).abs() < 1e-9);
        assert!(made(|s| if s % 7 == 0 { 1.0 } else { 0.4 })[0].longest().is_none());
        assert!(made(|_| 0.94)[0].longest().is_none());
    }
}
