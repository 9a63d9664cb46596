//! Opens a recording: finished, still running, or cut off by `kill -9`.

pub mod excerpt;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use self::excerpt::Excerpt;
use crate::manifest::{FORMAT_MAJOR, MANIFEST, Manifest};
use crate::segment::SegmentError;
use crate::stored::all;
use crate::tables::Tables;
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
    /// Which part of it is in memory, if not all.
    pub excerpt: Option<Arc<Excerpt>>,
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
        Self::opened(dir, |dir| excerpt::read_condensed(dir, None, hlog::read))
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
        Ok(Self { dir: dir.to_owned(), manifest, tables, latencies, search, excerpt: None })
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
