//! A limit that came down without a plateau: the same demand as in the baseline window or less, and
//! each operation takes many times as long. A limit just below the demand is reached in some
//! intervals only, so that no level shows.

use super::{Binding, Flow, SMALL_BYTES, overlap};
use crate::Window;
use crate::host::throttle::Unit;
use crate::time::plateau::{Ceiling, Demand};

/// An operation takes at least this many times as long: a disk under the same demand varies less.
const LONGER: f64 = 5.0;

/// Up to this factor the demand is the same.
const SAME: f64 = 1.1;

/// Operations in flight on average from which some wait.
const WAIT: f64 = 0.5;

/// Least number of intervals on either side.
const LEAST_INTERVALS: usize = 5;

/// The rate whose spread is this much smaller than the other's is the limited one.
const FLATTER: f64 = 0.85;

/// How sure such a limit is, as the share (0-1) of intervals at a level would say it.
const SURE: f64 = 0.7;

impl Flow {
    /// The limit that binds in `slow` although the demand did not grow since `baseline`; none if the
    /// demand rose, or operations take about as long.
    pub fn lowered(&self, baseline: Window, slow: Window) -> Option<Binding> {
        let count = |window| self.bytes.iter().filter(|i| overlap(i.window, window) > 0.0).count();
        if count(baseline) < LEAST_INTERVALS || count(slow) < LEAST_INTERVALS {
            return None;
        }
        let is_same = |unit| Some(self.mean(unit, slow)? <= SAME * self.mean(unit, baseline)?);
        if !is_same(Unit::Bytes)? || !is_same(Unit::Operations)? {
            return None;
        }
        let wait = |window| Some(self.queued(window)? / self.mean(Unit::Operations, window).filter(|n| *n > 0.0)?);
        let queued = self.queued(slow)?;
        if queued < WAIT || wait(slow)? < LONGER * wait(baseline)? {
            return None;
        }
        let [of_bytes, of_operations] = [Unit::Bytes, Unit::Operations].map(|unit| self.spread(unit, &[slow]));
        let unit = match () {
            () if of_bytes < FLATTER * of_operations => Unit::Bytes,
            () if of_operations < FLATTER * of_bytes => Unit::Operations,
            () if self.bytes_each(slow) > SMALL_BYTES => Unit::Bytes,
            () => Unit::Operations,
        };
        let ceiling = Ceiling {
            level: self.mean(unit, slow)?,
            stretches: vec![slow],
            intervals: count(slow),
            at_level_ratio: SURE,
            queued,
            demand: Demand::Unchanged,
            is_own_bound: false,
        };
        Some(Binding { unit, all: vec![ceiling.clone()], ceiling })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::plateau::QueuedRate;

    const S: i64 = 1_000_000_000;

    /// Ten seconds of 50 operations of 16 KiB with little in flight, then ten of `factor` times as many with `queued` in flight.
    fn flow(factor: f64, queued: f64) -> Flow {
        let series = |each: f64| {
            let at = |s: i64| {
                let (done, queued) = if s < 10 { (50.0, 0.1) } else { (50.0 * factor, queued) };
                // Every other second a few more.
                let more = if s % 2 == 0 { 1.2 } else { 1.0 };
                QueuedRate { window: Window { from: s * S, to: (s + 1) * S }, done: done * more * each, queued }
            };
            (0..20).map(at).collect()
        };
        let (bytes, operations) = (series(16_384.0), series(1.0));
        Flow { name: "vda".into(), counted: super::super::FlowSource::Host, bytes, operations, label: None, queue: "" }
    }

    #[test]
    fn the_same_work_that_waits_is_a_limit_that_came_down() {
        let (baseline, slow) = (Window { from: 0, to: 10 * S }, Window { from: 10 * S, to: 20 * S });
        let binding = flow(0.9, 2.0).lowered(baseline, slow).unwrap();
        assert_eq!((binding.unit, binding.ceiling.demand), (Unit::Operations, Demand::Unchanged));
        assert!(flow(2.0, 8.0).lowered(baseline, slow).is_none(), "more is asked for");
        assert!(flow(0.9, 0.2).lowered(baseline, slow).is_none(), "nothing waits");
    }
}
