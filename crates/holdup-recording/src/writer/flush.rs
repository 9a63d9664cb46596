//! The thread that writes rows to disk. A failed write ends nothing: its rows stay in memory as far
//! as possible and are written with the next ones. It is reported, and appears as a gap among the
//! events and in the coverage.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use super::FLUSH_EVERY;
use super::queue::{Memory, Message};
use super::room::{Limits, Room};
use crate::allocator::give_back_memory;
use crate::folder::Folder;
use crate::labels::Labels;
use crate::manifest::{Coverage, CoverageState};
use crate::priority::give_way;
use crate::rows::Event;
use crate::segment::SegmentError;
use crate::tables::{Batch, merge_all};

/// Source of events and coverage about the recording itself.
pub const SOURCE: &str = "recording";

/// Flushes between two checks for segments to merge. A check lists the folder, in which a day
/// leaves thousands of merged files.
const MERGE_EVERY: u64 = 8;

/// Flushes without a merge after a failed one, e.g. for lack of room.
const MERGE_PAUSE: u64 = 30;

const MERGE_PANICKED: &str =
    "the thread that merges segments panicked, and its rows stay in segments; please report this";

/// Messages of the thread to others while it runs.
#[derive(Default)]
pub(super) struct Notices {
    notices: Mutex<Vec<String>>,
    pub(super) is_full: AtomicBool,
}

