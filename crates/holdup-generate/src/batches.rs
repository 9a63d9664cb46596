//! Which rows a connection inserts next. Batches are given out in order, and none runs further ahead of the
//! oldest unfinished one than a fixed number: an interrupted run can then have gaps only near its end.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::error::GenerateError;

/// Rows of a batch.
pub(crate) const BATCH_ROWS: u64 = 1_000;

/// How many batches may be under way at once.
const AHEAD_MAX: u64 = 64;

/// Rows before the last one among which an interrupted run may have left gaps.
pub(crate) const GAPS_WITHIN_ROWS: u64 = AHEAD_MAX * BATCH_ROWS;

/// How often one that waits looks for a stop.
const LOOK: Duration = Duration::from_millis(50);

/// The rows of a run.
pub(crate) struct Batches<'s> {
    rows: RangeInclusive<u64>,
    stop: &'s AtomicBool,
    progress: Mutex<Progress>,
    moved: Condvar,
}

#[derive(Default)]
struct Progress {
    next: u64,
    oldest: u64,
    finished: BTreeSet<u64>,
    failed: Option<GenerateError>,
}

impl<'s> Batches<'s> {
    pub(crate) fn new(rows: RangeInclusive<u64>, stop: &'s AtomicBool) -> Self {
        Self { rows, stop, progress: Mutex::default(), moved: Condvar::new() }
    }

    /// The next batch with its number; none at the end of the run.
    pub(crate) fn take(&self) -> Option<(u64, RangeInclusive<u64>)> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let from = self.rows.start() + progress.next * BATCH_ROWS;
            if self.stop.load(Ordering::Relaxed) || progress.failed.is_some() || from > *self.rows.end() {
                return None;
            }
            if progress.next < progress.oldest + AHEAD_MAX {
                let batch = progress.next;
                progress.next += 1;
                return Some((batch, from..=(from + BATCH_ROWS - 1).min(*self.rows.end())));
            }
            let waited = self.moved.wait_timeout(progress, LOOK);
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A batch is in the database, or is not: then the run ends.
    pub(crate) fn finish(&self, batch: u64, result: Result<(), GenerateError>) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) => {
                progress.finished.insert(batch);
                loop {
                    let oldest = progress.oldest;
                    if !progress.finished.remove(&oldest) {
                        break;
                    }
                    progress.oldest += 1;
                }
            }
            Err(error) => {
                progress.failed.get_or_insert(error);
            }
        }
        drop(progress);
        self.moved.notify_all();
    }

    /// Why the run ended early.
    pub(crate) fn failure(self) -> Option<GenerateError> {
        self.progress.into_inner().unwrap_or_else(PoisonError::into_inner).failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_all_rows_once_and_none_runs_away() {
        let stop = AtomicBool::new(false);
        let batches = Batches::new(5..=100_499, &stop);
        let first: Vec<_> = (0..AHEAD_MAX).map(|_| batches.take().unwrap()).collect();
        assert_eq!((first[0].clone(), first[1].clone()), ((0, 5..=1_004), (1, 1_005..=2_004)));
        // All but the first are finished: the window does not move.
        first[1..].iter().for_each(|(batch, _)| batches.finish(*batch, Ok(())));
        stop.store(true, Ordering::Relaxed);
        assert!(batches.take().is_none());
        stop.store(false, Ordering::Relaxed);
        batches.finish(0, Ok(()));
        let mut rows: u64 = first.iter().map(|(_, rows)| rows.end() - rows.start() + 1).sum();
        while let Some((batch, own)) = batches.take() {
            rows += own.end() - own.start() + 1;
            batches.finish(batch, Ok(()));
        }
        assert_eq!(rows, 100_495);
        assert!(batches.failure().is_none());
    }

    #[test]
    fn a_failure_ends_it() {
        let stop = AtomicBool::new(false);
        let batches = Batches::new(1..=5_000, &stop);
        let (batch, _) = batches.take().unwrap();
        batches.finish(batch, Err(GenerateError::Lost("first".to_owned())));
        batches.finish(1, Err(GenerateError::Lost("second".to_owned())));
        assert!(batches.take().is_none());
        assert!(batches.failure().unwrap().to_string().contains("first"));
    }
}
