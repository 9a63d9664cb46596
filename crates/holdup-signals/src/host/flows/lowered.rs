//! The same demand as in the baseline window or less, and each operation takes many times as long. Either the
//! device itself got slow, or a limit came down to just below the demand: that is reached in some intervals
//! only, so that no level shows.
//!
//! A limit needs demand above it. Where it binds operations queue up, and the wait follows the queue; where
//! all that is demanded is done as before, with few operations in flight or with a wait that stays as it is,
//! nothing queues for a limit: each operation takes longer by itself.

use super::{Binding, Flow, QueuedRate, SMALL_BYTES, overlap};
use crate::Window;
use crate::host::throttle::Unit;
use crate::time::plateau::{Ceiling, Demand};

/// An operation takes at least this many times as long: a disk under the same demand varies less.
const LONGER: f64 = 5.0;

/// … and at least this long, seconds.
const LEAST_WAIT_S: f64 = 0.5e-3;

/// Up to this factor the demand is the same.
const SAME: f64 = 1.1;

/// From this factor on, all of the demand is done.
const ALL: f64 = 0.95;

/// Operations in flight on average from which some wait.
const WAIT: f64 = 0.5;

/// Operations in flight on average up to which nothing is in line: one after the other, as a log is written …
const SERIAL: f64 = 2.0;

/// … and up to which hardly anything is, if most of the demand is done.
const FEW: f64 = 4.0;
const MOST: f64 = 0.7;

/// Share (0-1) of the intervals in which operations of a slow device take that long: nearly all.
const NEARLY_ALL: f64 = 0.8;

/// The wait of a slow device in the last third of an episode is at most this many times that in the first: it
/// does not grow with a queue.
const STEADY: f64 = 1.5;

/// Least number of intervals on either side.
const LEAST_INTERVALS: usize = 5;

/// The rate whose spread is this much smaller than the other's is the limited one.
const FLATTER: f64 = 0.85;

/// How sure such a limit is, as the share (0-1) of intervals at a level would say it.
const SURE: f64 = 0.7;

/// A device that got slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowed {
    /// Operations per second, now and in the baseline window.
    pub operations: (f64, f64),
    /// Seconds that each takes, in the queue and in service, now and in the baseline window.
    pub took_s: (f64, f64),
    /// Operations in flight on average.
    pub queued: f64,
}

impl Flow {
    /// The device that got slow since `baseline`; none if more is demanded, operations take about as long, or
    /// they queue for a limit.
    pub fn slowed(&self, baseline: Window, slow: Window) -> Option<Slowed> {
        let slowed = self.waits_longer(baseline, slow)?;
        let waits: Vec<f64> = self.within(slow).filter(|i| i.done > 0.0).map(QueuedRate::wait).collect();
        let longer = waits.iter().filter(|wait| **wait >= LONGER * slowed.took_s.1).count();
        if (longer as f64) < NEARLY_ALL * waits.len() as f64 {
            return None;
        }
        let third = waits.len() / 3;
        let (first, last) = (mean(&waits[..third]), mean(&waits[waits.len() - third..]));
        let done = slowed.operations.0 / slowed.operations.1;
        let is_in_line = match () {
            () if slowed.queued < SERIAL => false,
            () if slowed.queued < FEW => done < MOST,
            () => done < ALL || last > STEADY * first,
        };
        (!is_in_line).then_some(slowed)
    }

    /// The limit that binds in `slow` although the demand did not grow since `baseline`; none if the
    /// demand rose, operations take about as long, or the device itself got slow.
    pub fn lowered(&self, baseline: Window, slow: Window) -> Option<Binding> {
        let queued = self.waits_longer(baseline, slow)?.queued;
        if queued < WAIT || self.slowed(baseline, slow).is_some() {
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
            intervals: self.within(slow).count(),
            at_level_ratio: SURE,
            queued,
            demand: Demand::Unchanged,
            is_own_bound: false,
        };
        Some(Binding { unit, all: vec![ceiling.clone()], ceiling })
    }

