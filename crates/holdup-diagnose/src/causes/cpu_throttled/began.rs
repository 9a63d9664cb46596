//! Whether stops at the quota began with the episode.

use holdup_recording::metrics;

use crate::case::Case;
use crate::resources::cpu_quotas::{ENABLE, ThrottledSource};

/// At least this many times as many stops a second as in the baseline window began with the episode …
const TIMES: f64 = 3.0;

/// … and are worth this much (0-1) as evidence, in however few periods: a burst that meets one of
/// them waits for its end.
const BEGAN: f64 = 0.8;

/// What the share (0-1) of periods in which it was stopped is worth. Before a quota is set, no period
/// is counted, so stops are compared by the second.
pub(super) fn worth(case: &Case<'_>, one: &ThrottledSource<'_>) -> f64 {
    const STOPPED: &str = metrics::cgroup::CPU_THROTTLED_PERIODS.name;
    let share = one.stopped.delta / one.periods.delta.max(1.0);
    let before = case
        .well_before()
        .and_then(|baseline| baseline.counter_where(|source| source == one.process.source, STOPPED, &[], ENABLE).ok());
    let began = before.is_some_and(|before| one.stopped.rate() >= TIMES * before.rate());
    if began && share > 0.0 { share.max(BEGAN) } else { share }
}
