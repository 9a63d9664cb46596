//! Writes a recording while it happens. Any thread pushes rows; one thread of its own puts them into
//! closed segments every [`FLUSH_EVERY`], so that after `kill -9` all but the last seconds can be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::files;
use crate::manifest::{Manifest, RunState};
use crate::priority::give_way;
use crate::rows::{Batch, merge_all};
use crate::segment::{self, SEGMENTS, SegmentError};
use crate::table::Row;

/// What a crash may cost.
pub const FLUSH_EVERY: Duration = Duration::from_secs(2);

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

enum Message {
    Rows(Box<Batch>),
    Finish,
}

/// What looks at rows on their way into a recording. It is called by whoever pushes them, so it has to be quick.
pub type Tap = Arc<dyn Fn(&Batch) + Send + Sync>;

/// Handle for pushing rows; clone it for each thread.
#[derive(Clone)]
pub struct RowSink {
    sender: mpsc::Sender<Message>,
    tap: Option<Tap>,
}

impl RowSink {
    /// Takes rows in. Never blocks; rows pushed after the recording has ended are dropped.
    pub fn push(&self, batch: Batch) {
        if !batch.is_empty() {
            if let Some(tap) = &self.tap {
                tap(&batch);
            }
            let _ = self.sender.send(Message::Rows(Box::new(batch)));
        }
    }
}

/// A recording being written.
pub struct Recorder {
    dir: PathBuf,
    sink: RowSink,
    writer: Option<JoinHandle<()>>,
    trouble: Arc<Mutex<Option<SegmentError>>>,
}

impl Recorder {
    /// Makes `dir` and starts a recording in it.
    ///
    /// # Errors
    /// If `dir` holds something already or can't be written; nothing is left behind then.
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Self, RecordError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| RecordError::Io { path, source }
        };
        if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) || dir.is_file() {
            return Err(RecordError::Occupied(dir.to_owned()));
        }
        files::create_dir(dir).map_err(io(dir))?;
        files::create_dir(&dir.join(SEGMENTS)).map_err(io(dir))?;
        manifest.write(dir).map_err(io(dir))?;
        let (sender, receiver) = mpsc::channel();
        let trouble = Arc::new(Mutex::new(None));
        let writer = std::thread::Builder::new()
            .name("recording".to_owned())
            .spawn({
                let (dir, trouble) = (dir.to_owned(), Arc::clone(&trouble));
                move || {
                    give_way();
                    write_rows(&dir, &receiver, &trouble);
                }
            })
            .map_err(io(dir))?;
        Ok(Self { dir: dir.to_owned(), sink: RowSink { sender, tap: None }, writer: Some(writer), trouble })
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

    /// Ends the recording: merges segments into tables and writes `manifest` with `state` and row counts.
    ///
    /// # Errors
    /// If something could not be written, now or before. What was written stays readable.
    pub fn finish(mut self, mut manifest: Manifest, state: RunState) -> Result<Manifest, RecordError> {
        let _ = self.sink.sender.send(Message::Finish);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        manifest.ended_at = Some(crate::clock::now_ns());
        // Segments that can't be merged for want of room can be read as they are.
        match trouble.map_or_else(|| merge_all(&self.dir, true), Err) {
            Ok(tables) => (manifest.tables, manifest.state) = (tables, state),
            Err(trouble) => {
                manifest.state = RunState::Interrupted;
                let _ = manifest.write(&self.dir);
                return Err(trouble.into());
            }
        }
        let _ = fs::remove_dir(self.dir.join(SEGMENTS));
        manifest.write(&self.dir).map_err(|source| RecordError::Io { path: self.dir.clone(), source })?;
        Ok(manifest)
    }
}

fn write_rows(dir: &Path, receiver: &mpsc::Receiver<Message>, trouble: &Mutex<Option<SegmentError>>) {
    let mut pending = Batch::default();
    let mut number = 0;
    let mut due = Instant::now() + FLUSH_EVERY;
    let mut open = true;
    while open {
        match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(Message::Rows(batch)) => pending.append(*batch),
            Ok(Message::Finish) | Err(RecvTimeoutError::Disconnected) => open = false,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if open && Instant::now() < due {
            continue;
        }
        due = Instant::now() + FLUSH_EVERY;
        number += 1;
        let written = pending
            .write_segments(dir, number)
            .and_then(|()| if open { merge_all(dir, false).map(drop) } else { Ok(()) });
        if let Err(error) = written {
            *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
    }
}