    /// How much longer operations take, if no more is demanded than in `baseline`.
    fn waits_longer(&self, baseline: Window, slow: Window) -> Option<Slowed> {
        if self.within(baseline).count() < LEAST_INTERVALS || self.within(slow).count() < LEAST_INTERVALS {
            return None;
        }
        let is_same = |unit| Some(self.mean(unit, slow)? <= SAME * self.mean(unit, baseline)?);
        if !is_same(Unit::Bytes)? || !is_same(Unit::Operations)? {
            return None;
        }
        let rate = |window| self.mean(Unit::Operations, window).filter(|n| *n > 0.0);
        let operations = (rate(slow)?, rate(baseline)?);
        let queued = self.queued(slow)?;
        let took_s = (queued / operations.0, self.queued(baseline)? / operations.1);
        let is_longer = took_s.0 >= LEAST_WAIT_S && took_s.0 >= LONGER * took_s.1;
        is_longer.then_some(Slowed { operations, took_s, queued })
    }

    /// Intervals of operations that lie in `window` or reach into it.
    fn within(&self, window: Window) -> impl Iterator<Item = &QueuedRate> {
        self.operations.iter().filter(move |i| overlap(i.window, window) > 0.0)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const BASELINE: Window = Window { from: 0, to: 10 * S };
    const SLOW: Window = Window { from: 10 * S, to: 20 * S };

    /// Ten seconds of 50 operations of 16 KiB with little in flight, then ten of `factor` times as many with `queued` in flight.
    fn flow(factor: f64, queued: impl Fn(i64) -> f64) -> Flow {
        let series = |each: f64| {
            let at = |s: i64| {
                let (done, queued) = if s < 10 { (50.0, 0.1) } else { (50.0 * factor, queued(s)) };
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
    fn the_same_work_behind_a_queue_that_comes_and_goes_is_a_limit_that_came_down() {
        let queue = |s: i64| if s % 3 == 0 { 0.1 } else { 12.0 };
        let binding = flow(0.9, queue).lowered(BASELINE, SLOW).unwrap();
        assert_eq!((binding.unit, binding.ceiling.demand), (Unit::Operations, Demand::Unchanged));
        assert!(flow(0.9, queue).slowed(BASELINE, SLOW).is_none());
        assert!(flow(2.0, |_| 8.0).lowered(BASELINE, SLOW).is_none(), "more is asked for");
        assert!(flow(0.9, |_| 0.2).lowered(BASELINE, SLOW).is_none(), "nothing waits");
    }

    #[test]
    fn the_same_operations_that_each_take_longer_show_a_slow_device() {
        // Thirty times as long, two or three in flight.
        let slowed = flow(0.9, |_| 2.7).slowed(BASELINE, SLOW).unwrap();
        assert!((slowed.took_s.0 / slowed.took_s.1 - 30.0).abs() < 1e-6, "{slowed:?}");
        assert!(flow(0.9, |_| 2.7).lowered(BASELINE, SLOW).is_none());
        // Many in flight, as long as each takes, and all of the demand is done.
        assert!(flow(1.0, |_| 20.0).slowed(BASELINE, SLOW).is_some());
        assert!(flow(1.0, |s| 2.0 * (s - 9) as f64).slowed(BASELINE, SLOW).is_none(), "the queue grows");
        assert!(flow(0.7, |_| 20.0).slowed(BASELINE, SLOW).is_none(), "less is done, and many are in line");
        assert!(flow(0.3, |_| 1.5).slowed(BASELINE, SLOW).is_some(), "one after the other");
        assert!(flow(0.3, |_| 3.0).slowed(BASELINE, SLOW).is_none(), "far less is done, and some are in line");
        assert!(flow(2.0, |_| 2.7).slowed(BASELINE, SLOW).is_none(), "more is asked for");
        assert!(flow(1.0, |_| 0.3).slowed(BASELINE, SLOW).is_none(), "three times as long");
    }
}
