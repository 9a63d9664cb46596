//! Statistics of one group of executions: one statement, or one statement of one user, and so on.
//! Parts of a group can be added in any order.

use crate::digest::attribute::{BIND_TIME, PARSE_TIME, QUERY_TIME};
use crate::digest::counts::Counts;
use crate::digest::course::Course;
use crate::digest::event::{Event, Kind, Position};
use crate::digest::measure::{Measure, ServerSums};
use crate::digest::plan::Plans;

/// Hours of a day.
pub const HOURS: usize = 24;

/// The slowest execution.
#[derive(Clone, Debug)]
pub struct Slowest {
    /// How long it took, microseconds.
    pub time_us: u64,
    /// Where its record begins.
    pub position: Position,
    /// When it began.
    pub at_us: Option<i64>,
    /// Its text without values.
    pub text: String,
    /// User, host, database and application; empty if unknown.
    pub who: [String; 4],
}

/// A group of executions.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Its identity: the digest, and its other grouping fields.
    pub id: String,
    /// Text of the statement without its values, as first seen.
    pub text: String,
    /// Values of its other grouping fields.
    pub group: Vec<String>,
    /// Place that `text` comes from.
    pub first: Position,
    /// Executions.
    pub calls: u64,
    /// How many of these are commands of the protocol.
    pub commands: u64,
    /// Executions whose text was cut.
    pub cut: u64,
    /// First and last begin, microseconds.
    pub seen_us: Option<(i64, i64)>,
    /// Attributes with numbers, by the attribute's number; some are unused.
    pub measures: Vec<Measure>,
    /// How often each flag was yes and no.
    pub flags: Vec<(u16, [u64; 2])>,
    /// Executions of each user, host, database and application, by interned number.
    pub who: [Counts; 4],
    /// Calls and microseconds by hour of the day.
    pub hours: Box<[[u64; 2]; HOURS]>,
    /// The slowest execution.
    pub slowest: Option<Slowest>,
    /// Its logged plans.
    pub plans: Plans,
    /// Its course over time, if that is kept.
    pub course: Option<Course>,
}

/// The first and last of two periods.
fn together(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// Hour of the day.
fn hour(at_us: i64) -> usize {
    usize::try_from(at_us.div_euclid(3_600_000_000).rem_euclid(HOURS as i64)).unwrap_or(0)
}

impl Shape {
    /// The measure of an attribute.
    pub fn measure(&self, attribute: u16) -> Option<&Measure> {
        self.measures.get(usize::from(attribute)).filter(|measure| measure.count > 0)
    }

    fn measure_mut(&mut self, attribute: u16) -> &mut Measure {
        let index = usize::from(attribute);
        if self.measures.len() <= index {
            self.measures.resize(index + 1, Measure::default());
        }
        &mut self.measures[index]
    }

    /// Adds an execution. The caller handles its text and its users.
    pub fn add(&mut self, event: &Event) {
        if matches!(event.kind, Kind::Parse | Kind::Bind) {
            let attribute = if event.kind == Kind::Parse { PARSE_TIME } else { BIND_TIME };
            for (_, value) in event.measures.iter().filter(|(number, _)| *number == QUERY_TIME) {
                self.measure_mut(attribute).add(*value);
            }
            return;
        }
        self.calls += 1;
        self.commands += u64::from(event.kind == Kind::Command);
        self.cut += u64::from(event.cut);
        let mut time_us = 0;
        for (attribute, value) in event.measures {
            if *attribute == QUERY_TIME {
                time_us = *value;
            }
            self.measure_mut(*attribute).add(*value);
        }
        for (attribute, is_so) in event.flags {
            self.flag(*attribute)[usize::from(*is_so)] += 1;
        }
        if let Some(course) = &mut self.course {
            course.add(event);
        }
        if let Some(at_us) = event.at_us {
            self.seen_us =
                Some(self.seen_us.map_or((at_us, at_us), |(first, last)| (first.min(at_us), last.max(at_us))));
            let of_hour = &mut self.hours[hour(at_us)];
            of_hour[0] += 1;
            of_hour[1] = of_hour[1].saturating_add(time_us);
        }
    }

    /// Adds many executions at once, of which a server keeps only sums.
    pub fn add_lumps(&mut self, calls: u64, lumps: &[(u16, ServerSums)], seen_us: Option<(i64, i64)>) {
        self.calls = self.calls.saturating_add(calls);
        self.seen_us = together(self.seen_us, seen_us);
        for (attribute, lump) in lumps {
            self.measure_mut(*attribute).add_lump(lump);
        }
    }

    /// If only plans report its executions, it takes those.
    pub fn settle(&mut self) {
        if self.calls == 0 && !self.plans.is_empty() {
            let times = self.plans.times();
            self.calls = times.count;
            self.seen_us = together(self.seen_us, self.plans.seen_us);
            self.measure_mut(QUERY_TIME).merge(&times);
            if self.course.is_some() {
                self.course.clone_from(&self.plans.course);
            }
        }
    }

    /// Adds calls, times and measures of another group with the same attribute numbers.
    pub fn add_figures(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.seen_us = together(self.seen_us, other.seen_us);
        for (number, measure) in (0..).zip(&other.measures).filter(|(_, measure)| measure.count > 0) {
            self.measure_mut(number).merge(measure);
        }
    }

    fn flag(&mut self, attribute: u16) -> &mut [u64; 2] {
        let index = match self.flags.iter().position(|(known, _)| *known == attribute) {
            Some(index) => index,
            None => {
                self.flags.push((attribute, [0; 2]));
                self.flags.len() - 1
            }
        };
        &mut self.flags[index].1
    }

    /// Whether an execution of `time_us` at `position` is slower than all before it.
    pub fn is_slowest(&self, time_us: u64, position: Position) -> bool {
        self.slowest.as_ref().is_none_or(|slowest| {
            time_us > slowest.time_us || time_us == slowest.time_us && position < slowest.position
        })
    }

    /// Adds another thread's part of the same group. `attribute` and `name` translate its numbers.
    pub fn merge(&mut self, other: Self, attribute: &dyn Fn(u16) -> Option<u16>, name: &dyn Fn(usize, u32) -> u32) {
        if other.first < self.first {
            (self.first, self.text) = (other.first, other.text);
        }
        self.calls = self.calls.saturating_add(other.calls);
        self.commands += other.commands;
        self.cut += other.cut;
        self.seen_us = together(self.seen_us, other.seen_us);
        for (number, measure) in other.measures.iter().enumerate() {
            let number = u16::try_from(number).ok().filter(|_| measure.count > 0);
            if let Some(number) = number.and_then(attribute) {
                self.measure_mut(number).merge(measure);
            }
        }
        for (number, counts) in &other.flags {
            let Some(number) = attribute(*number) else { continue };
            let mine = self.flag(number);
            mine[0] += counts[0];
            mine[1] += counts[1];
        }
        for (of, (mine, theirs)) in self.who.iter_mut().zip(&other.who).enumerate() {
            for (number, count) in theirs.all() {
                mine.add(name(of, number), count);
            }
        }
        for (mine, theirs) in self.hours.iter_mut().zip(other.hours.iter()) {
            mine[0] += theirs[0];
            mine[1] = mine[1].saturating_add(theirs[1]);
        }
        self.plans.merge(other.plans);
        if let (Some(mine), Some(theirs)) = (&mut self.course, &other.course) {
            mine.merge(theirs, attribute);
        }
        if let Some(slowest) = other.slowest
            && self.is_slowest(slowest.time_us, slowest.position)
        {
            self.slowest = Some(slowest);
        }
    }
}
