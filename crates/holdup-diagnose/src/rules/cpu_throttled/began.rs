//! Whether stops at the quota began with the episode.

use holdup_recording::metrics;

use super::{ENABLE, ThrottledSource};
use crate::case::Case;

/// Stops in at least this many times the share of periods of the baseline window began with the
/// episode …
const TIMES: f64 = 3.0;

/// … and are worth this much (0-1) as evidence, in however few periods: a burst that meets one of
/// them waits for its end.
const BEGAN: f64 = 0.8;

/// What the share (0-1) of periods in which it was stopped is worth.
pub(super) fn worth(case: &Case<'_>, one: &ThrottledSource<'_>) -> f64 {
    let share = one.stopped.delta / one.periods.delta.max(1.0);
    let before = case.well_before().and_then(|calm| {
        let of = |metric| calm.counter_where(|s| s == one.process.source, metric, &[], ENABLE).ok();
        let (periods, stopped) =
            (of(metrics::cgroup::CPU_PERIODS.name)?, of(metrics::cgroup::CPU_THROTTLED_PERIODS.name)?);
        Some(stopped.delta / periods.delta.max(1.0))
    });
    if before.is_some_and(|before| share >= TIMES * before) { share.max(BEGAN) } else { share }
}
