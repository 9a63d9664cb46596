//! What is usual in baseline seconds, whatever a few of them met.

use super::{DEGRADED_FACTOR, MANY, TAIL};
use crate::time::distribution::Distribution;
use crate::time::requests::Second;

/// Share (0-1) of baseline seconds that may stand out of the others and still be few.
const ODD: f64 = 0.25;

/// Mean response time of baseline seconds, milliseconds. A few that stand out are left out: what only
/// warms up, or a request that met a stall, would else hide that all others became slower.
pub(super) fn usual_mean(seconds: &[Second]) -> Option<f64> {
    let of = |s: &Second| s.response_ms.mean().unwrap_or(0.0);
    let middle = Distribution::from_counts(seconds.iter().map(|s| (of(s), 1))).quantile(0.5)?;
    let (usual, odd): (Vec<&Second>, Vec<&Second>) = seconds.iter().partition(|s| of(s) <= DEGRADED_FACTOR * middle);
    let is_few = odd.len() as f64 <= ODD * seconds.len() as f64;
    let kept = if is_few { usual } else { seconds.iter().collect() };
    Distribution::merged(kept.into_iter().map(|s| &s.response_ms)).mean()
}

/// First quartile of the seconds' medians, milliseconds.
pub(super) fn baseline_median(seconds: &[Second]) -> Option<f64> {
    Distribution::from_counts(seconds.iter().filter_map(|s| Some((s.quantile(0.5)?, 1)))).quantile(0.25)
}

/// Median of the seconds' 95th percentiles, milliseconds.
pub(super) fn baseline_tail(seconds: &[Second]) -> Option<f64> {
    let tails = seconds.iter().filter(|s| s.offered >= MANY).filter_map(|s| Some((s.quantile(TAIL)?, 1)));
    Distribution::from_counts(tails).quantile(0.5)
}
