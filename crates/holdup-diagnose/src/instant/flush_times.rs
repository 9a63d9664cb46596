//! Histograms of how long a server waited until its log was on the disk, as etcd, Consul, Kafka and others
//! export them.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::within;

use crate::strength::{FAIR, STRONG, Strength};

/// Words in the names of such histograms.
const NAMES: [&str; 4] = ["fsync", "wal_sync", "log_flush_time", "journal_sync"];

/// A disk with a cache that survives a power cut syncs in about a millisecond, others in a few. Half of all
/// syncs above this bound each commit that waits for one, seconds.
const HALF_S: f64 = 0.016;

/// One in a hundred above this stalls a quorum, seconds.
const HUNDREDTH_S: f64 = 0.1;

/// So few show no share.
const LEAST: f64 = 100.0;

/// The largest share (0-1) that may be slow.
const ONE_PERCENT: f64 = 0.01;

/// What each histogram shows, if its syncs are slow.
pub(crate) fn slow(view: &View<'_>) -> Vec<(Strength, Evidence)> {
    let names = view.index.condensed.series.by_metric.keys();
    let is_own = |name: &&str| name.ends_with("_bucket") && NAMES.iter().any(|of| name.contains(of));
    let names: Vec<&str> = names.map(AsRef::as_ref).filter(is_own).collect();
    names.into_iter().filter_map(|name| of_histogram(view, name)).collect()
}

/// Counts by the upper bound of each bucket: those of the stretch, or of one reading those since the start.
fn buckets(view: &View<'_>, name: &str) -> BTreeMap<u64, f64> {
    let mut all: BTreeMap<u64, f64> = BTreeMap::new();
    for ((_, labels), points) in view.index.series(name, &[]) {
        let points = within(points, view.window);
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let grown = if points.len() > 1 { (last.1 - first.1).max(0.0) } else { last.1 };
        let bound = labels.get("le").and_then(|le| le.parse::<f64>().ok()).filter(|le| *le >= 0.0);
        let Some(bound) = bound else { continue };
        // Bits of numbers that are not negative are in the numbers' order.
        *all.entry(bound.to_bits()).or_default() += grown;
    }
    all
}

fn of_histogram(view: &View<'_>, name: &str) -> Option<(Strength, Evidence)> {
    let buckets = buckets(view, name);
    let all = buckets.values().copied().fold(0.0, f64::max);
    if all < LEAST {
        return None;
    }
    let above = |bound_s: f64| {
        let below = buckets.range(..=bound_s.to_bits()).next_back().map_or(0.0, |(_, count)| *count);
        let is_known = buckets.keys().any(|bound| f64::from_bits(*bound) <= bound_s);
        if is_known { 1.0 - below / all } else { 0.0 }
    };
    // The nearest bucket at or above the bound.
    let nearest = |bound_s: f64| {
        buckets.keys().map(|bound| f64::from_bits(*bound)).find(|bound| *bound >= bound_s && bound.is_finite())
    };
    let (half_s, hundredth_s) = (nearest(HALF_S)?, nearest(HUNDREDTH_S));
    let (bound_s, strength) = match hundredth_s {
        _ if above(half_s) >= 0.5 => (half_s, STRONG),
        Some(bound_s) if above(bound_s) >= ONE_PERCENT => (bound_s, FAIR),
        _ => return None,
    };
    let share = percent(above(bound_s));
    let text =
        format!("{share} of {} syncs of the log took longer than {} ({name})", thousands(all), ms(bound_s * 1e3));
    let labels = Labels::new([("metric", name)]);
    let expected = "about 1 % above 10 ms";
    Some((strength, Evidence::new("samples", "value", labels, view.window, share, expected, text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    fn chance(counts: &[(&str, f64)]) -> Option<f64> {
        let made = counts.iter().fold(SyntheticRecording::new(1), |made, (le, count)| {
            made.gauge("prometheus:paste", "etcd_disk_wal_fsync_duration_seconds_bucket", &[("le", le)], *count)
        });
        made.seen(|view| slow(view).first().map(|(strength, _)| strength.chance()))
    }

    #[test]
    fn slow_syncs_are_signs_and_quick_ones_are_not() {
        let slow = [("0.001", 0.0), ("0.016", 400.0), ("0.064", 21_000.0), ("0.128", 29_000.0), ("+Inf", 29_700.0)];
        assert_eq!(chance(&slow), Some(STRONG.chance()));
        let tail = [("0.001", 9_000.0), ("0.016", 9_700.0), ("0.128", 9_800.0), ("+Inf", 10_000.0)];
        assert_eq!(chance(&tail), Some(FAIR.chance()));
        let quick = [("0.001", 9_000.0), ("0.016", 9_990.0), ("0.128", 9_999.0), ("+Inf", 10_000.0)];
        assert_eq!(chance(&quick), None);
        assert_eq!(chance(&[("0.016", 1.0), ("+Inf", 7.0)]), None, "so few");
    }
}
