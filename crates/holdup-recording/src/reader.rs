//! Opens a recording: finished, still running, or cut off by `kill -9`.

pub mod excerpt;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;

use crate::condensed::{self, Condensed};
use crate::manifest::{FORMAT_MAJOR, MANIFEST, Manifest};
use crate::rows::{Exchange, Sample, Statement, Tables};
use crate::segment::{self, GroupSpan, SegmentError};
use crate::table::{Row, StoredColumn, time_column};
use crate::{files, hlog};

/// The file of a search for the knee: its settings, and every step that was played (JSON).
pub const SEARCH: &str = "search.json";

/// Largest manifest and search file that are read.
const LARGEST_TEXT_BYTES: u64 = 256 << 20;

/// Why a recording cannot be opened. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory does not exist.
    #[error("{0}: no such recording; give the directory that `holdup run -o` created")]
    NotThere(PathBuf),
    /// The path is a file.
    #[error("{path}: a file, not a recording; {hint}")]
    IsFile {
        /// The file.
        path: PathBuf,
        /// Which directory to give instead.
        hint: String,
    },
    /// The directory is not a recording; it may contain some.
    #[error("{dir}: not a recording, it has no {MANIFEST}{hint}")]
    NoManifest {
        /// The directory.
        dir: PathBuf,
        /// The recordings in it, in words.
        hint: String,
    },
    /// The manifest cannot be read.
    #[error("{path}: {why}")]
    BadManifest {
        /// The manifest.
        path: PathBuf,
        /// Position and reason.
        why: String,
    },
    /// Written by a later holdup.
    #[error("{path}: recording format {found}, but this holdup reads up to {FORMAT_MAJOR}; use a newer holdup")]
    TooNew {
        /// The manifest.
        path: PathBuf,
        /// Its major format version.
        found: u32,
    },
    /// A table cannot be read.
    #[error("failed to read a table: {0}; move that file away to read the rest")]
    Table(#[from] SegmentError),
}

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
    fn absent() -> Self {
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

/// A recording in memory.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Its directory.
    pub dir: PathBuf,
    /// What was recorded.
    pub manifest: Manifest,
    /// All its tables.
    pub tables: Tables,
    /// The load's latencies by second and operation, still encoded: see [`hlog::merged`].
    pub latencies: Vec<hlog::Slice>,
    /// Text of [`SEARCH`], if the load was a search.
    pub search: Option<String>,
}

impl Recording {
    /// Opens the recording in `dir`.
    ///
    /// # Errors
    /// See [`OpenError`]. A running or cut-off recording is not an error: its closed segments are
    /// read.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::opened(dir, |dir| Ok((Tables::from_source(&mut all(dir))?, hlog::read(dir))))
    }

    /// Opens it for judging, without rows of samples, and with rows only of those executions that
    /// are examined one by one; their content is in [`Tables::condensed`]. So long recordings take
    /// little time and memory.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_condensed(dir: &Path) -> Result<Self, OpenError> {
        Self::opened(dir, |dir| {
            std::thread::scope(|scope| {
                let samples = scope.spawn(|| condensed::Reader::default().samples(dir));
                let exchanges = read_table::<Exchange>(dir, None)?;
                let has_packets = !exchanges.rows.is_empty();
                let statements = scope.spawn(move || condensed::Reader::default().statements(dir, has_packets));
                let apart = [Sample::TABLE, Statement::TABLE, Exchange::TABLE];
                let mut tables =
                    Tables::from_source(&mut Part(dir, |table| (!apart.contains(&table)).then_some(None)))?;
                let latencies = hlog::read(dir);
                let (samples, series) = joined(samples)?;
                let (statements, executions, totals) = joined(statements)?;
                (tables.samples, tables.statements, tables.exchanges) = (samples, statements, exchanges);
                tables.condensed = Some(Arc::new(Condensed { series, executions, totals }));
                Ok((tables, latencies))
            })
        })
    }

    /// The manifest of the recording in `dir`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn manifest(dir: &Path) -> Result<Manifest, OpenError> {
        if !dir.exists() {
            return Err(OpenError::NotThere(dir.to_owned()));
        }
        if dir.is_file() {
            return Err(OpenError::IsFile { path: dir.to_owned(), hint: recording_around(dir) });
        }
        read_manifest(dir)
    }

    fn opened(
        dir: &Path,
        read: impl FnOnce(&Path) -> Result<(Tables, Vec<hlog::Slice>), OpenError>,
    ) -> Result<Self, OpenError> {
        let manifest = Self::manifest(dir)?;
        let (tables, latencies) = read(dir)?;
        let search = files::read_text(&dir.join(SEARCH), LARGEST_TEXT_BYTES).ok();
        Ok(Self { dir: dir.to_owned(), manifest, tables, latencies, search })
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn read_manifest(dir: &Path) -> Result<Manifest, OpenError> {
    let path = dir.join(MANIFEST);
    let text = match files::read_text(&path, LARGEST_TEXT_BYTES) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(OpenError::NoManifest { dir: dir.to_owned(), hint: recordings_in(dir) });
        }
        Err(e) => return Err(OpenError::BadManifest { path, why: e.to_string() }),
    };
    // The version is checked first, because a newer manifest may differ in anything else.
    let bad = |why: serde_json::Error| OpenError::BadManifest { path: path.clone(), why: why.to_string() };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(bad)?;
    let major = value.pointer("/format/major").and_then(serde_json::Value::as_u64).unwrap_or(0) as u32;
    if major > FORMAT_MAJOR {
        return Err(OpenError::TooNew { path, found: major });
    }
    serde_json::from_value(value).map_err(bad)
}

