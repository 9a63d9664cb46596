//! The rows of a running recording in the order in which they reach the disk, each once: for a copy
//! that keeps up with it. It remembers how far each table is, however segments are merged meanwhile.
//! A finished table has no news: a copy of it reads its one file. It knows no destination.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::segment::{self, Groups, SegmentError};
use crate::table::Row;
use crate::tables;

/// Most files of one table that are opened at once: after a long absence there may be hundreds.
const PARTS_MAX: usize = 16;

/// Parts whose beginning is remembered: hours of segments that wait for a merge. A merge comes every
/// minute or two.
const STARTS_MAX: usize = 10_000;

/// Listings until the directory stands still. A merge takes longer than a listing.
const LISTINGS_MAX: u32 = 20;

/// How far one table is.
#[derive(Clone, Debug, Default)]
struct Position {
    /// Rows that were passed on.
    rows: u64,
    /// Number of the last segment that was passed on completely.
    through: u64,
    /// Number of the first row of each part, by the number of its first segment. A merged part
    /// begins with one of them.
    starts: BTreeMap<u64, u64>,
}

/// Follows one recording.
pub struct Follower {
    dir: PathBuf,
    positions: BTreeMap<&'static str, Position>,
}

/// Files that have rows which were not passed on yet, open.
pub struct News {
    parts: BTreeMap<&'static str, Vec<(PathBuf, File)>>,
    is_all: bool,
}

impl News {
    /// Whether these are all the files, or the next look finds more.
    pub fn is_all(&self) -> bool {
        self.is_all
    }
}

/// What takes rows, and the number of the first of them.
pub type Take<'a, R, E> = dyn FnMut(u64, &[R]) -> Result<(), E> + 'a;

impl Follower {
    /// Follows the recording in `dir` from its first row.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), positions: BTreeMap::new() }
    }

    /// Rows passed on, by table.
    pub fn rows(&self) -> BTreeMap<String, u64> {
        self.positions.iter().map(|(table, position)| ((*table).to_owned(), position.rows)).collect()
    }

    /// Opens what is new. Open files outlive a merge.
    ///
    /// # Errors
    /// If a file cannot be opened for another reason than a merge.
    pub fn look(&self) -> Result<News, SegmentError> {
        for _ in 0..LISTINGS_MAX {
            let listed = segment::all_segments(&self.dir);
            let mut news = News { parts: BTreeMap::new(), is_all: true };
            match self.open(&listed, &mut news) {
                Ok(()) if self.is_unchanged(&listed) => return Ok(news),
                Err(SegmentError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                opened => opened?,
            }
        }
        Ok(News { parts: BTreeMap::new(), is_all: true })
    }

    fn open(&self, listed: &[PathBuf], news: &mut News) -> Result<(), SegmentError> {
        for (table, _) in tables::schema() {
            if segment::table_path(&self.dir, table).exists() {
                continue;
            }
            let new = self.new_parts(listed, table, u64::MAX);
            news.is_all &= new.len() <= PARTS_MAX;
            let opened = new.into_iter().take(PARTS_MAX).map(|path| Ok((path.clone(), segment::open(&path)?)));
            news.parts.insert(table, opened.collect::<Result<_, SegmentError>>()?);
        }
        Ok(())
    }

    /// The files of `table` with segments after the last one that was passed on, up to `last`.
    fn new_parts(&self, listed: &[PathBuf], table: &str, last: u64) -> Vec<PathBuf> {
        let through = self.positions.get(table).map_or(0, |position| position.through);
        let is_new = |path: &PathBuf| segment::span(path).is_some_and(|(a, b)| b > through && a <= last);
        segment::not_replaced(segment::segments_of_table(listed, table).into_iter().filter(is_new).collect())
    }

    /// Whether a later listing has the same files, apart from later segments: no merge has taken
    /// some of them away between two reads of the directory.
    fn is_unchanged(&self, listed: &[PathBuf]) -> bool {
        let now = segment::all_segments(&self.dir);
        tables::schema().iter().all(|(table, _)| {
            let before = self.new_parts(listed, table, u64::MAX);
            let last = before.iter().filter_map(|path| segment::span(path)).map(|(_, b)| b).max();
            last.is_none_or(|last| self.new_parts(&now, table, last) == before)
        })
    }

    /// Passes the new rows of table `R` to `take`, with the number of the first of them, a row group
    /// at a time. Rows that it refuses come again after the next look.
    ///
    /// # Errors
    /// Those of `take`, and if a file cannot be read.
    pub fn pass<R: Row, E: From<SegmentError>>(&mut self, news: &mut News, take: &mut Take<'_, R, E>) -> Result<(), E> {
        let position = self.positions.entry(R::TABLE).or_default();
        for (path, file) in news.parts.remove(R::TABLE).unwrap_or_default() {
            let Some((first, last)) = segment::span(&path) else { continue };
            let start = start_of(position, first, &path)?;
            let groups = Groups::open::<R>(&path, file)?;
            let mut number = start;
            for i in 0..groups.len() {
                let rows = groups.read(i, R::read_group)?;
                let known = usize::try_from(position.rows.saturating_sub(number)).unwrap_or(usize::MAX);
                if let Some(new) = rows.get(known..).filter(|new| !new.is_empty()) {
                    take(position.rows, new)?;
                    position.rows += new.len() as u64;
                }
                number += rows.len() as u64;
            }
            position.through = last;
            if last > first {
                position.starts.retain(|other, _| *other >= first);
            }
            while position.starts.len() > STARTS_MAX {
                position.starts.pop_first();
            }
        }
        Ok(())
    }
}

