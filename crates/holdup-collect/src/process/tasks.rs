//! The threads of one process: a row each, their states counted, and sums that survive threads that end.
//!
//! The kernel keeps run-queue time and block-I/O delay per thread and forgets them with it. A plain sum over the
//! threads there are would fall whenever one ends; so the last value seen of each is kept. What a thread
//! gathers after that, and threads that live between two samples, are missing: the sums are lower bounds.

use std::collections::HashMap;

use holdup_recording::Labels;
use holdup_recording::rows::Thread;

use crate::ReadError;
use crate::proc::kept::{KeptFile, open_max};
use crate::proc::task::{self, Stat};
use crate::proc::{Proc, Tree, set, ticks_per_second};
use crate::reading::Out;

/// State letters that are counted even when no thread is in them.
const STATES: &str = "RSDTtZIX";

/// Sleeping threads whose wait channel and system call are read in one sample: two more files each, at some
/// 10 us of CPU a file. In a process of more threads they are taken in turn. Threads in D are always read.
const DETAILED_MAX: usize = 256;

/// What is carried from one sample to the next.
#[derive(Default)]
pub(super) struct Tasks {
    tids: Vec<u32>,
    path: String,
    root: String,
    /// How many more files may be kept open.
    room: usize,
    alive: HashMap<u32, Kept>,
    ended: Sums,
    samples: u64,
    turn: usize,
}

/// The last that was seen of one thread, and its files.
#[derive(Default)]
struct Kept {
    stat: KeptFile,
    schedstat: KeptFile,
    start_ticks: u64,
    sums: Sums,
    seen_in: u64,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    queue_ns: i64,
    block_io_ticks: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.queue_ns = self.queue_ns.saturating_add(other.queue_ns);
        self.block_io_ticks = self.block_io_ticks.saturating_add(other.block_io_ticks);
    }
}

impl Kept {
    /// Takes the new values in. If they are of another thread under an old number, gives what the old one had gathered.
    fn update(&mut self, start_ticks: u64, now: Sums) -> Option<Sums> {
        if self.seen_in > 0 && self.start_ticks == start_ticks {
            // A thread that is about to end may show less than before.
            self.sums.queue_ns = self.sums.queue_ns.max(now.queue_ns);
            self.sums.block_io_ticks = self.sums.block_io_ticks.max(now.block_io_ticks);
            return None;
        }
        self.start_ticks = start_ticks;
        let before = std::mem::replace(&mut self.sums, now);
        (self.seen_in > 0).then_some(before)
    }

    fn open(&self) -> usize {
        usize::from(self.stat.is_open()) + usize::from(self.schedstat.is_open())
    }
}

