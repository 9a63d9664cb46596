//! When a database's catalogs are read, and their objects as settings. A reading costs time in proportion
//! to the number of objects, so it is made at the start, once a minute, when a cheap mark shows that
//! definitions changed, and at the end. What is known already is dropped later (`changes`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use holdup_recording::catalog::{Form, Key, Kind};

use crate::pace::{Pace, Turn};
use crate::reading::{Out, tell};

/// Most objects of a kind that are read.
pub(crate) const MOST: usize = 20_000;

/// Shortest pause between two readings.
const LEAST: Duration = Duration::from_secs(2);

/// The name of their line in the coverage.
pub(crate) const PART: &str = "catalogs";

/// Why a list of objects that is cut shows less.
pub(crate) fn cut(kind: Kind) -> String {
    format!("more than {MOST} objects of the kind {}: holdup does not see which of them go", kind.word())
}

/// When to read, and which objects there were.
#[derive(Debug)]
pub(crate) struct Reading<M> {
    pace: Pace,
    mark: Option<M>,
    names: BTreeMap<Kind, BTreeSet<Key>>,
}

impl<M> Default for Reading<M> {
    fn default() -> Self {
        Self { pace: Pace::at_least(LEAST), mark: None, names: BTreeMap::new() }
    }
}

/// Objects as read; one whose form could not be read is there all the same.
pub(crate) type Read = Vec<(Key, Option<Form>)>;

impl<M: PartialEq> Reading<M> {
    /// The beginning of a reading in this sample, if `mark` shows a change and it is not too soon.
    pub(crate) fn due_at(&self, mark: &M, turn: &Turn) -> Option<Instant> {
        let has_changed = self.mark.as_ref().is_some_and(|before| before != mark);
        self.pace.due(turn).filter(|_| has_changed)
    }

    /// The beginning of a reading along with settings: the first one, one after a change, and others as far
    /// as their cost allows.
    pub(crate) fn due_with_settings(&self, mark: &M) -> Option<Instant> {
        let is_due = || self.pace.due(&Turn::default());
        if self.mark.as_ref() == Some(mark) { is_due() } else { Some(Instant::now()) }
    }

    /// Notes a reading that began at `begun`, when the mark was `mark`.
    pub(crate) fn note<T, E>(
        &mut self,
        mark: M,
        turn: &mut Turn,
        begun: Instant,
        result: Result<T, E>,
    ) -> Result<T, E> {
        self.mark = Some(mark);
        self.pace.read(turn, begun, result)
    }

    /// Adds the objects of `kind`, and those that are gone since the last reading. A list that `is_cut`
    /// does not show which are gone.
    pub(crate) fn put(&mut self, kind: Kind, read: Read, is_cut: bool, out: &mut Out) {
        let names: BTreeSet<Key> = read.iter().map(|(key, _)| key.clone()).collect();
        let known = self.names.entry(kind).or_default();
        let gone = known.difference(&names).filter(|_| !is_cut).map(|key| (key.setting(), String::new()));
        let gone: Vec<(String, String)> = gone.collect();
        let there = read.into_iter().filter_map(|(key, form)| Some((key.setting(), form?.value())));
        tell(out.batch, out.source(), there.chain(gone));
        *known = names;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_recording::Batch;

    fn read(names: &[&str]) -> Read {
        let index = |name: &&str| (Key::new(Kind::Index, "t", *name), Some(Form::new("", "CREATE INDEX")));
        names.iter().map(index).collect()
    }

    #[test]
    fn an_object_that_is_gone_has_no_value_and_one_under_lock_is_not_gone() {
        let (mut reading, mut batch) = (Reading::<u8>::default(), Batch::default());
        let mut out = Out::new(&mut batch, "postgresql://db");
        reading.put(Kind::Index, read(&["a", "b"]), false, &mut out);
        let mut locked = read(&["a", "b"]);
        locked[0].1 = None;
        reading.put(Kind::Index, locked, false, &mut out);
        reading.put(Kind::Index, read(&["b"]), true, &mut out);
        reading.put(Kind::Index, read(&["a", "b"]), false, &mut out);
        assert!(out.batch.settings.iter().all(|row| !row.value.is_empty()), "a list that is cut");
        reading.put(Kind::Index, read(&["b"]), false, &mut out);
        let gone: Vec<&str> =
            batch.settings.iter().filter(|row| row.value.is_empty()).map(|row| row.name.as_str()).collect();
        assert_eq!(gone, ["catalog.index t: a"]);
    }

    #[test]
    fn a_mark_that_moved_calls_for_a_reading_and_one_that_stays_does_not() {
        let (mut reading, mut turn) = (Reading::default(), Turn::default());
        let begun = reading.due_with_settings(&1).unwrap();
        assert_eq!(reading.due_at(&2, &turn), None, "it was never read: with the settings it will be");
        reading.note(1, &mut turn, begun, Ok::<_, ()>(())).unwrap();
        assert!(reading.due_with_settings(&1).is_none() && reading.due_with_settings(&2).is_some());
        assert!(reading.due_at(&2, &turn).is_none(), "at most once in two seconds");
    }
}
