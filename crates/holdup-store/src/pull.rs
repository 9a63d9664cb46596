//! A recording from a store into a folder, which reads as the one that was pushed: the same rows in
//! the same order, the same columns, the same files. It is fetched by segments of bounded size. The
//! manifest is written last, so a pull that was cut off leaves no recording.
//!
//! For a judge a [`Selection`] leaves out what it does not read: other times, and some columns.

mod part;

use std::io;
use std::ops::Range;
use std::path::Path;

use holdup_recording::excerpt::Limits;
use holdup_recording::manifest::MANIFEST;
use holdup_recording::tables::{TableVisitor, each_table};
use holdup_recording::{Cell, Column, Row, files, transfer};
use serde::Serialize;

use self::part::{Part, Share};
use crate::catalog::{self, Entry, HERE, Piece, Place, TableFacts, rows_of_segment};
use crate::client::Client;
use crate::error::StoreError;
use crate::push::{Progress, is_file_name, sha256};
use crate::rowbinary::{Reader, empty};
use crate::schema::{FILES, SEGMENT_ROWS, first_time};
use crate::statement::Statement;

/// Largest answer with rows; a segment with more is fetched in halves.
const ANSWER_BYTES_MAX: u64 = 128 << 20;

/// What is fetched of a recording; by default everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The window to judge, and how much of it has to fit in memory: only rows of that time are
    /// fetched, as far as `holdup_recording::excerpt` reads them.
    pub window: Option<(Range<i64>, Limits)>,
    /// Columns that stay empty, as table and column.
    pub unread: &'static [(&'static str, &'static str)],
}

impl Selection {
    fn has(&self, table: &str, column: &Column) -> bool {
        !self.unread.contains(&(table, column.name))
    }
}

/// What a pull did.
#[derive(Clone, Debug, Serialize)]
pub struct Pulled {
    /// Which recording.
    #[serde(flatten)]
    pub place: Place,
    /// Rows that were fetched.
    pub rows: u64,
    /// Bytes that came over the network.
    pub bytes_received: u64,
}

/// Fetches a recording, or what `selection` says of it, into `dir`, which must not exist. `seen`
/// hears how far it is, and returns false to stop.
///
/// # Errors
/// If the push of that recording has not ended, rows are missing, or the folder cannot be written.
pub fn pull(
    client: &Client,
    entry: &Entry,
    dir: &Path,
    selection: &Selection,
    seen: &mut dyn FnMut(Progress) -> bool,
) -> Result<Pulled, StoreError> {
    if !entry.complete {
        let place = &entry.place;
        return Err(StoreError::Recording(format!(
            "the push of {place} has not ended, or a longer recording of that name is on its way; push it again, then \
             pull"
        )));
    }
    let before = client.received_bytes();
    let pieces = catalog::pieces(client, &entry.place)?;
    let window = selection.window.as_ref();
    let found = window.map(|(window, limits)| Part::find(client, entry, &pieces, window, limits)).transpose()?;
    files::create_new_dir(dir).map_err(|source| StoreError::File { path: dir.to_owned(), source })?;
    let mut fetching = Fetching { client, entry, dir, selection, part: found.flatten(), seen, rows: 0 };
    let written = each_table(&mut fetching).and_then(|()| fetch_files(client, entry, dir, &pieces));
    let rows = fetching.rows;
    if written.is_err() {
        // What is in it now was made here.
        let _ = std::fs::remove_dir_all(dir);
    }
    written?;
    Ok(Pulled { place: entry.place.clone(), rows, bytes_received: client.received_bytes() - before })
}

struct Fetching<'p> {
    client: &'p Client,
    entry: &'p Entry,
    dir: &'p Path,
    selection: &'p Selection,
    /// The segments of the window; all if none.
    part: Option<Part>,
    seen: &'p mut dyn FnMut(Progress) -> bool,
    /// Rows so far, of all tables.
    rows: u64,
}

