//! Parquet files of one table. While a recording runs, rows go into small closed files,
//! `segments/<table>-<number>.parquet`. A file without its footer cannot be opened, so each is
//! written under another name and renamed when complete (rename is atomic on one file system). At
//! the end the segments become `<table>.parquet`. If that file exists, it is complete and segments
//! are leftovers.

mod headers;
#[cfg(test)]
mod tests;
mod thrift;

use std::fs::{self, File};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;

use crate::files;
use crate::folder::Folder;
use crate::table::{Row, is_lacking, parquet_schema, time_column};

/// Rows of a row group in a finished table: enough for columns to compress, few enough to buffer.
const ROW_GROUP_ROWS: usize = 65_536;

/// Small segments of one table are merged as soon as there are this many, so that a day of
/// recording makes hundreds of files, not tens of thousands.
const COMPACT_AT: usize = 64;

/// Segments of a running recording.
pub(crate) const SEGMENTS: &str = "segments";

/// An error in one file of a recording.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Parquet refused.
    #[error("{path}: {source}")]
    Parquet {
        /// The file.
        path: String,
        /// The reason.
        source: ParquetError,
    },
}

impl SegmentError {
    /// The same error of a file in `folder`, with the folder as the user named it.
    pub(crate) fn shown(self, folder: &Folder) -> Self {
        match self {
            Self::Io { path, source } => Self::Io { path: folder.shown(&path), source },
            Self::Parquet { path, source } => Self::Parquet { path: folder.shown(&path), source },
        }
    }
}

fn io<T>(path: &Path, result: std::io::Result<T>) -> Result<T, SegmentError> {
    result.map_err(|source| SegmentError::Io { path: path.display().to_string(), source })
}

fn parquet<T>(path: &Path, result: Result<T, ParquetError>) -> Result<T, SegmentError> {
    result.map_err(|source| SegmentError::Parquet { path: path.display().to_string(), source })
}

/// Writes `rows` as segment `number` and drops them once they are on disk. Writes nothing without
/// rows.
pub(crate) fn write_segment<R: Row>(dir: &Path, number: u64, rows: &mut Vec<R>) -> Result<(), SegmentError> {
    if rows.is_empty() {
        return Ok(());
    }
    let path = dir.join(SEGMENTS).join(format!("{}-{number:08}.parquet", R::TABLE));
    write_file(&path, &[], [Ok(rows.clone())])?;
    rows.clear();
    Ok(())
}

/// Writes batches of rows, without the columns in `lacking`, as one Parquet file that appears
/// completely or not at all.
fn write_file<R: Row>(
    path: &Path,
    lacking: &[String],
    batches: impl IntoIterator<Item = Result<Vec<R>, SegmentError>>,
) -> Result<(), SegmentError> {
    let partial = path.with_extension("parquet.tmp");
    let written = write_partial(&partial, lacking, batches);
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written?;
    io(path, fs::rename(&partial, path))
}

fn write_partial<R: Row>(
    path: &Path,
    lacking: &[String],
    batches: impl IntoIterator<Item = Result<Vec<R>, SegmentError>>,
) -> Result<(), SegmentError> {
    let schema = parquet(path, parquet_schema::<R>(lacking))?;
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let file = io(path, files::create(path))?;
    let mut writer = parquet(path, SerializedFileWriter::new(file, schema, properties))?;
    let written: Vec<usize> = (0..R::COLUMNS.len()).filter(|i| !is_lacking(lacking, &R::COLUMNS[*i])).collect();
    for batch in batches {
        for rows in batch?.chunks(ROW_GROUP_ROWS) {
            let mut group = parquet(path, writer.next_row_group())?;
            let mut indexes = written.iter();
            while let (Some(column), Some(index)) = (parquet(path, group.next_column())?, indexes.next()) {
                parquet(path, R::write_column(rows, *index, column))?;
            }
            parquet(path, group.close())?;
        }
    }
    let file = parquet(path, writer.into_inner())?;
    io(path, file.sync_all())
}

/// The rows of a row group by the statistics of its file: how many, and from which time to which. All
/// times if the file does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupSpan {
    /// First time, nanoseconds since the Unix epoch.
    pub from: i64,
    /// Last time.
    pub to: i64,
    /// Number of rows.
    pub rows: u64,
}

impl GroupSpan {
    pub(crate) fn overlaps(&self, range: &Range<i64>) -> bool {
        self.from < range.end && self.to >= range.start
    }
}

/// The row groups of an open Parquet file.
pub(crate) struct Groups {
    /// For errors.
    path: PathBuf,
    /// A second handle on the file, for checking a group's claims before the library believes them.
    claimed: File,
    reader: SerializedFileReader<File>,
    /// The position of each column of the table, if the file has it.
    positions: Vec<Option<usize>>,
}

