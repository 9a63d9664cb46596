//! How late and how evenly requests arrived, from the times at which the server's kernel received them. Nothing that a
//! tool says of itself is used; only the rate it was asked for.

use serde::{Deserialize, Serialize};

/// Start of a run that is left out: connections are opened and caches filled in it.
pub const WARM_UP_NS: u64 = 1_000_000_000;

/// A gap this much shorter than the scheduled one is a burst's.
const SHORT_GAP: f64 = 0.1;

/// The window in which the largest burst is looked for.
const BURST_NS: u64 = 1_000_000;

/// Arrivals of an open-model run at a constant rate, held against their schedule.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Arrivals {
    /// Requests that were judged (those after the warm-up).
    pub judged: u64,
    /// Median lateness of arrivals, milliseconds.
    pub late_p50_ms: f64,
    /// 99th percentile of lateness, milliseconds.
    pub late_p99_ms: f64,
    /// Greatest lateness, milliseconds.
    pub late_max_ms: f64,
    /// Share of gaps between arrivals that are shorter than a tenth of the scheduled gap.
    pub short_gaps_ratio: f64,
    /// Standard deviation of the gaps over their mean: 0 for a metronome, 1 for a Poisson process.
    pub gaps_variation: f64,
    /// Most arrivals within any millisecond.
    pub burst_most: u64,
}

/// Fits the schedule and judges. `stamps` are nanoseconds in any order, `rate` is requests a second. The k-th
/// arrival (from 0, after the warm-up) belongs to `t0 + k / rate`; t0 is the latest start with which none is early,
/// `min over k of (stamp_k - k / rate)`. A tool that leaves out requests is late by those it left out. None if fewer
/// than two arrivals are left.
pub fn fit(stamps: &mut [u64], rate: f64, warm_up_ns: u64) -> Option<Arrivals> {
    stamps.sort_unstable();
    let from = *stamps.first()? + warm_up_ns;
    let judged = &stamps[stamps.partition_point(|stamp| *stamp < from)..];
    let first = *judged.first()?;
    if judged.len() < 2 {
        return None;
    }
    let interval_ns = 1e9 / rate;
    let mut late: Vec<f64> =
        judged.iter().zip(0_u32..).map(|(stamp, k)| (stamp - first) as f64 - f64::from(k) * interval_ns).collect();
    let earliest = late.iter().copied().fold(f64::INFINITY, f64::min);
    for late in &mut late {
        *late = (*late - earliest) / 1e6;
    }
    late.sort_unstable_by(f64::total_cmp);
    let gaps: Vec<f64> = judged.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let short = gaps.iter().filter(|gap| **gap < SHORT_GAP * interval_ns).count();
    Some(Arrivals {
        judged: judged.len() as u64,
        late_p50_ms: rank(&late, 0.5),
        late_p99_ms: rank(&late, 0.99),
        late_max_ms: rank(&late, 1.0),
        short_gaps_ratio: short as f64 / gaps.len() as f64,
        gaps_variation: variation(&gaps),
        burst_most: burst(judged),
    })
}

/// The value at this rank (nearest rank) of sorted values; NaN if there are none.
fn rank(sorted: &[f64], quantile: f64) -> f64 {
    let at = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(at.max(1) - 1).copied().unwrap_or(f64::NAN)
}

fn variation(gaps: &[f64]) -> f64 {
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    variance.sqrt() / mean
}

/// Most of the sorted times within one window.
fn burst(sorted: &[u64]) -> u64 {
    let mut from = 0;
    let mut most = 0;
    for (to, time) in sorted.iter().enumerate() {
        while time - sorted[from] >= BURST_NS {
            from += 1;
        }
        most = most.max(to - from + 1);
    }
    most as u64
}

/// What the freeze test's answers must look like by arithmetic: a constant rate for `seconds`, a server that stops
/// for `stop_seconds` and serves any number of requests at once. The quantile of response time, in milliseconds,
/// where it lies among those that the stop held up; the rest take the service time.
pub fn frozen_quantile_ms(quantile: f64, seconds: f64, stop_seconds: f64) -> Option<f64> {
    let after = seconds * (1.0 - quantile);
    (after < stop_seconds).then_some((stop_seconds - after) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals at `rate` with this lateness each, after a second's warm-up that is to be ignored.
    fn arrivals(rate: u64, count: u64, late_ns: impl Fn(u64) -> u64) -> Vec<u64> {
        let warm_up = (0..20).map(|k| 5_000_000_000 + k);
        warm_up.chain((0..count).map(|k| 6_000_000_000 + k * 1_000_000_000 / rate + late_ns(k))).collect()
    }

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-6 * expected.abs().max(1.0)
    }

    #[test]
    fn a_metronome_is_never_late() {
        let seen = fit(&mut arrivals(1000, 5000, |_| 70_000), 1000.0, WARM_UP_NS).unwrap();
        assert_eq!(seen.judged, 5000);
        assert!(near(seen.late_max_ms, 0.0) && near(seen.gaps_variation, 0.0), "{seen:?}");
        assert_eq!((seen.short_gaps_ratio, seen.burst_most), (0.0, 1));
    }

    #[test]
    fn known_lateness_is_found() {
        // Every 50th is 3 ms late, the others 0.2 ms, one is on time and so pins the schedule.
        let late = |k| match k {
            0 => 0,
            k if k % 50 == 0 => 3_000_000,
            _ => 200_000,
        };
        let seen = fit(&mut arrivals(100, 10_000, late), 100.0, WARM_UP_NS).unwrap();
        assert!(near(seen.late_p50_ms, 0.2) && near(seen.late_p99_ms, 3.0) && near(seen.late_max_ms, 3.0), "{seen:?}");
    }

    #[test]
    fn bursts_are_no_even_pace() {
        // Ten at once, every 10 ms.
        let mut stamps: Vec<u64> = (0..1000).map(|k| k / 10 * 10_000_000).collect();
        let seen = fit(&mut stamps, 1000.0, 0).unwrap();
        assert_eq!(seen.burst_most, 10);
        assert!(seen.short_gaps_ratio > 0.89 && seen.gaps_variation > 2.5, "{seen:?}");
        assert!(near(seen.late_max_ms, 9.0), "{seen:?}");
    }

    #[test]
    fn a_tool_that_leaves_out_is_late() {
        let mut stamps: Vec<u64> = (0..900).map(|k| k * 1_111_111).collect();
        let seen = fit(&mut stamps, 1000.0, 0).unwrap();
        assert!(seen.late_max_ms > 99.0 && seen.late_max_ms < 101.0, "{seen:?}");
        assert_eq!(fit(&mut [7], 1000.0, 0), None);
    }

    #[test]
    fn the_freeze_in_figures() {
        let of = |q| frozen_quantile_ms(q, 20.0, 2.0);
        assert!(near(of(0.99).unwrap(), 1800.0) && near(of(0.999).unwrap(), 1980.0) && near(of(1.0).unwrap(), 2000.0));
        assert_eq!(of(0.5), None);
    }
}
