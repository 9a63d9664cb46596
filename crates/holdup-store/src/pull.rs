//! A recording from a store into a folder, which reads as the one that was pushed: the same rows in
//! the same order, the same columns, the same files. It is fetched by segments of bounded size. The
//! manifest is written last, so a pull that was cut off leaves no recording.

use std::io;
use std::path::Path;

use holdup_recording::manifest::MANIFEST;
use holdup_recording::tables::{TableVisitor, each_table};
use holdup_recording::{Cell, Row, files, transfer};
use serde::Serialize;

use crate::catalog::{self, Entry, HERE, Piece, Place, TableFacts};
use crate::client::Client;
use crate::error::StoreError;
use crate::push::{Progress, is_file_name, sha256};
use crate::rowbinary::Reader;
use crate::schema::{FILES, SEGMENT_ROWS};
use crate::statement::Statement;

/// Largest answer with rows; a segment with more is fetched in halves.
const ANSWER_BYTES_MAX: u64 = 128 << 20;

/// What a pull did.
#[derive(Clone, Debug, Serialize)]
pub struct Pulled {
    /// Which recording.
    #[serde(flatten)]
    pub place: Place,
    /// Rows in all tables.
    pub rows: u64,
    /// Bytes that came over the network.
    pub bytes_received: u64,
}

/// Fetches a recording into `dir`, which must not exist. `seen` hears how far it is, and returns
/// false to stop.
///
/// # Errors
/// If the push of that recording has not ended, rows are missing, or the folder cannot be written.
pub fn pull(
    client: &Client,
    entry: &Entry,
    dir: &Path,
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
    files::create_new_dir(dir).map_err(|source| StoreError::File { path: dir.to_owned(), source })?;
    let written = each_table(&mut Fetching { client, entry, dir, seen }).and_then(|()| fetch_files(client, entry, dir));
    if written.is_err() {
        // What is in it now was made here.
        let _ = std::fs::remove_dir_all(dir);
    }
    written?;
    let bytes_received = client.received_bytes() - before;
    Ok(Pulled { place: entry.place.clone(), rows: entry.rows(), bytes_received })
}

struct Fetching<'p> {
    client: &'p Client,
    entry: &'p Entry,
    dir: &'p Path,
    seen: &'p mut dyn FnMut(Progress) -> bool,
}

impl TableVisitor for Fetching<'_> {
    type Error = StoreError;

    fn table<R: Row>(&mut self) -> Result<(), StoreError> {
        let (entry, dir) = (self.entry, self.dir);
        let Some(facts) = entry.tables.get(R::TABLE) else { return Ok(()) };
        let mut failed = None;
        let mut fetched = 0;
        let segments = 0..facts.rows.div_ceil(SEGMENT_ROWS);
        let batches = segments.map(|segment| {
            let rows = self.segment::<R>(facts, segment).and_then(|rows| {
                fetched += rows.len() as u64;
                let is_wanted = (self.seen)(Progress { table: R::TABLE, rows: fetched, rows_total: facts.rows });
                if is_wanted { Ok(rows) } else { Err(StoreError::Stopped) }
            });
            rows.map_err(|error| {
                failed = Some(error);
                io::Error::other("the store did not give its rows")
            })
        });
        let written = transfer::write_table::<R>(dir, &facts.lacking, batches);
        match (failed, written) {
            (Some(error), _) => Err(error),
            (None, written) => written.map(drop).map_err(StoreError::from),
        }
    }
}

impl Fetching<'_> {
    /// All rows of a segment.
    fn segment<R: Row>(&self, facts: &TableFacts, segment: u64) -> Result<Vec<R>, StoreError> {
        let from = segment * SEGMENT_ROWS;
        let to = (from + SEGMENT_ROWS).min(facts.rows);
        let mut rows = Vec::new();
        self.rows::<R>(segment, from, to, &mut rows)?;
        if rows.len() as u64 != to - from {
            return Err(StoreError::Recording(format!(
                "{} has {} of the rows {from} to {to} of {} of {}: rows were removed there, by a TTL or by hand",
                self.client.server(),
                rows.len(),
                R::TABLE,
                self.entry.place
            )));
        }
        Ok(rows)
    }

    /// Rows from one number to another, in halves if they are too large for one answer.
    fn rows<R: Row>(&self, segment: u64, from: u64, to: u64, rows: &mut Vec<R>) -> Result<(), StoreError> {
        let names: Vec<String> = R::COLUMNS.iter().map(|column| format!("`{}`", column.name)).collect();
        let sql = format!(
            "SELECT row, {} FROM {} WHERE {HERE} AND segment = {{segment:UInt64}} AND row >= {{from:UInt64}} AND row < \
             {{to:UInt64}} ORDER BY row FORMAT RowBinary",
            names.join(", "),
            R::TABLE
        );
        let ask = Statement::new(sql).number("segment", segment).number("from", from).number("to", to);
        match self.client.read(&self.entry.place.bind(ask), ANSWER_BYTES_MAX) {
            Ok(answer) => decode(&answer, rows).ok_or_else(|| StoreError::BadAnswer(R::TABLE.to_owned())),
            Err(StoreError::TooLarge { .. }) if to - from > 1 => {
                let middle = from + (to - from) / 2;
                self.rows(segment, from, middle, rows)?;
                self.rows(segment, middle, to, rows)
            }
            Err(error) => Err(error),
        }
    }
}

/// Appends the rows of an answer, each number once; none if it is not rows of this table.
fn decode<R: Row>(answer: &[u8], rows: &mut Vec<R>) -> Option<()> {
    let mut reader = Reader::new(answer);
    let mut last = None;
    while !reader.is_at_end() {
        let number = reader.u64()?;
        let mut cells: Vec<Cell<'_>> = Vec::with_capacity(R::COLUMNS.len());
        for column in R::COLUMNS {
            cells.push(reader.cell(column)?);
        }
        if last != Some(number) {
            rows.push(R::from_cells(&mut cells.into_iter())?);
        }
        last = Some(number);
    }
    Some(())
}

fn fetch_files(client: &Client, entry: &Entry, dir: &Path) -> Result<(), StoreError> {
    let pieces = catalog::pieces(client, &entry.place)?;
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
        decode(&answer, &mut rows).unwrap();
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(decode(&answer[..answer.len() - 1], &mut rows).is_none());
    }
}
