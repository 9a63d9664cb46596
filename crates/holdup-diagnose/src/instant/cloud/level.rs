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
