//! Thins points in time so that a bounded number stays: of each series the first in every step. When
//! there are too many, the step doubles. What stays is the same as if the last step had been known
//! from the beginning.

use std::hash::Hash;

use super::grouped::Grouped;

/// First step, nanoseconds: sources are read once a second.
const FIRST_STEP_NS: i64 = 2_000_000_000;

/// Longest step, nanoseconds: an hour. Then there are more series than points are allowed.
const LONGEST_STEP_NS: i64 = 3_600_000_000_000;

/// How many points stay, and at which distance.
#[derive(Clone, Copy, Debug)]
struct Thinning {
    most: usize,
    count: usize,
    /// Nanoseconds; 0 as long as all points stay.
    step_ns: i64,
}

impl Thinning {
    /// To at most `most` points.
    fn to(most: usize) -> Self {
        Self { most, count: 0, step_ns: 0 }
    }

    /// Whether the point at `at` stays. `until` is the end of its series' present step.
    fn takes(&mut self, until: &mut i64, at: i64) -> bool {
        if self.step_ns > 0 {
            if at < *until {
                return false;
            }
            *until = self.end_of_step(at);
        }
        self.count += 1;
        true
    }

    /// The end of the step of `at`.
    fn end_of_step(&self, at: i64) -> i64 {
        at.div_euclid(self.step_ns).saturating_add(1).saturating_mul(self.step_ns)
    }

    /// Removes points from `series`, each with the end of its present step, if there are too many.
    fn keep_to<P>(&mut self, series: &mut [(Vec<P>, i64)], at: impl Fn(&P) -> i64) {
        while self.count > self.most {
            if self.step_ns >= LONGEST_STEP_NS {
                self.most = usize::MAX;
                return;
            }
            self.step_ns = (2 * self.step_ns).max(FIRST_STEP_NS);
            self.count = 0;
            for (points, until) in &mut *series {
                points.dedup_by_key(|point| at(point).div_euclid(self.step_ns));
                self.count += points.len();
                *until = points.last().map_or(i64::MIN, |last| self.end_of_step(at(last)));
            }
        }
    }
}

/// What has a time.
pub(super) trait Timed {
    /// Nanoseconds since the Unix epoch.
    fn at(&self) -> i64;
}

/// Points by key as they come, thinned.
pub(super) struct Thinned<K, P> {
    groups: Grouped<K>,
    /// Each with the end of its present step.
    points: Vec<(Vec<P>, i64)>,
    thinning: Thinning,
}

impl<K: Copy + Eq + Hash, P: Timed> Thinned<K, P> {
    /// Keeps at most `most` points, roughly; all of them by `usize::MAX`.
    pub fn to(most: usize) -> Self {
        Self { groups: Grouped::default(), points: Vec::new(), thinning: Thinning::to(most) }
    }

    /// The distance of points, nanoseconds; 0 if all are there.
    pub fn step_ns(&self) -> i64 {
        self.thinning.step_ns
    }

    /// Adds `point` if it stays. Returns the number of its key.
    pub fn add(&mut self, key: K, point: P) -> usize {
        let number = self.groups.number(key);
        if number == self.points.len() {
            self.points.push((Vec::new(), i64::MIN));
        }
        let (points, until) = &mut self.points[number];
        if self.thinning.takes(until, point.at()) {
            points.push(point);
            self.thinning.keep_to(&mut self.points, P::at);
        }
        number
    }

    /// Keys in order of their appearance, each with its points.
    pub fn groups(self) -> impl Iterator<Item = (K, Vec<P>)> {
        self.groups.keys.into_iter().zip(self.points.into_iter().map(|(points, _)| points))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_samples_are_spread_evenly() {
        let mut thinning = Thinning::to(100);
        let mut series: Vec<(Vec<i64>, i64)> = vec![(Vec::new(), i64::MIN); 3];
        let at = |second: i64, number: i64| second * 1_000_000_000 + number * 1_000;
        for second in 0..1_000 {
            for number in 0..3 {
                let (points, until) = &mut series[number as usize];
                if thinning.takes(until, at(second, number)) {
                    points.push(at(second, number));
                }
                thinning.keep_to(&mut series, |at| *at);
            }
        }
        assert_eq!(thinning.step_ns, 32_000_000_000);
        for (number, (points, _)) in (0..).zip(&series) {
            let expected: Vec<i64> = (0..1_000).step_by(32).map(|second| at(second, number)).collect();
            assert_eq!(*points, expected);
        }
    }

    #[test]
    fn all_stay_where_they_fit() {
        let mut thinning = Thinning::to(usize::MAX);
        let mut until = i64::MIN;
        assert!((0..10).all(|_| thinning.takes(&mut until, 5)));
        assert_eq!(thinning.step_ns, 0);
    }
}
