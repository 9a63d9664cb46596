//! How the executions of one group spread over time: sums by stretches of equal width. The width
//! doubles as the log grows, so a group keeps a bounded number of stretches, however long the log is.

use std::collections::BTreeMap;

use crate::digest::attribute::QUERY_TIME;
use crate::digest::event::Event;

/// Most stretches of one group.
const STRETCHES_MAX: usize = 64;

/// The least width, microseconds: most logs tell no less than a second.
const WIDTH_US: i64 = 1_000_000;

/// An end this far from a start and the duration belongs to another zone, microseconds.
const NEAR_US: u64 = 60_000_000;

/// Sums of the executions that ended in one stretch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Executions.
    pub calls: u64,
    /// Sums by attribute: of its values, or of the executions with that flag.
    sums: Vec<(u16, u64)>,
}

impl Stretch {
    /// The sum of an attribute; none if no execution had it.
    pub fn sum(&self, attribute: u16) -> Option<u64> {
        self.sums.iter().find(|(known, _)| *known == attribute).map(|(_, sum)| *sum)
    }

    fn put(&mut self, attribute: u16, value: u64) {
        match self.sums.iter_mut().find(|(known, _)| *known == attribute) {
            Some((_, sum)) => *sum = sum.saturating_add(value),
            None => self.sums.push((attribute, value)),
        }
    }

    /// Adds another stretch, whose attributes `number` translates.
    pub fn add(&mut self, other: &Self, number: &dyn Fn(u16) -> Option<u16>) {
        self.calls = self.calls.saturating_add(other.calls);
        for (attribute, sum) in &other.sums {
            if let Some(attribute) = number(*attribute) {
                self.put(attribute, *sum);
            }
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Course {
    width_us: i64,
    stretches: BTreeMap<i64, Stretch>,
}

impl Default for Course {
    fn default() -> Self {
        Self { width_us: WIDTH_US, stretches: BTreeMap::new() }
    }
}

impl Course {
    /// Adds an execution, at its end; without a time it cannot be placed.
    pub fn add(&mut self, event: &Event) {
        let took = event.measures.iter().find(|(number, _)| *number == QUERY_TIME).map_or(0, |(_, value)| *value);
        let took = i64::try_from(took).unwrap_or(0);
        // The two may be of different zones: seconds since 1970, and the server's own time.
        let is_near = |end: &i64| event.at_us.is_none_or(|at| end.abs_diff(at) <= took.unsigned_abs() + NEAR_US);
        let ended = event.ended_us.filter(is_near);
        let Some(end) = ended.or_else(|| event.at_us?.checked_add(took)) else { return };
        let stretch = self.at(end);
        stretch.calls += 1;
        event.measures.iter().for_each(|(number, value)| stretch.put(*number, *value));
        event.flags.iter().for_each(|(number, is_so)| stretch.put(*number, u64::from(*is_so)));
        self.widen();
    }

    /// Adds an execution of which only its time is known.
    pub fn add_time(&mut self, ended_us: i64, took_us: u64) {
        let stretch = self.at(ended_us);
        stretch.calls += 1;
        stretch.put(QUERY_TIME, took_us);
        self.widen();
    }

    /// The stretches so far, in order, in stretches of `width_us` at least: the end of each,
    /// microseconds.
    pub fn by(&self, width_us: i64) -> BTreeMap<i64, Stretch> {
        let width_us = width_us.max(self.width_us);
        let mut found: BTreeMap<i64, Stretch> = BTreeMap::new();
        for (index, stretch) in &self.stretches {
            let begin = index.saturating_mul(self.width_us);
            let end = begin.div_euclid(width_us).saturating_add(1).saturating_mul(width_us);
            found.entry(end).or_default().add(stretch, &Some);
        }
        found
    }

    /// Width of its stretches, microseconds: a power of two of seconds.
    pub fn width_us(&self) -> i64 {
        self.width_us
    }

    /// Adds another thread's course of the same group.
    pub fn merge(&mut self, other: &Self, number: &dyn Fn(u16) -> Option<u16>) {
        while self.width_us < other.width_us {
            self.double();
        }
        for (index, stretch) in &other.stretches {
            let begin = index.saturating_mul(other.width_us);
            self.at(begin).add(stretch, number);
        }
        self.widen();
    }

    fn at(&mut self, at_us: i64) -> &mut Stretch {
        self.stretches.entry(at_us.div_euclid(self.width_us)).or_default()
    }

    fn widen(&mut self) {
        while self.stretches.len() > STRETCHES_MAX {
            self.double();
        }
    }

    fn double(&mut self) {
        self.width_us = self.width_us.saturating_mul(2);
        for (index, stretch) in std::mem::take(&mut self.stretches) {
            self.stretches.entry(index.div_euclid(2)).or_default().add(&stretch, &Some);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(times: impl Iterator<Item = i64>) -> Course {
        let mut course = Course::default();
        for at_us in times {
            course.add(&Event { at_us: Some(at_us), measures: &[(QUERY_TIME, 500_000), (3, 7)], ..Event::default() });
        }
        course
    }

    #[test]
    fn a_long_log_has_few_stretches_and_loses_nothing() {
        let course = made((0..10_000).map(|second| second * 1_000_000));
        assert!(course.stretches.len() <= STRETCHES_MAX);
        let all = course.by(0);
        assert_eq!(all.values().map(|stretch| stretch.calls).sum::<u64>(), 10_000);
        assert_eq!(all.values().filter_map(|stretch| stretch.sum(3)).sum::<u64>(), 70_000);
        // An execution that began at 255.5 s ended at 256.
        assert_eq!(all.keys().next(), Some(&course.width_us()));
    }

    #[test]
    fn two_parts_are_one_course_whatever_their_widths() {
        let (long, short) = (made((0..1_000).map(|s| s * 1_000_000)), made([5_000_000, 900_000_000].into_iter()));
        let (mut one, mut other) = (long.clone(), short.clone());
        one.merge(&short, &Some);
        other.merge(&long, &Some);
        assert_eq!(one.by(0), other.by(0));
        assert_eq!(one.by(0).values().map(|stretch| stretch.calls).sum::<u64>(), 1_002);
    }
}
