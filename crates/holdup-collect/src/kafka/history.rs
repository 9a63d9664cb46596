//! When the records of one partition came: points of time and offset, from holdup's own samples of the
//! log's end, and from the broker's index of time stamps. Between two points the records are taken to
//! have come evenly.

/// A lag may be off by this share of it …
const SHARE: f64 = 1.0 / 25.0;

/// … and by this much however short it is, ms: samples are as far apart.
const NEAR_MS: f64 = 1_000.0;

/// Points that are kept without a look at how many are needed.
const FEW: usize = 64;

/// At this time, ms since 1970, the records below `offset` had come, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    at_ms: i64,
    offset: i64,
    /// Whether the record `offset` itself came at that time.
    is_record: bool,
}

/// The points of a partition, in order of time and of offset.
#[derive(Debug, Default)]
pub(super) struct History {
    points: Vec<Point>,
    /// With so many points the next look at how many are needed.
    crowded: usize,
    /// Whether the first point is the first record that the log still has.
    knows_start: bool,
    /// How often the index was asked: every other time in the middle of what is open.
    asked: u32,
}

/// How long ago a record came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Age {
    /// Seconds.
    Known(f64),
    /// Ask the broker's index for this time, ms since 1970.
    Ask(i64),
}

impl History {
    /// Adds the `end` of the log, as it was at a time.
    pub(super) fn add(&mut self, at_ms: i64, end: i64) {
        self.put(Point { at_ms, offset: end, is_record: false });
    }

    /// Adds a point. One that contradicts the others is left out: a producer's clock may differ.
    fn put(&mut self, point: Point) {
        let place = self.points.partition_point(|other| other.at_ms <= point.at_ms);
        let (before, after) = self.points.split_at_mut(place);
        let fits = before.last().is_none_or(|other| other.offset <= point.offset)
            && after.first().is_none_or(|other| other.offset >= point.offset);
        if !fits {
            return;
        }
        // While nothing comes, the first and the last point say all.
        if let [.., first, last] = before
            && first.offset == point.offset
            && last.offset == point.offset
        {
            *last = point;
            return;
        }
        self.points.insert(place, point);
        if self.points.len() > self.crowded.max(FEW) {
            self.thin();
            self.crowded = self.points.len() + FEW;
        }
    }

    /// Leaves out points whose neighbours are near enough to each other: the longer ago, the fewer.
    fn thin(&mut self) {
        let newest = self.points.last().map_or(0, |point| point.at_ms);
        let mut kept: Vec<Point> = Vec::with_capacity(self.points.len());
        for (place, point) in self.points.iter().enumerate() {
            let gap = kept
                .last()
                .zip(self.points.get(place + 1))
                .map(|(last, next)| ((next.at_ms - last.at_ms) as f64, (newest - next.at_ms) as f64));
            if !gap.is_some_and(|(gap, age)| gap <= age * SHARE / 2.0) {
                kept.push(*point);
            }
        }
        self.points = kept;
    }

    /// Forgets what dates records before `offset`: every group has done with them.
    pub(super) fn forget(&mut self, offset: i64) {
        let needed = self.points.partition_point(|point| point.offset <= offset).saturating_sub(1);
        if needed > 0 {
            self.points.drain(..needed);
            self.knows_start = false;
        }
    }

    /// Adds the broker's answer to a question for the first record at or after `asked_ms`: its time and
    /// offset, or none, and then the log's `end`.
    pub(super) fn answer(&mut self, asked_ms: i64, record: Option<(i64, i64)>, end: i64) {
        self.asked = self.asked.wrapping_add(1);
        let offset = record.map_or(end, |(_, offset)| offset);
        if asked_ms > 0 {
            self.add(asked_ms, offset);
        }
        if let Some((at_ms, offset)) = record {
            self.knows_start |= asked_ms == 0;
            self.put(Point { at_ms, offset, is_record: true });
        }
    }