impl Groups {
    pub(crate) fn open<R: Row>(path: &Path, file: File) -> Result<Self, SegmentError> {
        parquet(path, headers::check_footer(&file))?;
        let claimed = io(path, file.try_clone())?;
        let reader = parquet(path, guarded(|| SerializedFileReader::new(file)))?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let position = |name: &str| schema.columns().iter().position(|p| p.name() == name);
        let positions = R::COLUMNS.iter().map(|c| position(c.name)).collect();
        Ok(Self { path: path.to_owned(), claimed, reader, positions })
    }

    pub(crate) fn len(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Rows of the whole file, by its footer.
    pub(crate) fn rows_total(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().max(0).unsigned_abs()
    }

    /// Columns of `R` that the file lacks.
    pub(crate) fn lacking<R: Row>(&self) -> Vec<&'static str> {
        let columns = R::COLUMNS.iter().zip(&self.positions);
        columns.filter(|(_, position)| position.is_none()).map(|(column, _)| column.name).collect()
    }

    pub(crate) fn span<R: Row>(&self, i: usize) -> GroupSpan {
        let group = self.reader.metadata().row_group(i);
        let position = time_column::<R>().and_then(|column| self.positions[column]);
        let statistics = position.and_then(|position| group.columns().get(position)?.statistics());
        let times = match statistics {
            Some(Statistics::Int64(of)) => of.min_opt().zip(of.max_opt()).filter(|(from, to)| from <= to),
            _ => None,
        };
        let (from, to) = times.map_or((i64::MIN, i64::MAX), |(from, to)| (*from, *to));
        GroupSpan { from, to, rows: group.num_rows().max(0).unsigned_abs() }
    }

    pub(crate) fn read<T>(
        &self,
        i: usize,
        read: impl FnOnce(&dyn RowGroupReader, &[Option<usize>]) -> Result<T, ParquetError>,
    ) -> Result<T, SegmentError> {
        let path = &self.path;
        parquet(path, headers::check_group(&self.claimed, self.reader.metadata().row_group(i), &self.positions))?;
        let group = parquet(path, guarded(|| self.reader.get_row_group(i)))?;
        parquet(path, guarded(|| read(group.as_ref(), &self.positions)))
    }
}

/// Rows of one Parquet file of table `R`, one row group at a time.
fn row_groups<R: Row>(path: &Path) -> impl Iterator<Item = Result<Vec<R>, SegmentError>> + use<R> {
    let opened = io(path, files::open(path)).and_then(|file| Groups::open::<R>(path, file));
    let (groups, error) = match opened {
        Ok(groups) => (Some(groups), None),
        Err(error) => (None, Some(Err(error))),
    };
    let rows = groups.into_iter().flat_map(|groups| (0..groups.len()).map(move |i| groups.read(i, R::read_group)));
    error.into_iter().chain(rows)
}

/// The result of `read`. The library panics on some damaged pages; that becomes an error of the
/// file.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(ParquetError::General("a page is damaged".to_owned())))
}

/// Segments of all tables, sorted.
pub(crate) fn all_segments(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join(SEGMENTS)).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The segments of `table`, in the order they were written.
pub(crate) fn segments_of_table(all: &[PathBuf], table: &str) -> Vec<PathBuf> {
    let prefix = format!("{table}-");
    let is_of = |path: &&PathBuf| {
        path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&prefix) && n.ends_with(".parquet"))
    };
    all.iter().filter(is_of).cloned().collect()
}

/// All segments up to the last that a look at the folder finds. A listing beside a writer may have a segment and lack one
/// that was written before it, and what a merge does not see it must not replace; a second listing has all of them.
pub(crate) fn settled_segments(dir: &Path) -> Vec<PathBuf> {
    let end = |path: &PathBuf| span(path).map_or(0, |(_, last)| last);
    let last = all_segments(dir).iter().map(end).max().unwrap_or(0);
    let mut all = all_segments(dir);
    all.retain(|path| end(path) <= last);
    all
}

/// Segments of `table` in the order they were written.
pub(crate) fn segments(dir: &Path, table: &str) -> Vec<PathBuf> {
    segments_of_table(&all_segments(dir), table)
}

/// The finished file of `table`.
pub(crate) fn table_path(dir: &Path, table: &str) -> PathBuf {
    dir.join(format!("{table}.parquet"))
}

/// Opens a file of a table.
pub(crate) fn open(path: &Path) -> Result<File, SegmentError> {
    io(path, files::open(path))
}

/// Most repeats of a table's listing because a writer merged files meanwhile. Each repeat takes at
/// least one merge.
const LISTINGS_MAX: usize = 1_000;

/// Opens all files of a table at one moment of its life: `<table>.parquet`, or the segments that
/// will become it. A writer that merges removes files only after the merged one exists, and an open
/// file outlives its name. So the opened files are the table if the names were the same before and
/// after.
///
/// # Errors
/// If a file cannot be opened for another reason than a merge.
pub(crate) fn open_parts(dir: &Path, table: &str) -> Result<Vec<(PathBuf, File)>, SegmentError> {
    let names = || {
        let whole = table_path(dir, table);
        if whole.exists() { vec![whole] } else { not_replaced(segments(dir, table)) }
    };
    open_unchanged(names, open)
}

