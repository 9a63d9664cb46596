//! Whole tables on their way to another store and back. A table keeps what a reader of the files
//! would see: its rows in order, the columns that its files lack, and whether it has a file at all.

use std::io;
use std::path::Path;

use crate::segment::{self, Groups, SegmentError};
use crate::table::Row;

/// The open files of one table.
pub struct OpenTable {
    files: Vec<Groups>,
}

impl OpenTable {
    /// Opens the table of rows `R` in the recording in `dir`: finished, running or cut off.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open<R: Row>(dir: &Path) -> Result<Self, SegmentError> {
        let parts = segment::open_parts(dir, R::TABLE)?.into_iter();
        let files = parts.map(|(path, file)| Groups::open::<R>(&path, file)).collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Whether the table has a file.
    pub fn is_present(&self) -> bool {
        !self.files.is_empty()
    }

    /// Rows in all its files, as their footers say.
    pub fn rows_total(&self) -> u64 {
        self.files.iter().map(Groups::rows_total).sum()
    }

    /// Columns that a file lacks.
    pub fn lacking<R: Row>(&self) -> Vec<&'static str> {
        let mut lacking: Vec<&str> = self.files.iter().flat_map(Groups::lacking::<R>).collect();
        lacking.sort_unstable();
        lacking.dedup();
        lacking
    }

    /// Its rows in the order written, a row group at a time.
    pub fn groups<R: Row>(&self) -> impl Iterator<Item = Result<Vec<R>, SegmentError>> {
        let groups = self.files.iter().flat_map(|file| (0..file.len()).map(move |i| (file, i)));
        groups.map(|(file, i)| file.read(i, R::read_group))
    }
}

/// Writes a table from a source that may fail, without the columns in `lacking`. The file appears
/// completely or not at all. Returns the number of rows.
///
/// # Errors
/// Those of the source and of the file system.
pub fn write_table<R: Row>(
    dir: &Path,
    lacking: &[String],
    rows: impl IntoIterator<Item = io::Result<Vec<R>>>,
) -> Result<u64, SegmentError> {
    segment::write_table_lacking(dir, lacking, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Event;

    fn event(at: i64) -> Event {
        Event { observed_at: at, kind: "mark".to_owned(), text: "x".to_owned(), ..Event::default() }
    }

    #[test]
    fn a_table_keeps_its_rows_and_what_it_lacks() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!OpenTable::open::<Event>(dir.path()).unwrap().is_present());
        let lacking = ["text".to_owned()];
        let batches = [Ok(vec![event(1), event(2)]), Ok(vec![event(3)])];
        assert_eq!(write_table(dir.path(), &lacking, batches).unwrap(), 3);
        let table = OpenTable::open::<Event>(dir.path()).unwrap();
        assert_eq!((table.rows_total(), table.lacking::<Event>()), (3, vec!["text"]));
        let rows: Vec<Event> = table.groups().flat_map(Result::unwrap).collect();
        let times: Vec<(i64, &str, &str)> =
            rows.iter().map(|row| (row.observed_at, row.kind.as_str(), row.text.as_str())).collect();
        assert_eq!(times, [(1, "mark", ""), (2, "mark", ""), (3, "mark", "")]);
    }

    #[test]
    fn a_source_that_fails_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let failed = write_table::<Event>(dir.path(), &[], [Ok(vec![event(1)]), Err(io::Error::other("cut"))]);
        assert!(failed.unwrap_err().to_string().ends_with("events.parquet: cut"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
