//! Which rows a window needs: for each table the segments that have times in it or next to it. A
//! window that would not fit in memory is not fetched alone: the judge then reads the course of the
//! whole recording.

use std::collections::BTreeMap;
use std::ops::Range;

use holdup_recording::Row;
use holdup_recording::excerpt::{Extent, Limits, time_read};
use holdup_recording::reader::SEARCH;
use holdup_recording::tables::{TableVisitor, each_table};

use crate::catalog::{self, Entry, Piece, rows_of_segment};
use crate::client::Client;
use crate::error::StoreError;
use crate::schema::first_time;

/// First and last time of each segment of a table.
type Spans = BTreeMap<u64, (i64, i64)>;

/// The segments of a window.
pub struct Part {
    window: Range<i64>,
    spans: BTreeMap<&'static str, Spans>,
}

/// What is fetched of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// Nothing.
    Nothing,
    /// All its rows.
    Whole,
    /// Those of this time.
    Within(Range<i64>),
}

impl Part {
    /// Finds the segments of `window`; none if the whole recording is needed.
    ///
    /// # Errors
    /// If the store cannot be read, or rows next to the window are missing there.
    pub fn find(
        client: &Client,
        entry: &Entry,
        files: &[Piece],
        window: &Range<i64>,
        limits: &Limits,
    ) -> Result<Option<Self>, StoreError> {
        // The steps of a search are judged against each other.
        if files.iter().any(|file| file.name == SEARCH) {
            return Ok(None);
        }
        let mut looking = Looking { client, entry, spans: BTreeMap::new(), extent: Extent::default() };
        each_table(&mut looking)?;
        if !looking.extent.fits(window, limits) {
            return Ok(None);
        }
        let part = Self { window: window.clone(), spans: looking.spans };
        part.spans.iter().try_for_each(|(table, spans)| part.check(client, entry, table, spans))?;
        Ok(Some(part))
    }

    /// What is needed of a segment.
    pub fn share(&self, table: &str, segment: u64) -> Share {
        let Some(time) = time_read(table, &self.window) else { return Share::Whole };
        let span = self.spans.get(table).and_then(|spans| spans.get(&segment));
        match span {
            Some((from, to)) if *from >= time.end || *to < time.start => Share::Nothing,
            Some((from, to)) if *from < time.start || *to >= time.end => Share::Within(time),
            // A segment that is not there is missed when it is fetched.
            _ => Share::Whole,
        }
    }

    /// Checks that all rows of those segments are there of which only some rows are fetched.
    fn check(&self, client: &Client, entry: &Entry, table: &str, spans: &Spans) -> Result<(), StoreError> {
        let is_cut = |segment: &u64| matches!(self.share(table, *segment), Share::Within(_));
        let cut: Vec<u64> = spans.keys().copied().filter(is_cut).collect();
        let (Some(first), Some(last)) = (cut.first(), cut.last()) else { return Ok(()) };
        let there = catalog::segments_between(client, table, &entry.place, *first, *last)?;
        let rows = entry.tables.get(table).map_or(0, |facts| facts.rows);
        for segment in cut {
            let (found, expected) = (there.get(&segment).copied().unwrap_or(0), rows_of_segment(rows, segment));
            if found != expected {
                return Err(catalog::removed(client, &entry.place, table, found, expected));
            }
        }
        Ok(())
    }
}

struct Looking<'p> {
    client: &'p Client,
    entry: &'p Entry,
    spans: BTreeMap<&'static str, Spans>,
    extent: Extent,
}

impl TableVisitor for Looking<'_> {
    type Error = StoreError;

    fn table<R: Row>(&mut self) -> Result<(), StoreError> {
        let Some(facts) = self.entry.tables.get(R::TABLE).filter(|facts| facts.rows > 0) else { return Ok(()) };
        let spans = catalog::spans(self.client, R::TABLE, first_time(R::COLUMNS), &self.entry.place)?;
        for (segment, (from, to)) in &spans {
            self.extent.add::<R>(rows_of_segment(facts.rows, *segment), *from, *to);
        }
        self.spans.insert(R::TABLE, spans);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_window_needs_the_segments_next_to_it() {
        // 100 s each.
        let spans: Spans = (0..10).map(|n: i64| (n.unsigned_abs(), (n * 100 * S, (n * 100 + 99) * S))).collect();
        let spans = BTreeMap::from([("requests", spans.clone()), ("samples", spans.clone()), ("settings", spans)]);
        let part = Part { window: 405 * S..590 * S, spans };
        let shares = |table: &str| (0..10).map(|segment| part.share(table, segment)).collect::<Vec<_>>();
        let near = Share::Within(395 * S..600 * S);
        let mut expected = vec![Share::Nothing; 10];
        (expected[3], expected[4], expected[5]) = (near, Share::Whole, Share::Whole);
        assert_eq!(shares("requests"), expected);
        // Counters need a reading before the window.
        let near = Share::Within(345 * S..650 * S);
        (expected[3], expected[6]) = (near.clone(), near);
        assert_eq!(shares("samples"), expected);
        assert_eq!(shares("settings"), vec![Share::Whole; 10]);
        assert_eq!(part.share("requests", 10), Share::Whole);
    }
}
