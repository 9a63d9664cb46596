//! Keeps what is read from a file from running ahead of what is written of it: a recorder takes rows faster than it writes
//! them, and would hold them all.

use std::path::Path;
use std::time::{Duration, Instant};

use holdup_recording::Batch;
use holdup_recording::writer::RowSink;

/// How long a writer may take for what waits before it is given up on: it has said why elsewhere.
const LONGEST: Duration = Duration::from_secs(60);

/// Rows of one table on their way.
pub(super) struct Pace {
    table: &'static str,
    /// Rows that may wait to be written: above, reading waits for writing.
    rows_max: usize,
    waiting: usize,
    written: Option<String>,
}

impl Pace {
    pub fn new(table: &'static str, rows_max: usize) -> Self {
        Self { table, rows_max, waiting: 0, written: None }
    }

    /// Hands rows over, once there is room for them.
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
