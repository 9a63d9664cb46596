//! The threads of one process: rows by place, counts by state, and the sums that the kernel keeps
//! only per thread.

use holdup_recording::{Labels, metrics};

use crate::ReadError;
use crate::proc::memory::Memory;
use crate::proc::open_files::Files;
use crate::proc::shared_census::{self, SharedCensus};
use crate::proc::{Proc, census::Census, thread_rows, ticks_per_second};
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

impl Tasks {
    pub(super) fn read(&mut self, proc: &Proc, pid: u32, delays: bool, out: &mut Out) -> Result<(), ReadError> {
        let Parts { census, files, memory } = self.0.get_or_insert_with(|| Parts {
            census: shared_census::join(proc, pid),
            files: Files::new(proc),
            memory: Memory::default(),
        });
        census.look(files, memory, |census| put(census, delays, out))?
    }
}

fn put(census: &Census, delays: bool, out: &mut Out) -> Result<(), ReadError> {
    if census.tasks().is_empty() {
        return Err(ReadError(format!("/proc/{}/task: no thread can be read; did the process end?", census.pid())));
    }
    if let Some(look) = census.last_look() {
        out.set_window(look.begun_at, look.window_ns);
    }
    let mut states: Vec<(char, f64)> = STATES.chars().map(|letter| (letter, 0.0)).collect();
    for letter in census.tasks().iter().filter_map(|task| task.state) {
        match states.iter_mut().find(|(known, _)| *known == letter) {
            Some((_, count)) => *count += 1.0,
            None => states.push((letter, 1.0)),
        }
    }
    for (letter, count) in states {
        out.put(metrics::process::THREADS, Labels::new([("state", letter.to_string())]), count);
    }
    let sums = census.sums();
    if census.tasks().iter().any(|task| task.times.is_some()) {
        out.put_plain(metrics::process::RUN_QUEUE, sums.queue_ns as f64 / 1e9);
    }
    if delays {
        out.put_plain(metrics::process::BLOCK_IO_DELAY, sums.block_io_ticks as f64 / ticks_per_second());
    }
    let (source, at) = (out.source(), out.at());
    out.batch.threads.append(&mut thread_rows::rows(census, None, source, at));
    Ok(())
}
