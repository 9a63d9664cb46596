//! Writes a recording while it happens. Any thread pushes rows; a separate thread writes them as
//! closed segments every [`FLUSH_EVERY`], so that after `kill -9` all but the last seconds can be
//! read.

mod flush;
mod queue;
mod room;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

pub use self::flush::SOURCE;
use self::flush::{Flush, Notices};
use self::queue::{Memory, Message};
pub use self::queue::{RowSink, Tap};
pub use self::room::Limits;
use self::room::{Reserve, Room};
use crate::allocator::give_back_memory;
use crate::files;
use crate::folder::Folder;
use crate::manifest::{MANIFEST, Manifest, RunState};
use crate::metrics;
use crate::priority::give_way;
use crate::segment::{self, SEGMENTS, SegmentError};
use crate::table::Row;
use crate::tables::merge_all;

/// How long rows are gathered. A crash may lose them and the segment being written: 2 s if writing
/// takes at most half a second.
pub const FLUSH_EVERY: Duration = Duration::from_millis(1_500);

/// Memory for rows of files that are not written yet: reading goes on while they are written.
const MEMORY_OF_FILES: usize = 16 << 20;

/// Why a recording cannot be written. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The directory exists and is not empty.
    #[error("{0}: exists and is not empty; name another directory with -o, or remove it")]
    Occupied(PathBuf),
    /// The directory, or something in it, cannot be created.
    #[error("failed to create {path}: {source}; name a directory that you may write to with -o")]
    NotCreated {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory cannot be written.
    #[error("failed to write {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A table cannot be written.
    #[error("failed to write a table: {0}")]
    Table(#[from] SegmentError),
}

/// Writes a table outside a running recording, in row groups of full size however many rows come at
/// once. Returns the number of rows. An empty table also gets a file.
///
/// # Errors
/// Those of the file system.
pub fn write_table<R: Row>(dir: &Path, rows: impl IntoIterator<Item = Vec<R>>) -> Result<u64, RecordError> {
    Ok(segment::write_table(dir, rows)?)
}

/// Adds messages to those of a recording that is being written.
#[derive(Clone)]
pub struct Notifier(Arc<Notices>);

impl Notifier {
    /// Adds a line.
    pub fn say(&self, text: String) {
        self.0.add(text);
    }
}

/// A recording being written.
pub struct Recorder {
    folder: Arc<Folder>,
    sink: RowSink,
    writer: Option<JoinHandle<Flush>>,
    notices: Arc<Notices>,
    reserve: Reserve,
}

impl Recorder {
    /// Creates `dir` and starts a recording of files in it: a caller that pushes rows waits for the disk.
    ///
    /// # Errors
    /// Those of [`Self::create_within`].
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Self, RecordError> {
        let limits = Limits { memory_bytes: MEMORY_OF_FILES, ..Limits::default() };
        let mut recorder = Self::create_within(limits, dir, manifest)?;
        recorder.sink.waits = true;
        Ok(recorder)
    }

    /// Creates `dir` and starts a recording of what happens now in it, within `limits`: pushing rows
    /// never blocks.
    ///
    /// # Errors
    /// If `dir` is not empty, another recording is being started in it, or it cannot be written;
    /// nothing is left behind then.
    pub fn create_within(limits: Limits, dir: &Path, manifest: &Manifest) -> Result<Self, RecordError> {
        if dir.is_file() {
            return Err(RecordError::Occupied(dir.to_owned()));
        }
        let is_new = !dir.exists();
        let folder = Folder::create(dir).map_err(|source| RecordError::NotCreated { path: dir.to_owned(), source })?;
        claim(&folder)?;
        let folder = Arc::new(folder);
        let started = Self::start(limits, &folder, manifest);
        if started.is_err() {
            let _ = fs::remove_file(folder.place().join(MANIFEST));
            let _ = fs::remove_dir(folder.place().join(SEGMENTS));
            if is_new {
                let _ = fs::remove_dir(dir);
            }
        }
        started.map_err(|source| RecordError::Io { path: dir.to_owned(), source })
    }

    fn start(limits: Limits, folder: &Arc<Folder>, manifest: &Manifest) -> io::Result<Self> {
        let dir = folder.place();
        Room::new(&dir, limits).check()?;
        let reserve = Reserve::create(&dir)?;
        manifest.write(&dir)?;
        let (sender, receiver) = mpsc::channel();
        let (memory, notices) = (Memory::new(limits.memory_bytes), Arc::new(Notices::default()));
        let flush = Flush::new(folder, limits, Arc::clone(&memory), Arc::clone(&notices));
        let writer = std::thread::Builder::new().name("recording".to_owned()).spawn(move || {
            give_way();
            flush.run(&receiver)
        })?;
        let sink = RowSink { sender, memory, tap: None, waits: false };
        Ok(Self { folder: Arc::clone(folder), sink, writer: Some(writer), notices, reserve })
    }

    /// Its directory. Open files in it by [`Folder::place`].
    pub fn folder(&self) -> Arc<Folder> {
        Arc::clone(&self.folder)
    }

    /// Passes all rows that are pushed through later handles to `tap`.
    pub fn tap(&mut self, tap: Tap) {
        self.sink.tap = Some(tap);
    }

    /// A handle for pushing rows.
    pub fn sink(&self) -> RowSink {
        self.sink.clone()
    }

    /// A handle for messages that [`Self::notices`] gives.
    pub fn notifier(&self) -> Notifier {
        Notifier(Arc::clone(&self.notices))
    }

    /// Write errors since the last call, and how they ended; worth a line at once.
    pub fn notices(&self) -> Vec<String> {
        self.notices.take()
    }

    /// Whether it has reached its largest size and should be finished.
    pub fn is_full(&self) -> bool {
        self.notices.is_full.load(Ordering::Relaxed)
    }

    /// Ends the recording: writes `manifest` with `state`, merges segments into tables, and writes
    /// it again with row counts. A process killed during the merge leaves a complete recording.
    ///
    /// # Errors
    /// If something could not be written. The written part stays readable.
    pub fn finish(mut self, mut manifest: Manifest, state: RunState) -> Result<Manifest, RecordError> {
        let _ = self.sink.sender.send(Message::Finish);
        let flush = self.writer.take().and_then(|writer| writer.join().ok());
        let folder = self.folder;
        let dir = folder.place();
        drop(self.reserve);
        manifest.ended_at = Some(crate::clock::now_ns());
        manifest.state = state;
        let Some(mut flush) = flush else {
            manifest.state = RunState::Interrupted;
            let _ = manifest.write(&dir);
            let source = io::Error::other("the thread that writes it failed; please report this");
            return Err(RecordError::Io { path: folder.path().to_owned(), source });
        };
        if flush.has_failed() {
            // The reserve's room goes to the manifest first, then to the last rows.
            manifest.state = RunState::Interrupted;
            let _ = manifest.write(&dir);
            flush.flush_last();
        }
        manifest.state = if flush.has_failed() { RunState::Interrupted } else { state };
        manifest.coverage.extend(flush.coverage());
        let written = manifest.write(&dir);
        if let Some(error) = flush.take_error() {
            return Err(error.shown(&folder).into());
        }
        let io = |source| RecordError::Io { path: folder.path().to_owned(), source };
        written.map_err(io)?;
        // What rows took while they came is free now, and merging takes as much once more.
        give_back_memory();
        // Segments that cannot be merged for lack of room are readable as they are.
        match merge_all(&dir, true) {
            Ok(tables) => manifest.tables = tables,
            Err(trouble) => {
                manifest.state = RunState::Interrupted;
                let _ = manifest.write(&dir);
                return Err(trouble.shown(&folder).into());
            }
        }
        let _ = fs::remove_dir(dir.join(SEGMENTS));
        // The recording is complete without the dictionary, because every holdup knows the metrics.
        let _ = metrics::write_dictionary(&dir);
        manifest.write(&dir).map_err(io)?;
        Ok(manifest)
    }
}

/// Claims `folder` for one recording: if several try at the same time, only one creates the folder
/// of segments, which is atomic, and the others are refused.
fn claim(folder: &Folder) -> Result<(), RecordError> {
    let occupied = || RecordError::Occupied(folder.path().to_owned());
    let dir = folder.place();
    let io = |source| RecordError::NotCreated { path: folder.path().to_owned(), source };
    if fs::read_dir(&dir).map_err(io)?.next().is_some() {
        return Err(occupied());
    }
    match files::create_new_dir(&dir.join(SEGMENTS)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(occupied()),
        Err(error) => return Err(io(error)),
    }
    // A recording that began and ended since `dir` was checked no longer has such a folder.
    if dir.join(MANIFEST).exists() {
        let _ = fs::remove_dir(dir.join(SEGMENTS));
        return Err(occupied());
    }
    Ok(())
}
