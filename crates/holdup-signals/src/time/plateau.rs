//! A plateau: a rate that stays at one level although more is demanded. It is found in the rate
//! itself, at any level; rules decide which limit that is, and whose. A level alone proves nothing,
//! since a steady load has one.
//!
//! [`ceilings`] finds levels together with the demand beyond them, also several and for a part of
//! the time. [`Plateau`] only says how level a rate is as a whole, where no queue is known.

mod ceilings;

pub use ceilings::{Ceiling, Demand, Fall, Freer, QueuedRate, ceilings, falls, freer_before, sum};

use crate::Growth;

/// A rate within this share (0-1) of the median is at its level: samples a second apart miss by a
/// few per cent, and so do a token bucket's burst and a late read.
const NEAR: f64 = 0.08;

/// Least number of intervals to judge.
const LEAST_INTERVALS: usize = 8;

/// Share (0-1) of intervals that must be at the level: p10 to p90 of a distribution.
const AT_LEVEL: f64 = 0.8;

/// A limit is never exceeded, but a machine that stalls falls short of it. If at most this share
/// (0-1) of intervals is above the level, fewer must be at it.
const ABOVE: f64 = 0.05;
const AT_LEVEL_FROM_BELOW: f64 = 0.6;

/// A rate over intervals, and how level it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// Median, per second.
    pub level: f64,
    /// Share (0-1) of intervals within 8 % of the median.
    pub at_level_ratio: f64,
    /// Share (0-1) of intervals above that.
    pub above_ratio: f64,
    /// Intervals.
    pub intervals: usize,
}

impl Plateau {
    /// How level `rates` (per second) are; none if they are too few. The first and the last should
    /// be left out, because load begins and ends in them: see [`inner`].
    pub fn from_rates(rates: &[f64]) -> Option<Self> {
        if rates.len() < LEAST_INTERVALS {
            return None;
        }
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let level = sorted[sorted.len() / 2];
        let near = sorted.iter().filter(|rate| (*rate - level).abs() <= NEAR * level).count();
        let above = sorted.iter().filter(|rate| **rate > (1.0 + NEAR) * level).count();
        let ratio = |count| count as f64 / sorted.len() as f64;
        Some(Self { level, at_level_ratio: ratio(near), above_ratio: ratio(above), intervals: sorted.len() })
    }

    /// Whether it is a plateau.
    pub fn is_flat(&self) -> bool {
        let least = if self.above_ratio <= ABOVE { AT_LEVEL_FROM_BELOW } else { AT_LEVEL };
        self.level > 0.0 && self.at_level_ratio >= least
    }
}

/// All but the first and the last.
pub fn inner(growths: &[Growth]) -> &[Growth] {
    growths.get(1..growths.len().saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;

    #[test]
    fn a_level_is_seen_through_an_outlier() {
        let mut rates = vec![500.0, 505.0, 498.0, 470.0, 520.0, 501.0, 499.0, 503.0, 500.0];
        let flat = Plateau::from_rates(&rates).unwrap();
        assert!(flat.is_flat() && flat.level == 500.0, "{flat:?}");
        rates[0] = 90.0;
        assert!(Plateau::from_rates(&rates).unwrap().is_flat());
        // A machine that stalls now and then falls short of a limit, and never exceeds it.
        let stalled: Vec<f64> = (0..20).map(|i| if i % 4 == 0 { 100.0 } else { 190.0 }).collect();
        assert!(Plateau::from_rates(&stalled).unwrap().is_flat());
        let bursts: Vec<f64> = (0..20).map(|i| if i % 4 == 0 { 300.0 } else { 190.0 }).collect();
        assert!(!Plateau::from_rates(&bursts).unwrap().is_flat());
        let rising: Vec<f64> = (0..20).map(|i| 100.0 + 20.0 * f64::from(i)).collect();
        assert!(!Plateau::from_rates(&rising).unwrap().is_flat());
        assert!(!Plateau::from_rates(&[0.0; 9]).unwrap().is_flat());
        assert_eq!(Plateau::from_rates(&rates[..7]), None);
    }

    #[test]
    fn edges_are_left_out() {
        let growth = |i| Growth { window: Window { from: i, to: i + 1 }, delta: 1.0 };
        let all: Vec<Growth> = (0..4).map(growth).collect();
        assert_eq!(inner(&all).len(), 2);
        assert!(inner(&all[..1]).is_empty());
    }
}
