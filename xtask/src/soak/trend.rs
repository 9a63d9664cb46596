//! The slope of a series, with its error: does it grow? A line through the means of blocks, because neighbouring values are alike and
//! would make the error look smaller than it is.

use serde::{Deserialize, Serialize};

/// Blocks that a series is cut into.
const BLOCKS: usize = 10;

/// Values of Student's t for a probability of 0.95 on both sides, by degrees of freedom from 1 on.
const STUDENT: [f64; BLOCKS - 2] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31];

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// How a value went over a slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    pub first: f64,
    pub last: f64,
    pub mean: f64,
    pub slope_per_hour: f64,
    /// Half the width of the slope's interval of 95 %.
    pub error_per_hour: f64,
}

impl Trend {
    /// Of values at seconds, in their order. Without three blocks there is no error to be had: it is without bound then.
    pub fn of(points: &[(f64, f64)]) -> Self {
        Self::of_blocks(points, middle)
    }

    /// The same by the lowest values: of what comes and goes, such as memory for a while, they show what stays.
    pub fn of_lowest(points: &[(f64, f64)]) -> Self {
        let lowest = |block: &[(f64, f64)]| block.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        Self::of_blocks(points, |block| (middle(block).0, lowest(block)))
    }

    fn of_blocks(points: &[(f64, f64)], block: impl Fn(&[(f64, f64)]) -> (f64, f64)) -> Self {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return Self::default() };
        let mean = mean(points.iter().map(|point| point.1));
        let blocks: Vec<(f64, f64)> = points.chunks(points.len().div_ceil(BLOCKS)).map(block).collect();
        let (slope, error) = slope(&blocks);
        Self {
            first: first.1,
            last: last.1,
            mean,
            slope_per_hour: slope * SECONDS_PER_HOUR,
            error_per_hour: error * SECONDS_PER_HOUR,
        }
    }

    /// Whether it grows: certainly, and by more than `share` of its mean in an hour.
    pub fn grows(&self, share: f64) -> bool {
        self.slope_per_hour > self.error_per_hour && self.slope_per_hour > share * self.mean
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

fn middle(points: &[(f64, f64)]) -> (f64, f64) {
    (mean(points.iter().map(|point| point.0)), mean(points.iter().map(|point| point.1)))
}

/// Least squares: the slope, and half the width of its interval of 95 %.
fn slope(points: &[(f64, f64)]) -> (f64, f64) {
    let Some(student) = points.len().checked_sub(3).and_then(|index| STUDENT.get(index)) else {
        return (0.0, f64::MAX);
    };
    let (x, y) = middle(points);
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if spread == 0.0 {
        return (0.0, f64::MAX);
    }
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
    let rest: f64 = points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum();
    (slope, student * (rest / (points.len() - 2) as f64 / spread).sqrt())
}

#[cfg(test)]
mod unit {
    use super::*;

    fn series(value: impl Fn(f64) -> f64) -> Trend {
        let points: Vec<(f64, f64)> = (0..200).map(|i| f64::from(i) * 5.0).map(|at| (at, value(at))).collect();
        Trend::of(&points)
    }

    #[test]
    fn what_grows_is_told_from_what_goes_up_and_down() {
        let leak = series(|at| 1_000.0 + at * 0.1 + (at * 0.7).sin() * 20.0);
        assert!((leak.slope_per_hour - 360.0).abs() < leak.error_per_hour && leak.grows(0.05), "{leak:?}");
        let saw = series(|at| 1_000.0 + at % 96.0);
        assert!(!saw.grows(0.0) && saw.error_per_hour > 0.0, "{saw:?}");
        let even = series(|_| 12.0);
        assert_eq!((even.slope_per_hour, even.error_per_hour, even.grows(0.0)), (0.0, 0.0, false));
        // It grows, but by less than is looked for.
        let little = series(|at| 1_000.0 + at / 3_600.0);
        assert!(little.grows(0.0005) && !little.grows(0.01), "{little:?}");
    }

    #[test]
    fn what_comes_and_goes_does_not_stay() {
        // A merge in the last third takes 80 for 10 s in each 60.
        let merges = |at: f64| if at > 700.0 && at % 60.0 < 10.0 { 80.0 } else { 0.0 };
        let points = |stays: f64| -> Vec<(f64, f64)> {
            (0..240).map(|i| f64::from(i) * 5.0).map(|at| (at, 100.0 + stays * at + merges(at))).collect()
        };
        assert!(Trend::of(&points(0.0)).grows(0.05));
        assert!(!Trend::of_lowest(&points(0.0)).grows(0.0) && Trend::of_lowest(&points(0.02)).grows(0.05));
    }

    #[test]
    fn a_few_values_prove_nothing() {
        assert!(!Trend::of(&[(0.0, 1.0), (5.0, 900.0)]).grows(0.0));
        assert_eq!(Trend::of(&[]), Trend::default());
    }
}
