//! A level of a volume's reads and writes together that no document names.

use holdup_recording::metrics::aws;
use holdup_signals::host::flows::SMALL_BYTES;
use holdup_signals::host::throttle::Unit;
use holdup_signals::view::stretches::within;

use super::{CloudDatabase, CloudSign, Course, LEVEL, LEVEL_POINTS, Run, rate};
use crate::strength::STRONG;

/// A direction that varies by this much (0-1) of a level is not level itself.
const VARIES: f64 = 0.2;

impl CloudDatabase<'_> {
    /// A level that no document names, which waits for the volume grow at.
    pub(super) fn at_level(&self, unit: Unit, flow: &Course<'_>) -> Option<CloudSign> {
        let is_limiting = self.traded().or_else(|| self.unit_by_size()) == Some(unit);
        if self.limits.of_unit(unit).next().is_some() || !is_limiting {
            return None;
        }
        let run = level(flow)?;
        let rose = flow.usual(run.window).is_none_or(|usual| run.mean >= 1.2 * usual);
        if !rose || self.waits_at_volume(run.window) != Some(true) {
            return None;
        }
        let level = rate(unit, run.mean);
        let (traded, strength) = match self.traded() {
            Some(_) => (", while reads and writes changed places", STRONG),
            None => ("", STRONG * 0.8),
        };
        let text = format!(
            "{} read and wrote {level} together, a level at which requests to its volume wait{traded}",
            self.name
        );
        Some((strength, run.evidence(level, "following the demand", text)))
    }

    /// The unit of which reads and writes together stand at a level while each of them varies: only a limit
    /// that both share makes one give way to the other.
    fn traded(&self) -> Option<Unit> {
        [Unit::Bytes, Unit::Operations].into_iter().find(|unit| {
            let Some(run) = self.flow(*unit).as_ref().and_then(level) else { return false };
            let reads = match unit {
                Unit::Bytes => aws::READ_THROUGHPUT_BYTES_PER_SECOND.name,
                Unit::Operations => aws::READ_IOPS.name,
            };
            let of_reads = self.course(reads);
            let spread = of_reads.map_or(0.0, |reads| {
                let values = || within(&reads.points, run.window).iter().map(|(_, value)| *value);
                values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
            });
            spread >= VARIES * run.mean && run.most - run.least < VARIES * spread
        })
    }

    /// Large requests reach a limit on bytes first, small ones a limit on operations.
    fn unit_by_size(&self) -> Option<Unit> {
        let (bytes, operations) = (self.flow(Unit::Bytes)?.most()?, self.flow(Unit::Operations)?.most()?);
        Some(if bytes / operations.max(1.0) > SMALL_BYTES { Unit::Bytes } else { Unit::Operations })
    }
}

/// The stretch in which a flow stands at its greatest values.
fn level(flow: &Course<'_>) -> Option<Run> {
    let most = flow.most()?;
    let run = flow.run(|value| value >= (1.0 - 2.0 * LEVEL) * most)?;
    let stands = run.points >= LEVEL_POINTS && run.least >= (1.0 - 3.0 * LEVEL) * run.most;
    stands.then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const LABELS: [(&str, &str); 1] = [("db_instance", "db")];

    /// Two minutes of a volume that reads `read` and writes `write` bytes a second, in requests of 24 KiB; its
    /// queue is long from the second half on if `waits`.
    fn volume(read: impl Fn(i64) -> f64, write: impl Fn(i64) -> f64, waits: bool) -> SyntheticRecording {
        let made = SyntheticRecording::new(120);
        let of = |made: SyntheticRecording, name: &str, of: &dyn Fn(i64) -> f64| {
            made.counted("cw", &format!("aws_{name}"), &LABELS, of)
        };
        let made = of(made, "read_throughput_bytes_per_second", &read);
        let made = of(made, "write_throughput_bytes_per_second", &write);
        let made = of(made, "read_iops", &|s| read(s) / 24_576.0);
        let made = of(made, "write_iops", &|s| write(s) / 24_576.0 * if s % 3 == 0 { 1.4 } else { 0.9 });
        of(made, "disk_queue_depth", &|s| if waits && s >= 60 { 70.0 } else { 2.0 })
    }

    fn chance(made: &SyntheticRecording, unit: Unit) -> f64 {
        made.with(|case| {
            let all = CloudDatabase::all(case.view(case.whole()));
            all.iter().find_map(|of| of.at_ceiling(unit)).map_or(0.0, |(strength, _)| strength.chance())
        })
    }

    /// The share of reads moves between a quarter and three quarters.
    fn share(s: i64) -> f64 {
        0.25 + 0.5 * ((s * 37 % 100) as f64 / 100.0)
    }

    #[test]
    fn reads_and_writes_that_change_places_below_a_level_share_a_limit() {
        let sum = |s: i64| if s < 60 { 90e6 } else { 443e6 };
        let traded = volume(move |s| sum(s) * share(s), move |s| sum(s) * (1.0 - share(s)), true);
        assert!((chance(&traded, Unit::Bytes) - STRONG.chance()).abs() < 1e-9);
        assert!(chance(&traded, Unit::Operations) < 1e-9, "their number follows from their size");
    }

    #[test]
    fn a_demand_without_a_queue_and_parts_that_vary_alone_do_not_make_a_limit() {
        let sum = |s: i64| if s < 60 { 90e6 } else { 443e6 };
        let idle = volume(move |s| sum(s) * share(s), move |s| sum(s) * (1.0 - share(s)), false);
        assert!(chance(&idle, Unit::Bytes) < 1e-9);
        let alone = volume(move |s| sum(s) * share(s), move |s| sum(s) * share(s + 41), true);
        assert!(chance(&alone, Unit::Bytes) < 1e-9);
    }
}
