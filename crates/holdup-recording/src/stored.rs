//! One table of a recording in memory, read from its files: the whole table, or the segments of a
//! recording that has not ended.

use std::ops::Range;
use std::path::Path;

use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;

use crate::segment::{self, GroupSpan, Groups, SegmentError};
use crate::table::{Row, StoredColumn, time_column};

/// A table in memory, and the columns that its file lacks.
#[derive(Clone, Debug, Default)]
pub struct Table<R> {
    /// Its rows, in the order they were written.
    pub rows: Vec<R>,
    /// Declared columns that the file lacks; rows have them empty.
    pub missing: Vec<&'static str>,
    /// Whether a file of this table exists.
    pub present: bool,
}

impl<R: Row> Table<R> {
    /// A table that has no file, or was not read.
    pub(crate) fn absent() -> Self {
        Self { rows: Vec::new(), missing: Vec::new(), present: false }
    }

    /// The rows, if the file has every one of `columns`.
    ///
    /// # Errors
    /// The name of the first missing column, as `table.column`, or of the table if it has no file.
    pub fn with_columns(&self, columns: &[&'static str]) -> Result<&[R], String> {
        if !self.present {
            return Err(R::TABLE.to_owned());
        }
        match columns.iter().find(|c| self.missing.contains(c)) {
            Some(column) => Err(format!("{}.{column}", R::TABLE)),
            None => Ok(&self.rows),
        }
    }
}

/// What tables are filled from.
pub(crate) trait Source {
    /// The table of rows `R`.
    ///
    /// # Errors
    /// If it cannot be read.
    fn table<R: Row>(&mut self) -> Result<Table<R>, SegmentError>;
}

/// The tables of a directory for which the second says which time to read, or all of it with
/// `Some(None)`.
pub(crate) struct Part<'d, F>(pub &'d Path, pub F);

impl<'p, F: Fn(&'static str) -> Option<Option<&'p Range<i64>>>> Source for Part<'_, F> {
    fn table<R: Row>(&mut self) -> Result<Table<R>, SegmentError> {
        (self.1)(R::TABLE).map_or_else(|| Ok(Table::absent()), |within| read_table(self.0, within))
    }
}

/// All tables of a directory.
pub(crate) fn all(dir: &Path) -> Part<'_, impl Fn(&'static str) -> Option<Option<&'static Range<i64>>>> {
    Part(dir, |_| Some(None))
}

/// Reads a table: all of it, or the rows in `within`.
pub(crate) fn read_table<R: Row>(dir: &Path, within: Option<&Range<i64>>) -> Result<Table<R>, SegmentError> {
    let mut rows = Vec::new();
    let table = read_groups::<R>(dir, within, |group, positions| {
        let more = R::read_group(group, positions)?;
        let before = rows.len();
        match within.zip(time_column::<R>()) {
            None => rows.extend(more),
            Some((within, column)) => {
                let times = StoredColumn::<Int64Type>::read(group, positions[column])?;
                let timed = more.into_iter().zip(times.iter());
                rows.extend(timed.filter(|(_, at)| at.is_none_or(|at| within.contains(at))).map(|(row, _)| row));
            }
        }
        Ok(rows[before..].iter().map(R::own_bytes).sum())
    })?;
    Ok(Table { rows, ..table })
}

/// The spans of all row groups of a table.
pub(crate) fn group_spans<R: Row>(dir: &Path) -> Result<Vec<GroupSpan>, SegmentError> {
    let mut spans = Vec::new();
    for (path, file) in segment::open_parts(dir, R::TABLE)? {
        let groups = Groups::open::<R>(&path, file)?;
        spans.extend((0..groups.len()).map(|i| groups.span::<R>(i)));
    }
    Ok(spans)
}

/// Memory that a table may take per byte of its files, and a base amount: repeated values compress
/// well, but within limits.
const UNPACKED_RATIO_MAX: u64 = 256;
const UNPACKED_BYTES: u64 = 512 << 20;

/// Passes each row group of a table to `read`, in the order written: all, or those that may have
/// rows in `within`. `read` returns the bytes it keeps in memory. Returns the table without rows.
pub(crate) fn read_groups<R: Row>(
    dir: &Path,
    within: Option<&Range<i64>>,
    mut read: impl FnMut(&dyn RowGroupReader, &[Option<usize>]) -> Result<usize, ParquetError>,
) -> Result<Table<R>, SegmentError> {
    let parts = segment::open_parts(dir, R::TABLE)?;
    let packed: u64 = parts.iter().filter_map(|(_, file)| file.metadata().ok()).map(|file| file.len()).sum();
    let most = packed.saturating_mul(UNPACKED_RATIO_MAX).saturating_add(UNPACKED_BYTES);
    let mut kept = 0;
    let mut read = |group: &dyn RowGroupReader, positions: &[Option<usize>]| {
        kept += read(group, positions)? as u64;
        if kept > most {
            let why = format!("{packed} bytes of table {} unpack to more than {} MiB", R::TABLE, most >> 20);
            return Err(ParquetError::General(why));
        }
        Ok(())
    };
    let mut table = Table { rows: Vec::new(), missing: Vec::new(), present: !parts.is_empty() };
    for (path, file) in parts {
        let groups = Groups::open::<R>(&path, file)?;
        for i in 0..groups.len() {
            if within.is_none_or(|within| groups.span::<R>(i).overlaps(within)) {
                groups.read(i, &mut read)?;
            }
        }
        table.missing.extend(groups.lacking::<R>());
    }
    table.missing.sort_unstable();
    table.missing.dedup();
    Ok(table)
}
