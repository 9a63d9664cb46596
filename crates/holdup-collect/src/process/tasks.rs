//! The threads of the watched process and of those that it forked: rows by place, counts by state, and the sums that the
//! kernel keeps only per thread.

use std::collections::BTreeMap;

use holdup_recording::rows::Thread;
use holdup_recording::{Labels, metrics};

use super::Target;
use super::forked::Forked;
use crate::ReadError;
use crate::proc::census::{Census, LookWindow, Sums};
use crate::proc::memory::Memory;
use crate::proc::open_files::Files;
use crate::proc::shared_census::{self, SharedCensus};
use crate::proc::{thread_rows, ticks_per_second};
use crate::reading::Out;

/// States that are reported even when no thread is in them.
const STATES: &str = "RSDTtZIX";

/// State between samples.
#[derive(Default)]
pub(super) struct Tasks(Option<Parts>);

struct Parts {
    census: SharedCensus,
    files: Files,
    memory: Memory,
}

/// What one look found in all processes.
#[derive(Default)]
struct Found {
    states: BTreeMap<char, u32>,
    rows: Vec<Thread>,
    sums: Sums,
    is_timed: bool,
    window: Option<LookWindow>,
}

impl Tasks {
    pub(super) fn read(
        &mut self,
        target: &Target,
        forked: &mut Forked,
        delays: bool,
        out: &mut Out,
    ) -> Result<(), ReadError> {
        let Target { proc, pid } = target;
        let Parts { census, files, memory } = self.0.get_or_insert_with(|| Parts {
            census: shared_census::join(proc, *pid),
            files: Files::new(proc),
            memory: Memory::default(),
        });
        let mut found = Found::default();
        found.states.extend(STATES.chars().map(|letter| (letter, 0)));
        census.look(files, memory, |census| found.add(census, out.source()))?;
        if found.rows.is_empty() {
            return Err(ReadError(format!("/proc/{pid}/task: no thread can be read; did the process end?")));
        }
        for child in forked.children.values_mut() {
            child.sums = child.census.look(files, memory, |census| found.add(census, out.source()))?;
        }
        found.sums.add(forked.ended);
        found.put(delays, out);
        Ok(())
    }
}

impl Found {
    /// Adds the threads of one process; what they have waited so far.
    fn add(&mut self, census: &Census, source: &str) -> Sums {
        for letter in census.tasks().iter().filter_map(|task| task.state) {
            *self.states.entry(letter).or_default() += 1;
        }
        self.rows.append(&mut thread_rows::rows(census, None, source, 0));
        self.is_timed |= census.tasks().iter().any(|task| task.times.is_some());
        self.sums.add(census.sums());
        self.window = match (self.window, census.last_look()) {
            (Some(all), Some(look)) => Some(all.until(look)),
            (all, look) => all.or(look),
        };
        census.sums()
    }

    fn put(self, delays: bool, out: &mut Out) {
        if let Some(look) = self.window {
            out.set_window(look.begun_at, look.window_ns);
        }
        for (letter, count) in self.states {
            out.put(metrics::process::THREADS, Labels::new([("state", letter.to_string())]), f64::from(count));
        }
        if self.is_timed {
            out.put_plain(metrics::process::RUN_QUEUE, self.sums.queue_ns as f64 / 1e9);
        }
        if delays {
            out.put_plain(metrics::process::BLOCK_IO_DELAY, self.sums.block_io_ticks as f64 / ticks_per_second());
        }
        let at = out.at();
        let rows = thread_rows::by_place(self.rows).into_iter();
        out.batch.threads.extend(rows.map(|row| Thread { observed_at: at, ..row }));
    }
}
