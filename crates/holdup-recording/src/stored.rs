//! One table of a recording in memory, read from its files: the whole table, or the segments of a
//! recording that has not ended.

use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;

use crate::segment::{self, SegmentError};
use crate::table::Row;

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

/// Reads a whole table.
pub(crate) fn read_table<R: Row>(dir: &Path) -> Result<Table<R>, SegmentError> {
    let mut rows = Vec::new();
    let table = read_groups::<R>(dir, |group, positions| {
        let more = R::read_group(group, positions)?;
        let bytes = more.iter().map(R::own_bytes).sum();
        rows.extend(more);
        Ok(bytes)
    })?;
    Ok(Table { rows, ..table })
}

/// Memory that a table may take per byte of its files, and a base amount: repeated values compress
/// well, but within limits.
const UNPACKED_RATIO_MAX: u64 = 256;
const UNPACKED_BYTES: u64 = 512 << 20;

/// Passes each row group of a table to `read`, in the order written; `read` returns the bytes it
/// keeps in memory. Returns the table without rows.
pub(crate) fn read_groups<R: Row>(
    dir: &Path,
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
        table.missing.extend(segment::each_group_of::<R>(&path, file, &mut read)?);
    }
    table.missing.sort_unstable();
    table.missing.dedup();
    Ok(table)
}