/// Which directory to give instead of the file `path`.
fn recording_around(path: &Path) -> String {
    match path.parent().filter(|dir| dir.join(MANIFEST).exists()) {
        Some(dir) if dir.as_os_str().is_empty() => "give its directory: .".to_owned(),
        Some(dir) => format!("give its directory: {}", dir.display()),
        None => "give the directory that `holdup run -o` created".to_owned(),
    }
}

/// `; it holds recordings, name one: DIR/faulty`, if it holds some; else the commands that create one.
fn recordings_in(dir: &Path) -> String {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let mut inside: Vec<PathBuf> = entries.filter(|path| path.join(MANIFEST).exists()).collect();
    inside.sort();
    let names: Vec<String> = inside.iter().map(|path| path.display().to_string()).collect();
    if names.is_empty() {
        "; give the directory that `holdup run -o` or `holdup watch -o` created".to_owned()
    } else {
        format!("; it holds recordings, name one: {}", names.join(", "))
    }
}

/// What tables are filled from.
pub(crate) trait Source {
    /// The table of rows `R`.
    ///
    /// # Errors
    /// If it cannot be read.
    fn table<R: Row>(&mut self) -> Result<Table<R>, OpenError>;
}

/// The tables of a directory for which the second says which time to read, or all of it with
/// `Some(None)`.
struct Part<'d, F>(&'d Path, F);

impl<'p, F: Fn(&'static str) -> Option<Option<&'p Range<i64>>>> Source for Part<'_, F> {
    fn table<R: Row>(&mut self) -> Result<Table<R>, OpenError> {
        (self.1)(R::TABLE).map_or_else(|| Ok(Table::absent()), |within| read_table(self.0, within))
    }
}

/// All tables of a directory.
fn all(dir: &Path) -> Part<'_, impl Fn(&'static str) -> Option<Option<&'static Range<i64>>>> {
    Part(dir, |_| Some(None))
}

/// Reads a table: all of it, or the rows in `within`.
fn read_table<R: Row>(dir: &Path, within: Option<&Range<i64>>) -> Result<Table<R>, OpenError> {
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
fn group_spans<R: Row>(dir: &Path) -> Result<Vec<GroupSpan>, OpenError> {
    let mut spans = Vec::new();
    for (path, file) in segment::open_parts(dir, R::TABLE)? {
        spans.extend(segment::group_spans::<R>(&path, file)?);
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
) -> Result<Table<R>, OpenError> {
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
        table.missing.extend(segment::each_group_of::<R>(&path, file, within, &mut read)?);
    }
    table.missing.sort_unstable();
    table.missing.dedup();
    Ok(table)
}