    /// How long before `now_ms` the record `offset` came.
    pub(super) fn age(&self, offset: i64, now_ms: i64) -> Age {
        let upper = self.points.partition_point(|point| point.offset <= offset);
        let (below, above) = self.points.split_at(upper);
        // What the log no longer has came before what it has.
        let below = below.last().or_else(|| above.first().filter(|_| self.knows_start));
        let Some(below) = below else { return Age::Ask(0) };
        let open = Point { at_ms: now_ms, offset: i64::MAX, is_record: false };
        let above = above.iter().find(|point| point.offset > offset).copied().unwrap_or(open);
        let (from, to) = (below.at_ms as f64, above.at_ms as f64);
        let passed = (offset - below.offset).max(0) as f64;
        let came = from + passed / above.offset.saturating_sub(below.offset).max(1) as f64 * (to - from);
        let age = ((now_ms as f64 - came) / 1e3).max(0.0);
        if (passed == 0.0 && below.is_record) || to - from <= NEAR_MS.max(SHARE * age * 1e3) {
            return Age::Known(age);
        }
        Age::Ask(if self.asked.is_multiple_of(2) { came.clamp(from + 1.0, to) } else { from.midpoint(to) } as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broker's index over records at these times (ms), of which record 0 is the first.
    fn first_since(times: &[i64], asked_ms: i64) -> Option<(i64, i64)> {
        let at = times.iter().position(|time| *time >= asked_ms)?;
        Some((times[at], at as i64))
    }

    /// The age of a record after as many questions as it takes, and their number.
    fn found(times: &[i64], offset: i64, now_ms: i64) -> (f64, usize) {
        let mut history = History::default();
        history.add(now_ms, times.len() as i64);
        for questions in 0..40 {
            match history.age(offset, now_ms) {
                Age::Known(age) => return (age, questions),
                Age::Ask(asked_ms) => history.answer(asked_ms, first_since(times, asked_ms), times.len() as i64),
            }
        }
        panic!("no end: {history:?}");
    }

    #[test]
    fn the_index_finds_the_age_of_a_record_in_few_questions() {
        let even: Vec<i64> = (0..10_000).map(|n| 1_000_000 + n * 100).collect();
        let burst: Vec<i64> = (0..10_000).map(|n| 1_000_000 + if n < 9_000 { n } else { n * 100 }).collect();
        for (times, offset) in [(&even, 2_500), (&even, 9_990), (&even, 0), (&burst, 8_000), (&burst, 9_500)] {
            let truth = (2_100_000 - times[offset]) as f64 / 1e3;
            let (age, questions) = found(times, offset as i64, 2_100_000);
            assert!((age - truth).abs() <= (0.05 * truth).max(1.0), "{age} for {truth}");
            // As many as are asked before the first sample.
            assert!(questions <= 16, "{questions}");
        }
    }

    #[test]
    fn own_samples_are_enough_once_there_are_some() {
        let mut history = History::default();
        (0..=600).for_each(|second| history.add(1_000_000 + second * 1_000, second * 50));
        assert!(history.points.len() <= 4 * FEW, "{}", history.points.len());
        for (offset, truth) in [(29_000, 20.0), (15_000, 300.0), (1_000, 580.0)] {
            let Age::Known(age) = history.age(offset, 1_600_000) else { panic!("{offset}") };
            assert!((age - truth).abs() <= 0.05 * truth, "{age} for {truth}");
        }
    }

    #[test]
    fn a_record_after_hours_of_silence_is_young() {
        let mut history = History::default();
        (0..7_200).for_each(|second| history.add(second * 1_000, 70));
        history.add(7_200_000, 71);
        let Age::Known(age) = history.age(70, 7_205_000) else { panic!("{history:?}") };
        assert!((5.0..=6.0).contains(&age), "{age}");
        assert!(history.points.len() <= 3);
    }

    #[test]
    fn a_producer_with_another_clock_does_not_disturb_the_order() {
        let mut history = History::default();
        (0..10).for_each(|second| history.add(1_000_000 + second * 1_000, 100 + second * 10));
        let before = history.points.clone();
        history.add(1_002_500, 900);
        history.answer(1_008_500, Some((5_000_000, 105)), 190);
        assert_eq!(history.points, before);
    }

    #[test]
    fn records_that_the_log_no_longer_has_are_as_old_as_its_first() {
        let mut history = History::default();
        history.add(500_000, 1_000);
        assert_eq!(history.age(10, 500_000), Age::Ask(0));
        history.answer(0, Some((400_000, 800)), 1_000);
        assert_eq!(history.age(10, 500_000), Age::Known(100.0));
    }
}
