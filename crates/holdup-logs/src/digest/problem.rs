//! The parts of logs that could not be read: counted by kind, with the first places of each.
//! Nothing is left out silently.

use std::collections::BTreeMap;

use crate::digest::event::Position;

/// Places that are kept of each problem.
const PLACES: usize = 3;

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// A record whose beginning is not in the log.
    NoBeginning,
    /// A record without a statement.
    NoStatement,
    /// A record that cannot be parsed.
    Malformed,
    /// A text in place of a time or number.
    BadNumber,
    /// A statement that is too long: its head was read, the rest skipped.
    TooLong,
    /// The head of a record within a literal.
    HeadInLiteral,
    /// A duration whose statement is not in the log.
    DurationWithoutStatement,
    /// An exchange with missing packets.
    PacketsMissing,
    /// A request that was not answered before its connection or the capture ended.
    Unanswered,
    /// A log that was truncated while it was followed.
    Truncated,
    /// Packets of an unsupported link layer.
    LinkLayer,
    /// The file ended in the middle of a record, or of its compression.
    CutOff,
}

impl Problem {
    /// The description in reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoBeginning => "records without their beginning",
            Self::NoStatement => "records without a statement",
            Self::Malformed => "lines that are not records of this format",
            Self::BadNumber => "records with an invalid time or number",
            Self::TooLong => "statements too long to be read whole: only their beginnings were",
            Self::HeadInLiteral => "heads of records within literals, counted as text",
            Self::DurationWithoutStatement => "durations without their statement",
            Self::PacketsMissing => "exchanges with missing packets: counted without their times",
            Self::Unanswered => "requests without an answer: counted without their times",
            Self::Truncated => "logs truncated while they were read: the last lines before that may be lost",
            Self::LinkLayer => {
                "captures of an unsupported link layer (supported: Ethernet, Linux cooked, loopback, raw IP)"
            }
            Self::CutOff => "files that end in the middle of a record or of their compression",
        }
    }
}

/// The problems so far.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    by_kind: BTreeMap<Problem, (u64, Vec<Position>)>,
}

impl Problems {
    /// Counts one.
    pub fn add(&mut self, problem: Problem, position: Position) {
        let (count, places) = self.by_kind.entry(problem).or_default();
        *count += 1;
        keep(places, position);
    }

    /// Adds another thread's problems.
    pub fn merge(&mut self, other: Self) {
        for (problem, (count, places)) in other.by_kind {
            let (mine, known) = self.by_kind.entry(problem).or_default();
            *mine += count;
            places.into_iter().for_each(|place| keep(known, place));
        }
    }

    /// Each kind with its count and its first places.
    pub fn all(&self) -> impl Iterator<Item = (Problem, u64, &[Position])> {
        self.by_kind.iter().map(|(problem, (count, places))| (*problem, *count, places.as_slice()))
    }
}

/// Keeps the first places, in order, whatever the order of their arrival.
fn keep(places: &mut Vec<Position>, position: Position) {
    let at = places.partition_point(|known| *known < position);
    if at < PLACES {
        places.insert(at, position);
        places.truncate(PLACES);
    }
}
