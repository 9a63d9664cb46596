//! The queue between threads that push rows and the disk: any thread may push, none ever waits, and
//! memory is bounded. Rows without memory are dropped and counted as lost.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use crate::tables::Batch;

/// Sees rows on their way into a recording. The pushing thread calls it, so it must be quick.
pub type Tap = Arc<dyn Fn(&Batch) + Send + Sync>;

pub(super) enum Message {
    /// Rows, and the bytes reserved for them.
    Rows(Box<Batch>, usize),
    Finish,
}

/// Memory of rows that are not on disk yet.
#[derive(Debug)]
pub(super) struct Memory {
    most: usize,
    taken: AtomicUsize,
    lost_rows: AtomicU64,
}

impl Memory {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0), lost_rows: AtomicU64::new(0) })
    }

    fn reserve(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Releases memory: the rows are on disk, or lost.
    pub(super) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Rows lost so far.
    pub(super) fn lost_rows(&self) -> u64 {
        self.lost_rows.load(Ordering::Relaxed)
    }
}

/// Handle for pushing rows; clone it for each thread.
#[derive(Clone)]
pub struct RowSink {
    pub(super) sender: mpsc::Sender<Message>,
    pub(super) memory: Arc<Memory>,
    pub(super) tap: Option<Tap>,
}

impl RowSink {
    /// Takes rows. Never blocks. Rows pushed after the end are dropped; rows without memory are
    /// lost and counted.
    pub fn push(&self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        if let Some(tap) = &self.tap {
            tap(&batch);
        }
        let bytes = batch.bytes();
        if self.memory.reserve(bytes) {
            let _ = self.sender.send(Message::Rows(Box::new(batch), bytes));
        } else {
            self.memory.lost_rows.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }
}