impl Notices {
    pub(super) fn add(&self, text: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// The messages since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A period in which writes fail.
struct Trouble {
    since: Instant,
    writes: u64,
    lost_before: u64,
}

/// The thread that merges segments. One thread for all merges, because the allocator keeps a
/// merge's memory with its thread. After a merge what is free goes back to the system: without that
/// a watch of a day takes as much memory as its largest merge and its largest heap of rows together,
/// for each of the allocator's arenas.
struct Merger {
    begin: mpsc::Sender<()>,
    /// Whether each merge succeeded.
    ended: mpsc::Receiver<bool>,
    is_merging: bool,
}

impl Merger {
    /// Starts the thread; none if that fails. It ends with its handle.
    fn start(merge: impl Fn() -> bool + Send + 'static) -> Option<Self> {
        let (begin, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let work = move || {
            give_way();
            for () in begun {
                let is_merged = merge();
                give_back_memory();
                let _ = end.send(is_merged);
            }
        };
        Builder::new().name("merging".to_owned()).spawn(work).ok()?;
        Some(Self { begin, ended, is_merging: false })
    }
}

/// Rows that are not on disk yet, and the results of earlier writes.
pub(super) struct Flush {
    folder: Arc<Folder>,
    /// Where the folder's files are opened.
    dir: PathBuf,
    room: Room,
    memory: Arc<Memory>,
    notices: Arc<Notices>,
    /// Number of the last segment.
    number: u64,
    pending: Batch,
    pending_bytes: usize,
    writes: u64,
    failed_writes: u64,
    trouble: Option<Trouble>,
    last_error: Option<SegmentError>,
    /// What happened to the directory, once something did.
    moved: Option<String>,
    has_merge_panicked: bool,
    /// Lost rows that an event has reported.
    lost_reported: u64,
    merge_from: u64,
    merger: Option<Merger>,
}

impl Flush {
    pub(super) fn new(folder: &Arc<Folder>, limits: Limits, memory: Arc<Memory>, notices: Arc<Notices>) -> Self {
        let dir = folder.place();
        Self {
            folder: Arc::clone(folder),
            room: Room::new(&dir, limits),
            dir,
            memory,
            notices,
            number: 0,
            pending: Batch::default(),
            pending_bytes: 0,
            writes: 0,
            failed_writes: 0,
            trouble: None,
            last_error: None,
            moved: None,
            has_merge_panicked: false,
            lost_reported: 0,
            merge_from: 0,
            merger: None,
        }
    }

    /// Writes incoming rows until the end.
    pub(super) fn run(mut self, receiver: &mpsc::Receiver<Message>) -> Self {
        let mut due = Instant::now() + FLUSH_EVERY;
        loop {
            let mut is_asked = false;
            match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Message::Rows(batch, bytes)) => {
                    self.pending.append(*batch);
                    self.pending_bytes += bytes;
                }
                Ok(Message::Flush) => is_asked = !self.pending.is_empty(),
                Ok(Message::Finish) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if is_asked || Instant::now() >= due {
                due = Instant::now() + FLUSH_EVERY;
                self.flush();
                self.merge_some();
                self.look_at_size();
            }
        }
        self.flush();
        self.await_merge();
        self
    }

    /// Tries to write all pending rows.
    pub(super) fn flush(&mut self) {
        let checked = self.room.check().map_err(|source| SegmentError::Io { path: self.name(), source });
        self.write(checked);
    }

    /// The same at the very end, when the minimum of free space no longer counts.
    pub(super) fn flush_last(&mut self) {
        self.write(Ok(()));
    }

    fn write(&mut self, checked: Result<(), SegmentError>) {
        self.tell_of_lost();
        self.tell_of_move();
        self.number += 1;
        self.writes += 1;
        match checked.and_then(|()| self.pending.write_segments(&self.dir, self.number)) {
            Ok(()) => {
                self.memory.give_back(std::mem::take(&mut self.pending_bytes));
                self.recovered();
            }
            Err(error) => {
                let error = error.shown(&self.folder);
                // Some tables may be on disk already.
                let left = self.pending.bytes().min(self.pending_bytes);
                self.memory.give_back(self.pending_bytes - left);
                self.pending_bytes = left;
                self.failed(error);
            }
        }
    }

    fn failed(&mut self, error: SegmentError) {
        self.failed_writes += 1;
        self.memory.set_stuck(true);
        let (lost_before, since) = (self.memory.lost_rows(), Instant::now());
        let is_new = self.trouble.is_none();
        self.trouble.get_or_insert(Trouble { since, writes: 0, lost_before }).writes += 1;
        if is_new {
            let text =
                format!("the recording cannot be written: {error}; holdup keeps the rows in memory and tries again");
            self.gap(&text, Labels::none());
            self.notices.add(text);
        }
        self.last_error = Some(error);
    }

    /// The pending rows are on disk.
    fn recovered(&mut self) {
        let Some(trouble) = self.trouble.take() else { return };
        self.memory.set_stuck(false);
        self.last_error = None;
        let lost = self.memory.lost_rows() - trouble.lost_before;
        let seconds = trouble.since.elapsed().as_secs_f64();
        let text = match lost {
            0 => format!("the recording is being written again after {seconds:.1} s; no row was lost"),
            lost => format!("the recording is being written again after {seconds:.1} s; {lost} rows were lost"),
        };
        let labels = Labels::new([("failed_writes", trouble.writes.to_string()), ("lost_rows", lost.to_string())]);
        self.gap(&text, labels);
        self.notices.add(text);
        self.lost_reported = self.memory.lost_rows();
    }

    /// Rows can also be lost without a failed write, if they come faster than the disk accepts
    /// them.
    fn tell_of_lost(&mut self) {
        let lost = self.memory.lost_rows();
        if self.trouble.is_some() || lost == self.lost_reported {
            return;
        }
        let new = lost - std::mem::replace(&mut self.lost_reported, lost);
        let text = format!("{new} rows were lost: they came faster than the disk accepts them");
        self.gap(&text, Labels::new([("lost_rows", new.to_string())]));
        self.notices.add(text);
    }

    /// The path no longer leads to the directory: a user has renamed, replaced or removed it.
    fn tell_of_move(&mut self) {
        if self.moved.is_some() {
            return;
        }
        if let Some(text) = self.folder.moved() {
            self.event("moved", &text, Labels::none());
            self.notices.add(text.clone());
            self.moved = Some(text);
        }
    }

    fn gap(&mut self, text: &str, labels: Labels) {
        self.event("gap", text, labels);
    }

    fn event(&mut self, kind: &str, text: &str, labels: Labels) {
        self.pending.events.push(Event {
            observed_at: crate::clock::now_ns(),
            source: SOURCE.to_owned(),
            kind: kind.to_owned(),
            text: text.to_owned(),
            labels,
        });
    }

    /// Begins to merge small segments in a separate thread. A merge takes seconds on a busy
    /// machine; meanwhile rows would fill memory and be lost with the process. Without a merge
    /// there are only more segments, so a failed one is repeated much later.
    fn merge_some(&mut self) {
        if self.is_merging() || self.trouble.is_some() || self.number < self.merge_from {
            return;
        }
        self.merge_from = self.number + MERGE_EVERY;
        if self.merger.is_none() {
            let dir = self.dir.clone();
            self.merger = Merger::start(move || merge_all(&dir, false).is_ok());
        }
        if let Some(merger) = &mut self.merger {
            merger.is_merging = merger.begin.send(()).is_ok();
        }
    }

    /// Whether a merge is still running.
    fn is_merging(&mut self) -> bool {
        let Some(merger) = self.merger.as_mut().filter(|merger| merger.is_merging) else { return false };
        match merger.ended.try_recv() {
            Err(mpsc::TryRecvError::Empty) => return true,
            Ok(is_merged) => self.merge_ended(is_merged),
            Err(mpsc::TryRecvError::Disconnected) => self.merge_panicked(),
        }
        false
    }

    /// Waits until no merge is running.
    fn await_merge(&mut self) {
        if let Some(merger) = self.merger.as_ref().filter(|merger| merger.is_merging) {
            match merger.ended.recv() {
                Ok(is_merged) => self.merge_ended(is_merged),
                Err(_) => self.merge_panicked(),
            }
        }
    }

    /// The thread is gone. The segments that it was to merge are all there.
    fn merge_panicked(&mut self) {
        if !self.has_merge_panicked {
            self.event("failed", MERGE_PANICKED, Labels::none());
            self.notices.add(MERGE_PANICKED.to_owned());
        }
        self.has_merge_panicked = true;
        self.merge_ended(false);
    }

    fn merge_ended(&mut self, is_merged: bool) {
        if let Some(merger) = &mut self.merger {
            merger.is_merging = false;
        }
        if !is_merged {
            // The thread may have ended with it.
            self.merger = None;
            self.merge_from = self.number + MERGE_PAUSE;
        }
    }

    fn look_at_size(&mut self) {
        // During a merge the rows of the segments are on disk twice.
        if !self.is_merging()
            && !self.notices.is_full.load(Ordering::Relaxed)
            && let Some(text) = self.room.reached()
        {
            self.notices.is_full.store(true, Ordering::Relaxed);
            self.notices.add(text);
        }
    }

    fn name(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// The error that keeps rows in memory, if there are any.
    pub(super) fn take_error(&mut self) -> Option<SegmentError> {
        self.last_error.take()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.last_error.is_some()
    }

    /// What the recording lacks; none if it is complete.
    pub(super) fn coverage(&self) -> Option<Coverage> {
        let lost = self.memory.lost_rows() + if self.has_failed() { self.pending.len() as u64 } else { 0 };
        // What was lost is not in any table: its maker has to know.
        let state = if lost > 0 { CoverageState::Failed } else { CoverageState::Partial };
        let of = |state, why: String| Coverage {
            reads_total: self.writes - self.failed_writes,
            gaps_total: self.failed_writes,
            ..Coverage::new(SOURCE, state, Some(why))
        };
        if self.has_merge_panicked {
            return Some(of(CoverageState::Failed, MERGE_PANICKED.to_owned()));
        }
        if self.failed_writes == 0 && lost == 0 {
            return Some(of(CoverageState::Complete, self.moved.clone()?));
        }
        let error = self.last_error.as_ref().map_or_else(String::new, |error| format!("; the last: {error}"));
        let (failed, all) = (self.failed_writes, self.writes);
        let why = format!("{failed} of {all} writes failed{error}; {lost} rows were lost");
        let enable = (lost > 0).then(|| "free space on the recording's disk: see the events of kind gap".to_owned());
        Some(Coverage { enable, ..of(state, why) })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::rows::Sample;
    use crate::segment::{self, SEGMENTS};

    #[test]
    fn segments_to_merge_are_looked_for_now_and_then() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(SEGMENTS)).unwrap();
        let folder = Arc::new(Folder::create(dir.path()).unwrap());
        let mut flush = Flush::new(&folder, Limits::default(), Memory::new(1 << 20), Arc::default());
        let mut most = 0;
        let mut looks = Vec::new();
        for _ in 0..200 {
            flush.gap("a row", Labels::none());
            flush.flush();
            let due = flush.merge_from;
            flush.merge_some();
            flush.await_merge();
            if flush.merge_from > due {
                looks.push(flush.number);
            }
            most = most.max(segment::segments(dir.path(), "events").len());
        }
        assert!(looks.windows(2).all(|pair| pair[1] == pair[0] + MERGE_EVERY), "{looks:?}");
        // Two merged, and no more than a look's worth of small ones above those that are merged.
        assert!(most < 64 + MERGE_EVERY as usize + 2, "{most}");
        assert!(segment::segments(dir.path(), "events").len() < 80);
        assert_eq!(merge_all(dir.path(), true).unwrap()["events"], 200);
    }

    /// Each thread would keep the memory of its merge.
    #[test]
    fn one_thread_merges_all() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(SEGMENTS)).unwrap();
        let folder = Arc::new(Folder::create(dir.path()).unwrap());
        let mut flush = Flush::new(&folder, Limits::default(), Memory::new(1 << 20), Arc::default());
        for _ in 0..3 {
            flush.number += MERGE_EVERY;
            flush.merge_some();
            flush.await_merge();
        }
        let merging = |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "merging\n");
        let mine = flush.merger.as_ref().map(|merger| merger.is_merging);
        assert_eq!(mine, Some(false));
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        // Other tests of this process may merge as well.
        assert!((1..=3).contains(&tasks.filter(|task| merging(task)).count()));
    }

    /// No row is lost with it, and the recording says that it failed, which is in the exit code.
    #[test]
    fn a_merge_that_panics_is_failed_in_the_coverage() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(SEGMENTS)).unwrap();
        let folder = Arc::new(Folder::create(dir.path()).unwrap());
        let notices = Arc::new(Notices::default());
        let mut flush = Flush::new(&folder, Limits::default(), Memory::new(1 << 20), Arc::clone(&notices));
        flush.merger = Merger::start(|| panic!("on purpose"));
        flush.merge_some();
        flush.await_merge();
        flush.flush();
        let coverage = flush.coverage().unwrap();
        assert_eq!((coverage.source.as_str(), coverage.state), (SOURCE, CoverageState::Failed));
        assert!(coverage.why.is_some_and(|why| why.contains("panicked")) && notices.take().len() == 1);
        // The next merge has a thread of its own.
        flush.number = flush.merge_from;
        flush.merge_some();
        flush.await_merge();
        assert_eq!(merge_all(dir.path(), true).unwrap()["events"], 1);
    }

    /// Rows that come during a merge are on disk as soon as at other times.
    #[test]
    fn a_merge_holds_up_no_flush() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(SEGMENTS)).unwrap();
        let folder = Arc::new(Folder::create(dir.path()).unwrap());
        let mut flush = Flush::new(&folder, Limits::default(), Memory::new(1 << 20), Arc::default());
        let names = || segment::segments(dir.path(), "samples");
        for _ in 0..64 {
            flush.pending.samples = vec![Sample { source: "host".into(), ..Sample::default() }; 5_000];
            flush.flush();
        }
        flush.merge_some();
        flush.pending.samples = vec![Sample::default()];
        flush.flush();
        assert_eq!(names().len(), 65, "the merge of 320,000 rows was waited for");
        flush.await_merge();
        // With the last segment, if it was there when the thread looked.
        assert!(names().len() <= 2, "{:?}", names());
        assert_eq!(merge_all(dir.path(), true).unwrap()["samples"], 64 * 5_000 + 1);
    }
}