/// Opens the files that `list` names, repeatedly until the names are the same before and after.
fn open_unchanged<F>(
    list: impl Fn() -> Vec<PathBuf>,
    mut open: impl FnMut(&Path) -> Result<F, SegmentError>,
) -> Result<Vec<(PathBuf, F)>, SegmentError> {
    let mut listed = list();
    for listing in 1.. {
        let opened: Result<Vec<_>, _> = listed.iter().map(|path| open(path).map(|file| (path.clone(), file))).collect();
        let now = list();
        if now == listed || listing == LISTINGS_MAX {
            return opened;
        }
        listed = now;
    }
    Ok(Vec::new())
}

/// Merges the table's segments among `all`: into `<table>.parquet` if `finish`, otherwise small ones
/// into one if there are many. The merged ones are then removed. Returns the number of merged rows.
///
/// A crash between the rename and the removals would leave rows twice, so the name of a merged
/// segment says which parts it replaces; see [`not_replaced`].
pub(crate) fn merge_table<R: Row>(dir: &Path, all: &[PathBuf], finish: bool) -> Result<u64, SegmentError> {
    let parts = segments_of_table(all, R::TABLE);
    if finish {
        return merge::<R>(&parts, &table_path(dir, R::TABLE));
    }
    let small: Vec<PathBuf> = parts.into_iter().filter(|p| span(p).is_some_and(|(a, b)| a == b)).collect();
    let ends = small.first().and_then(|p| span(p)).zip(small.last().and_then(|p| span(p)));
    let Some((first, last)) = ends.filter(|_| small.len() >= COMPACT_AT) else { return Ok(0) };
    let name = format!("{}-{:08}+{:08}.parquet", R::TABLE, first.0, last.1);
    merge::<R>(&small, &dir.join(SEGMENTS).join(name))
}

/// First and last segment number that a file covers: `samples-00000007.parquet` gives (7, 7),
/// `samples-00000001+00000064.parquet` gives (1, 64).
pub(crate) fn span(path: &Path) -> Option<(u64, u64)> {
    let (_, numbers) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    let (first, last) = numbers.split_once('+').unwrap_or((numbers, numbers));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// The `parts` that no wider part replaces.
pub(crate) fn not_replaced(parts: Vec<PathBuf>) -> Vec<PathBuf> {
    let spans: Vec<_> = parts.iter().map(|p| span(p)).collect();
    let covers = |outer: (u64, u64), inner: (u64, u64)| outer != inner && outer.0 <= inner.0 && inner.1 <= outer.1;
    parts
        .iter()
        .zip(&spans)
        .filter(|(_, s)| s.is_some_and(|inner| !spans.iter().flatten().any(|&outer| covers(outer, inner))))
        .map(|(p, _)| p.clone())
        .collect()
}

/// Writes `<table>.parquet` from rows as they come. Returns their number.
pub(crate) fn write_table<R: Row>(dir: &Path, rows: impl IntoIterator<Item = Vec<R>>) -> Result<u64, SegmentError> {
    write_gathered(&table_path(dir, R::TABLE), &[], rows.into_iter().map(Ok))
}

/// The same from a source that may fail, without the columns in `lacking`.
pub(crate) fn write_table_lacking<R: Row>(
    dir: &Path,
    lacking: &[String],
    rows: impl IntoIterator<Item = std::io::Result<Vec<R>>>,
) -> Result<u64, SegmentError> {
    let path = table_path(dir, R::TABLE);
    write_gathered(&path, lacking, rows.into_iter().map(|rows| io(&path, rows)))
}

/// Writes rows of many small parts as full row groups; at most two row groups are in memory.
fn write_gathered<R: Row>(
    into: &Path,
    lacking: &[String],
    mut parts: impl Iterator<Item = Result<Vec<R>, SegmentError>>,
) -> Result<u64, SegmentError> {
    let mut count = 0;
    let mut pending: Vec<R> = Vec::new();
    let batches = std::iter::from_fn(|| {
        while pending.len() < ROW_GROUP_ROWS {
            match parts.next() {
                Some(Ok(rows)) => {
                    count += rows.len() as u64;
                    pending.extend(rows);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        let take = pending.len().min(ROW_GROUP_ROWS);
        (take > 0).then(|| Ok(pending.drain(..take).collect()))
    });
    write_file::<R>(into, lacking, batches)?;
    Ok(count)
}

fn merge<R: Row>(parts: &[PathBuf], into: &Path) -> Result<u64, SegmentError> {
    let keep = not_replaced(parts.to_vec());
    let count = write_gathered(into, &[], keep.iter().flat_map(|path| row_groups::<R>(path)))?;
    for part in parts {
        io(part, fs::remove_file(part))?;
    }
    Ok(count)
}