impl Tasks {
    pub(super) fn read(&mut self, proc: &Proc, pid: u32, delays: bool, out: &mut Out) -> Result<(), ReadError> {
        proc.numbers(&format!("{pid}/task"), &mut self.tids)?;
        self.tids.sort_unstable();
        self.samples += 1;
        self.root = proc.path(Tree::Proc, "").to_string_lossy().into_owned();
        self.room = open_max(proc).saturating_sub(self.alive.values().map(Kept::open).sum());
        let tids = std::mem::take(&mut self.tids);
        let mut rows = Vec::with_capacity(tids.len());
        let mut schedstat_read = false;
        let mut failed = None;
        for (position, &tid) in tids.iter().enumerate() {
            match self.thread(proc, pid, tid, self.is_turn(position, tids.len())) {
                Ok(Some(row)) => {
                    schedstat_read |= row.run_queue_ns_total.is_some();
                    rows.push(row);
                }
                // It has ended since the folder was listed.
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        self.turn = if tids.is_empty() { 0 } else { (self.turn + DETAILED_MAX) % tids.len() };
        self.tids = tids;
        if let Some(error) = failed {
            // A count that lacks a thread would be a wrong one.
            return Err(error);
        }
        if rows.is_empty() {
            return Err(ReadError(format!("/proc/{pid}/task: no thread can be read")));
        }
        self.bury();
        self.put(rows, pid, delays, schedstat_read, out);
        Ok(())
    }

    /// Whether the thread at `position` is among those of this sample's turn.
    fn is_turn(&self, position: usize, threads: usize) -> bool {
        (position + threads - self.turn % threads) % threads < DETAILED_MAX
    }

    /// One thread's row without source and time; nothing if it is gone.
    fn thread(&mut self, proc: &Proc, pid: u32, tid: u32, detailed: bool) -> Result<Option<Thread>, ReadError> {
        let Self { path, root, room, alive, ended, samples, .. } = self;
        let kept = alive.entry(tid).or_default();
        let mut line = [0; 1_024];
        set(path, format_args!("{root}{pid}/task/{tid}/stat"));
        let Some(text) = kept.stat.read(path, room, &mut line) else { return Ok(None) };
        let stat = Stat::parse(text)?;
        let (thread, state) = (stat.comm.to_owned(), stat.state);
        let (start_ticks, block_io_ticks) = (stat.start_ticks, stat.block_io_ticks);
        set(path, format_args!("{root}{pid}/task/{tid}/schedstat"));
        let times = kept.schedstat.read(path, room, &mut line).map(task::schedstat).transpose()?;
        let now = Sums { queue_ns: times.map_or(0, |(_, queue_ns)| queue_ns), block_io_ticks };
        if let Some(before) = kept.update(start_ticks, now) {
            ended.add(before);
        }
        kept.seen_in = *samples;
        let detailed = state == 'D' || (detailed && state != 'R');
        let folder = format!("{pid}/task/{tid}");
        Ok(Some(Thread {
            observed_at: 0,
            source: String::new(),
            pid: i64::from(pid),
            tid: i64::from(tid),
            process: String::new(),
            thread,
            state: state.to_string(),
            wchan: if detailed { task::wchan(proc, &folder) } else { None },
            syscall: if detailed { task::syscall(proc, &folder) } else { None },
            cpu_ns_total: times.map(|(cpu_ns, _)| cpu_ns),
            run_queue_ns_total: times.map(|(_, queue_ns)| queue_ns),
            stack: None,
            path: None,
            count: 1,
        }))
    }

    /// Moves what threads that are no longer there had gathered to the sum of the ended.
    fn bury(&mut self) {
        let Self { alive, ended, samples, .. } = self;
        alive.retain(|_, kept| {
            let here = kept.seen_in == *samples;
            if !here {
                ended.add(kept.sums);
            }
            here
        });
    }

    fn put(&self, mut rows: Vec<Thread>, pid: u32, delays: bool, schedstat_read: bool, out: &mut Out) {
        let mut states: Vec<(char, f64)> = STATES.chars().map(|letter| (letter, 0.0)).collect();
        for letter in rows.iter().filter_map(|row| row.state.chars().next()) {
            match states.iter_mut().find(|(known, _)| *known == letter) {
                Some((_, count)) => *count += 1.0,
                None => states.push((letter, 1.0)),
            }
        }
        for (letter, count) in states {
            out.put("process_threads", Labels::of([("state", letter.to_string())]), count);
        }
        let mut sums = self.ended;
        self.alive.values().for_each(|kept| sums.add(kept.sums));
        if schedstat_read {
            out.put_plain("process_run_queue_seconds_total", sums.queue_ns as f64 / 1e9);
        }
        if delays {
            let seconds = sums.block_io_ticks as f64 / ticks_per_second();
            out.put_plain("process_block_io_delay_seconds_total", seconds);
        }
        let at = out.at();
        let main = rows.iter().find(|row| row.tid == i64::from(pid)).or(rows.first());
        let process = main.map(|row| row.thread.clone()).unwrap_or_default();
        for row in &mut rows {
            row.observed_at = at;
            row.source = out.source().to_owned();
            row.process.clone_from(&process);
        }
        out.batch.threads.append(&mut rows);
    }
}