impl TableVisitor for Fetching<'_> {
    type Error = StoreError;

    fn table<R: Row>(&mut self) -> Result<(), StoreError> {
        let (entry, dir) = (self.entry, self.dir);
        let Some(facts) = entry.tables.get(R::TABLE) else { return Ok(()) };
        let mut failed = None;
        let shares: Vec<(u64, Share)> = (0..facts.rows.div_ceil(SEGMENT_ROWS))
            .map(|segment| (segment, self.part.as_ref().map_or(Share::Whole, |part| part.share(R::TABLE, segment))))
            .filter(|(_, share)| *share != Share::Nothing)
            .collect();
        let rows_total = shares.iter().map(|(segment, _)| rows_of_segment(facts.rows, *segment)).sum();
        let mut fetched = 0;
        let batches = shares.iter().map(|(segment, share)| {
            let rows = self.segment::<R>(facts, *segment, share).and_then(|rows| {
                fetched += rows.len() as u64;
                let is_wanted = (self.seen)(Progress { table: R::TABLE, rows: fetched, rows_total });
                if is_wanted { Ok(rows) } else { Err(StoreError::Stopped) }
            });
            rows.map_err(|error| {
                failed = Some(error);
                io::Error::other("the store did not give its rows")
            })
        });
        let written = transfer::write_table::<R>(dir, &facts.lacking, batches);
        self.rows += fetched;
        match (failed, written) {
            (Some(error), _) => Err(error),
            (None, written) => written.map(drop).map_err(StoreError::from),
        }
    }
}

impl Fetching<'_> {
    /// All rows of a segment, or those of a time.
    fn segment<R: Row>(&self, facts: &TableFacts, segment: u64, share: &Share) -> Result<Vec<R>, StoreError> {
        let from = segment * SEGMENT_ROWS;
        let to = from + rows_of_segment(facts.rows, segment);
        let mut rows = Vec::new();
        self.rows::<R>(segment, from..to, share, &mut rows)?;
        if *share == Share::Whole && rows.len() as u64 != to - from {
            return Err(catalog::removed(self.client, &self.entry.place, R::TABLE, rows.len() as u64, to - from));
        }
        Ok(rows)
    }

    /// Rows by their numbers, in halves if they are too large for one answer.
    fn rows<R: Row>(
        &self,
        segment: u64,
        numbers: Range<u64>,
        share: &Share,
        rows: &mut Vec<R>,
    ) -> Result<(), StoreError> {
        match self.client.read(&self.question::<R>(segment, &numbers, share), ANSWER_BYTES_MAX) {
            Ok(answer) => {
                decode(&answer, self.selection, rows).ok_or_else(|| StoreError::BadAnswer(R::TABLE.to_owned()))
            }
            Err(StoreError::TooLarge { .. }) if numbers.end - numbers.start > 1 => {
                let middle = numbers.start + (numbers.end - numbers.start) / 2;
                self.rows(segment, numbers.start..middle, share, rows)?;
                self.rows(segment, middle..numbers.end, share, rows)
            }
            Err(error) => Err(error),
        }
    }

    fn question<R: Row>(&self, segment: u64, numbers: &Range<u64>, share: &Share) -> Statement {
        let columns = R::COLUMNS.iter().filter(|column| self.selection.has(R::TABLE, column));
        let names: Vec<String> = columns.map(|column| format!("`{}`", column.name)).collect();
        let time = first_time(R::COLUMNS);
        let [since, until] =
            ["{since:UInt64}", "{until:UInt64}"].map(|ns| self.client.dialect().time(&format!("toInt64({ns})")));
        let within = match share {
            Share::Within(_) => format!(" AND `{time}` >= {since} AND `{time}` < {until}"),
            Share::Whole | Share::Nothing => String::new(),
        };
        let sql = format!(
            "SELECT row, {} FROM {} WHERE {HERE} AND segment = {{segment:UInt64}} AND row >= {{from:UInt64}} AND row < \
             {{to:UInt64}}{within} ORDER BY row FORMAT RowBinary",
            names.join(", "),
            R::TABLE
        );
        let ask = Statement::new(sql).number("segment", segment);
        let mut ask = ask.number("from", numbers.start).number("to", numbers.end);
        if let Share::Within(time) = share {
            let ns = |at: i64| at.max(0).unsigned_abs();
            ask = ask.number("since", ns(time.start)).number("until", ns(time.end));
        }
        self.entry.place.bind(ask)
    }
}

