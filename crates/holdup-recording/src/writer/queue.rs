//! The queue between threads that push rows and the disk. Any thread may push, and memory is bounded.
//! While a system is watched no thread ever waits: rows without memory are dropped and counted as
//! lost. A recording that is made of files has time: there the pushing thread waits for the disk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::tables::Batch;

/// Sees rows on their way into a recording. The pushing thread calls it, so it must be quick.
pub type Tap = Arc<dyn Fn(&Batch) + Send + Sync>;

pub(super) enum Message {
    /// Rows, and the bytes reserved for them.
    Rows(Box<Batch>, usize),
    /// A thread waits for memory: write what there is now.
    Flush,
    Finish,
}

/// Between two looks at whether the disk still takes rows.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Memory of rows that are not on disk yet.
#[derive(Debug)]
pub(super) struct Memory {
    most: usize,
    taken: Mutex<usize>,
    freed: Condvar,
    /// Whether rows stay in memory because they cannot be written.
    is_stuck: AtomicBool,
    lost_rows: AtomicU64,
}

impl Memory {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let (taken, freed) = (Mutex::new(0), Condvar::new());
        Arc::new(Self { most, taken, freed, is_stuck: AtomicBool::new(false), lost_rows: AtomicU64::new(0) })
    }

    fn reserve(&self, bytes: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = taken.checked_add(bytes).filter(|sum| *sum <= self.most);
        *taken = sum.unwrap_or(*taken);
        sum.is_some()
    }

    /// Waits until there is room, and calls `ask` to hasten that. A batch that is larger than all of
    /// the memory has room when it is alone. False if nothing can be written.
    fn await_room(&self, bytes: usize, ask: impl Fn()) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0 && taken.saturating_add(bytes) > self.most {
            if self.is_stuck.load(Ordering::Relaxed) {
                return false;
            }
            ask();
            let woken = self.freed.wait_timeout(taken, LOOK_EVERY);
            taken = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken = taken.saturating_add(bytes);
        true
    }

    /// Releases memory: the rows are on disk, or lost.
    pub(super) fn give_back(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(bytes);
        self.freed.notify_all();
    }

    /// Says whether rows can be written: if not, no thread waits for that.
    pub(super) fn set_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
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
    /// Whether [`Self::push`] waits for memory instead of losing rows.
    pub(super) waits: bool,
}

impl RowSink {
    /// Takes rows. Blocks only if the recording is one of files, until there is memory. Rows pushed
    /// after the end are dropped; rows without memory are lost and counted.
    pub fn push(&self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        if let Some(tap) = &self.tap {
            tap(&batch);
        }
        let bytes = batch.bytes();
        let ask = || {
            if self.sender.send(Message::Flush).is_err() {
                self.memory.set_stuck(true);
            }
        };
        if self.memory.reserve(bytes) || self.waits && self.memory.await_room(bytes, ask) {
            let _ = self.sender.send(Message::Rows(Box::new(batch), bytes));
        } else {
            self.memory.lost_rows.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }
}