/// The number of the first row of the part that begins with segment `first`.
fn start_of(position: &mut Position, first: u64, path: &Path) -> Result<u64, SegmentError> {
    if let Some(start) = position.starts.get(&first) {
        return Ok(*start);
    }
    if first <= position.through {
        let source = Error::other("its rows are not those that were there before");
        return Err(SegmentError::Io { path: path.display().to_string(), source });
    }
    position.starts.insert(first, position.rows);
    Ok(position.rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Event;
    use crate::segment::{SEGMENTS, write_segment};
    use crate::tables::merge_all;
    use crate::transfer::OpenTable;

    /// Writes segment `number` with so many events, numbered in their time.
    fn write(dir: &Path, number: u64, count: usize, next: &mut i64) {
        let mut rows = Vec::new();
        for _ in 0..count {
            rows.push(Event { observed_at: *next, ..Event::default() });
            *next += 1;
        }
        write_segment(dir, number, &mut rows).unwrap();
    }

    /// What came of events, as (number, time).
    fn take(follower: &mut Follower, into: &mut Vec<(u64, i64)>, most: usize) -> bool {
        let mut news = follower.look().unwrap();
        let all = news.is_all();
        let mut taken = 0;
        let passed = follower.pass::<Event, SegmentError>(&mut news, &mut |first, rows| {
            taken += 1;
            if taken > most {
                let source = Error::other("away");
                return Err(SegmentError::Io { path: String::new(), source });
            }
            into.extend((first..).zip(rows.iter().map(|row| row.observed_at)));
            Ok(())
        });
        assert_eq!(passed.is_err(), taken > most);
        all
    }

    #[test]
    fn each_row_comes_once_however_segments_are_merged() {
        // Merges come before, between and after looks; some rows are refused at first.
        for every in [1, 50, 65] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join(SEGMENTS)).unwrap();
            let mut follower = Follower::new(dir.path());
            let (mut next, mut came) = (0, Vec::new());
            for number in 1..=140 {
                write(dir.path(), number, (number % 4) as usize, &mut next);
                if number % 8 == 0 {
                    merge_all(dir.path(), false).unwrap();
                }
                if number % every == 0 {
                    take(&mut follower, &mut came, 3);
                }
            }
            while !take(&mut follower, &mut came, usize::MAX) {}
            let expected: Vec<(u64, i64)> = (0..next as u64).zip(0..next).collect();
            assert_eq!(came, expected, "a look every {every} segments");
            // The finished file has the same order; nothing of it is news.
            merge_all(dir.path(), true).unwrap();
            let whole = OpenTable::open::<Event>(dir.path()).unwrap();
            let times: Vec<i64> = whole.groups::<Event>().flat_map(Result::unwrap).map(|row| row.observed_at).collect();
            assert_eq!(times, (0..next).collect::<Vec<_>>());
            take(&mut follower, &mut came, 0);
            assert_eq!(follower.rows()["events"], next as u64);
        }
    }
}