/// Appends the rows of an answer, each number once; none if it is not rows of this table.
fn decode<R: Row>(answer: &[u8], selection: &Selection, rows: &mut Vec<R>) -> Option<()> {
    let mut reader = Reader::new(answer);
    let columns: Vec<(&Column, bool)> =
        R::COLUMNS.iter().map(|column| (column, selection.has(R::TABLE, column))).collect();
    let mut last = None;
    while !reader.is_at_end() {
        let number = reader.u64()?;
        let mut cells: Vec<Cell<'_>> = Vec::with_capacity(columns.len());
        for (column, is_there) in &columns {
            cells.push(if *is_there { reader.cell(column)? } else { empty(column) });
        }
        if last != Some(number) {
            rows.push(R::from_cells(&mut cells.into_iter())?);
        }
        last = Some(number);
    }
    Some(())
}

fn fetch_files(client: &Client, entry: &Entry, dir: &Path, pieces: &[Piece]) -> Result<(), StoreError> {
    let mut names: Vec<&str> =
        pieces.iter().map(|piece| piece.name.as_str()).filter(|name| is_file_name(name)).collect();
    names.dedup();
    names.sort_by_key(|name| *name == MANIFEST);
    if names.last() != Some(&MANIFEST) {
        return Err(StoreError::Recording(format!("{} has no manifest of {}", client.server(), entry.place)));
    }
    for name in names {
        let mut content = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.name == name) {
            content.extend(fetch_piece(client, &entry.place, piece)?);
        }
        let path = dir.join(name);
        files::replace(&path, &content).map_err(|source| StoreError::File { path, source })?;
    }
    Ok(())
}

fn fetch_piece(client: &Client, place: &Place, piece: &Piece) -> Result<Vec<u8>, StoreError> {
    let sql = format!(
        "SELECT content FROM {FILES} WHERE {HERE} AND name = {{name:String}} AND chunk = {{chunk:UInt64}} ORDER BY \
         pushed_at DESC LIMIT 1 FORMAT RowBinary"
    );
    let chunk = piece.chunk.max(0).unsigned_abs();
    let ask = place.bind(Statement::new(sql).text("name", &piece.name).number("chunk", chunk));
    let answer = client.read(&ask, ANSWER_BYTES_MAX)?;
    let content = Reader::new(&answer).bytes().filter(|content| sha256(content) == piece.sha256);
    content.map(<[u8]>::to_vec).ok_or_else(|| StoreError::BadAnswer(FILES.to_owned()))
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Setting;

    use super::*;
    use crate::rowbinary::put;

    #[test]
    fn a_row_that_is_there_twice_comes_once() {
        let mut answer = Vec::new();
        for (number, name) in [(7_u64, "a"), (7, "a"), (8, "b")] {
            answer.extend(number.to_le_bytes());
            let row = Setting { name: name.to_owned(), ..Setting::default() };
            let mut columns = Setting::COLUMNS.iter();
            row.each_cell(&mut |cell| put(&mut answer, columns.next().unwrap(), &cell));
        }
        let mut rows: Vec<Setting> = Vec::new();
        let all = Selection::default();
        decode(&answer, &all, &mut rows).unwrap();
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(decode(&answer[..answer.len() - 1], &all, &mut rows).is_none());
    }

    #[test]
    fn unread_columns_are_empty() {
        let mut answer = 7_u64.to_le_bytes().to_vec();
        let row = Setting { name: "a".to_owned(), value: "b".to_owned(), ..Setting::default() };
        let mut columns = Setting::COLUMNS.iter();
        row.each_cell(&mut |cell| match columns.next().unwrap() {
            column if column.name == "name" => {}
            column => put(&mut answer, column, &cell),
        });
        let (mut rows, selection) =
            (Vec::<Setting>::new(), Selection { unread: &[("settings", "name")], ..Selection::default() });
        decode(&answer, &selection, &mut rows).unwrap();
        assert_eq!(rows, [Setting { name: String::new(), ..row }]);
    }
}
