//! What could not be read: counted by what it is, with the first places of each. Nothing is left out silently.

use std::collections::BTreeMap;

use crate::digest::event::Position;

/// Places of each problem that are kept.
const PLACES: usize = 3;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// A record of which the beginning isn't in the log.
    NoBeginning,
    /// A record without a statement.
    NoStatement,
    /// A record that can't be understood.
    Malformed,
    /// A time or number that is none.
    BadNumber,
    /// A statement longer than is kept: its head was read, the rest passed over.
    TooLong,
    /// What looks like the head of a record stood within a literal.
    HeadInLiteral,
    /// A duration of which the statement isn't in the log.
    DurationWithoutStatement,
    /// An exchange of which packets are missing.
    PacketsMissing,
    /// A request that was not answered before its connection or the capture ended.
    Unanswered,
    /// A log that was made shorter while it was followed.
    Truncated,
    /// Packets of a link layer that isn't understood.
    LinkLayer,
    /// The file ended in the middle of a record, or of its compression.
    CutOff,
}

impl Problem {
    /// What is said of it.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoBeginning => "records without their beginning",
            Self::NoStatement => "records without a statement",
            Self::Malformed => "lines that are no record of this format",
            Self::BadNumber => "records with a time or number that is none",
            Self::TooLong => "statements too long to be read whole: their heads were",
            Self::HeadInLiteral => "heads of records within literals, taken for text",
            Self::DurationWithoutStatement => "durations without their statement",
            Self::PacketsMissing => "exchanges of which packets were not captured: without their times",
            Self::Unanswered => "requests without an answer: without their times",
            Self::Truncated => "logs made shorter while they were read: what was written right before may be lost",
            Self::LinkLayer => {
                "captures of a link layer that isn't understood (there are Ethernet, Linux cooked, loopback, raw IP)"
            }
            Self::CutOff => "files that end in the middle of a record or of their compression",
        }
    }
}

/// What could not be read so far.
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

    /// Takes in what another thread met.
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

/// Keeps the first places, in order, whatever the order they come in.
fn keep(places: &mut Vec<Position>, position: Position) {
    let at = places.partition_point(|known| *known < position);
    if at < PLACES {
        places.insert(at, position);
        places.truncate(PLACES);
    }
}
