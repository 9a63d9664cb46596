//! Keeps the reader of a file from running ahead of the recorder. A recorder accepts rows faster
//! than it writes them and would keep all of them in memory.

use std::path::Path;
use std::time::{Duration, Instant};

use holdup_recording::Batch;
use holdup_recording::writer::RowSink;

/// Longest wait for the writer, which reports its own errors elsewhere.
const LONGEST: Duration = Duration::from_secs(60);

/// Rows of one table that wait to be written.
pub(super) struct Pace {
    table: &'static str,
    /// Rows that may wait to be written: above this, reading waits for writing.
    rows_max: usize,
    waiting: usize,
    written: Option<String>,
}

impl Pace {
    pub fn new(table: &'static str, rows_max: usize) -> Self {
        Self { table, rows_max, waiting: 0, written: None }
    }

    /// Passes rows on as soon as there is room for them.
    pub fn push(&mut self, sink: &RowSink, batch: Batch, dir: &Path) {
        self.waiting += batch.len();
        sink.push(batch);
        let deadline = Instant::now() + LONGEST;
        while self.waiting >= self.rows_max && Instant::now() < deadline {
            let newest = self.newest(&dir.join("segments"));
            if newest != self.written {
                self.written = newest;
                self.waiting = 0;
            } else {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// The name of the newest closed segment: names sort by their numbers.
    fn newest(&self, segments: &Path) -> Option<String> {
        let entries = std::fs::read_dir(segments).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_of_table = |name: &String| name.strip_prefix(self.table).is_some_and(|rest| rest.starts_with('-'));
        names.filter(|name| is_of_table(name) && name.ends_with(".parquet")).max()
    }
}
