//! Writes a recording while it happens. Any thread pushes rows; one thread of its own puts them into
//! closed segments every [`FLUSH_EVERY`], so that after `kill -9` all but the last seconds can be read.

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
use self::flush::{Flush, Told};
use self::queue::{Memory, Message};
pub use self::queue::{RowSink, Tap};
pub use self::room::Limits;
use self::room::{Reserve, Room};
use crate::files;
use crate::manifest::{MANIFEST, Manifest, RunState};
use crate::metrics;
use crate::priority::give_way;
use crate::rows::merge_all;
use crate::segment::{self, SEGMENTS, SegmentError};
use crate::table::Row;

/// How long rows are gathered. A crash may cost them and what is being written: 2 s where writing takes no longer than half a second.
pub const FLUSH_EVERY: Duration = Duration::from_millis(1_500);

/// Why a recording can't be written. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The directory is there and holds something.
    #[error("{0}: already there and not empty; name another directory with -o, or remove it")]
    Occupied(PathBuf),
    /// The directory can't be made or written.
    #[error("failed to write {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A table can't be written.
    #[error("failed to write a table: {0}")]
    Table(#[from] SegmentError),
}

/// Writes a table of a recording that nobody records, in row groups of full size however many rows come at once. Returns how many
/// there were. A table of none is a file all the same.
///
/// # Errors
/// Those of the file system.
pub fn write_table<R: Row>(dir: &Path, rows: impl IntoIterator<Item = Vec<R>>) -> Result<u64, RecordError> {
    Ok(segment::write_table(dir, rows)?)
}

/// A recording being written.
pub struct Recorder {
    dir: PathBuf,
    sink: RowSink,
    writer: Option<JoinHandle<Flush>>,
    told: Arc<Told>,
    reserve: Reserve,
}

impl Recorder {
    /// Makes `dir` and starts a recording in it, with the usual limits.
    ///
    /// # Errors
    /// Those of [`Self::create_within`].
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Self, RecordError> {
        Self::create_within(Limits::default(), dir, manifest)
    }

    /// Makes `dir` and starts a recording in it that takes no more than `limits`.
    ///
    /// # Errors
    /// If `dir` holds something already, another recording is being started in it, or it can't be written; nothing is left
    /// behind then.
    pub fn create_within(limits: Limits, dir: &Path, manifest: &Manifest) -> Result<Self, RecordError> {
        if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) || dir.is_file() {
            return Err(RecordError::Occupied(dir.to_owned()));
        }
        let is_new = !dir.exists();
        claim(dir)?;
        let started = Self::start(limits, dir, manifest);
        if started.is_err() {
            let _ = fs::remove_file(dir.join(MANIFEST));
            let _ = fs::remove_dir(dir.join(SEGMENTS));
            if is_new {
                let _ = fs::remove_dir(dir);
            }
        }
        started.map_err(|source| RecordError::Io { path: dir.to_owned(), source })
    }

    fn start(limits: Limits, dir: &Path, manifest: &Manifest) -> io::Result<Self> {
        Room::new(dir, limits).check()?;
        let reserve = Reserve::take(dir)?;
        manifest.write(dir)?;
        let (sender, receiver) = mpsc::channel();
        let (memory, told) = (Memory::new(limits.memory_bytes), Arc::new(Told::default()));
        let flush = Flush::new(dir, limits, Arc::clone(&memory), Arc::clone(&told));
        let writer = std::thread::Builder::new().name("recording".to_owned()).spawn(move || {
            give_way();
            flush.run(&receiver)
        })?;
        let sink = RowSink { sender, memory, tap: None };
        Ok(Self { dir: dir.to_owned(), sink, writer: Some(writer), told, reserve })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lets `tap` look at all rows that are pushed through handles taken from now on.
    pub fn tap(&mut self, tap: Tap) {
        self.sink.tap = Some(tap);
    }

    /// A handle for pushing rows.
    pub fn sink(&self) -> RowSink {
        self.sink.clone()
    }

    /// What went wrong with writing since this was asked for last, and what became of it: worth a line at once.
    pub fn notices(&self) -> Vec<String> {
        self.told.take()
    }

    /// Whether it has reached the largest size that it may have: time to finish it.
    pub fn is_full(&self) -> bool {
        self.told.is_full.load(Ordering::Relaxed)
    }

    /// Ends the recording: writes `manifest` with `state`, merges segments into tables, and writes it again with row counts. Who is
    /// killed while it merges leaves a whole recording.
    ///
    /// # Errors
    /// If something could not be written. What was written stays readable.
    pub fn finish(mut self, mut manifest: Manifest, state: RunState) -> Result<Manifest, RecordError> {
        let _ = self.sink.sender.send(Message::Finish);
        let flush = self.writer.take().and_then(|writer| writer.join().ok());
        let dir = self.dir;
        drop(self.reserve);
        manifest.ended_at = Some(crate::clock::now_ns());
        manifest.state = state;
        let Some(mut flush) = flush else {
            manifest.state = RunState::Interrupted;
            let _ = manifest.write(&dir);
            let source = io::Error::other("the thread that writes it failed; please report this");
            return Err(RecordError::Io { path: dir, source });
        };
        if flush.has_failed() {
            // The room of the reserve is the manifest's first, then that of the last rows.
            manifest.state = RunState::Interrupted;
            let _ = manifest.write(&dir);
            flush.flush_last();
        }
        manifest.state = if flush.has_failed() { RunState::Interrupted } else { state };
        manifest.coverage.extend(flush.coverage());
        let written = manifest.write(&dir);
        if let Some(error) = flush.take_error() {
            return Err(error.into());
        }
        let io = |source| RecordError::Io { path: dir.clone(), source };
        written.map_err(io)?;
        // Segments that can't be merged for want of room can be read as they are.
        match merge_all(&dir, true) {
            Ok(tables) => manifest.tables = tables,
            Err(trouble) => {
                manifest.state = RunState::Interrupted;
                let _ = manifest.write(&dir);
                return Err(trouble.into());
            }
        }
        let _ = fs::remove_dir(dir.join(SEGMENTS));
        // A recording without the dictionary is whole: every holdup knows what its names mean.
        let _ = metrics::write_dictionary(&dir);
        manifest.write(&dir).map_err(io)?;
        Ok(manifest)
    }
}

/// Makes `dir` a recording's: of several that try at the same time one makes the folder of segments, which the kernel does in one
/// step, and the others are refused.
fn claim(dir: &Path) -> Result<(), RecordError> {
    let io = |source| RecordError::Io { path: dir.to_owned(), source };
    files::create_dir(dir).map_err(io)?;
    match files::create_new_dir(&dir.join(SEGMENTS)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(RecordError::Occupied(dir.to_owned()));
        }
        Err(error) => return Err(io(error)),
    }
    // A recording that has begun and ended since `dir` was looked at has no such folder any more.
    if dir.join(MANIFEST).exists() {
        let _ = fs::remove_dir(dir.join(SEGMENTS));
        return Err(RecordError::Occupied(dir.to_owned()));
    }
    Ok(())
}
