//! Every thread of the host by state, and a row for each that is in uninterruptible sleep (D).
//!
//! The load average and `procs_blocked` don't show a pile-up in D: with 300 threads in D behind a directory lock
//! `procs_blocked` stays at 0 or 1. So the states are counted, one small file a thread. This runs over thousands
//! of threads a second: it keeps its buffers and reads no more of a line than it needs.

use std::collections::HashMap;
use std::time::Instant;

use holdup_recording::Labels;
use holdup_recording::rows::Thread;

use super::Reader;
use crate::ReadError;
use crate::proc::kept::{KeptFile, open_max};
use crate::proc::{Proc, Tree, number, set, task};
use crate::reading::{Out, thread_cpu_time};

/// State letters that are counted even when no thread is in them.
const STATES: &[u8] = b"RSDTtZIX";

/// Most rows of one sample: a pile-up larger than this has its pattern in so many.
const ROWS_MAX: usize = 1_000;

/// Most of one core that counting may use: of the host's 2 % what the other sections leave. On a host of so many threads
/// that a count costs more, it is made less often.
const CPU_RATIO_MAX: f64 = 0.018;

/// What is kept between samples.
#[derive(Default)]
pub(super) struct Scan {
    pids: Vec<u32>,
    tids: Vec<u32>,
    path: String,
    process: String,
    groups: HashMap<u32, Group>,
    samples: u64,
    /// No count before this: the last one has used up the CPU time until then.
    rest_until: Option<Instant>,
}

/// The files of one process.
#[derive(Default)]
struct Group {
    main: KeptFile,
    /// Of a process with several threads all of them, in the order of their numbers.
    tasks: Vec<(u32, KeptFile)>,
    seen_in: u64,
}

/// What a sample finds.
struct Tally {
    counts: [u32; 128],
    /// Process id, thread id and both names of every thread in D.
    blocked: Vec<(u32, u32, String, String)>,
}

impl Tally {
    fn add(&mut self, pid: u32, tid: u32, process: &str, thread: &str, state: char) {
        if let Some(count) = self.counts.get_mut(state as usize) {
            *count += 1;
        }
        if state == 'D' && self.blocked.len() < ROWS_MAX {
            self.blocked.push((pid, tid, process.to_owned(), thread.to_owned()));
        }
    }
}

pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let Reader { proc, threads: scan, .. } = reader;
    let begun = Instant::now();
    if scan.rest_until.is_some_and(|until| begun < until) {
        return Ok(());
    }
    let cpu_begun = thread_cpu_time();
    let tally = scan.count(proc, open_max(proc))?;
    let cost = cpu_begun.zip(thread_cpu_time()).map(|(before, after)| after.saturating_sub(before));
    scan.rest_until = cost.map(|cost| begun + cost.div_f64(CPU_RATIO_MAX));
    for (letter, &threads) in (0_u8..).zip(&tally.counts) {
        if threads > 0 || STATES.contains(&letter) {
            let labels = Labels::of([("state", char::from(letter).to_string())]);
            out.put("system_threads", labels, f64::from(threads));
        }
    }
    let (at, source) = (out.at(), out.source());
    out.batch.threads.extend(tally.blocked.into_iter().map(|it| row(proc, source, at, it)));
    Ok(())
}

impl Scan {
    /// Lets the next count be made at once.
    pub(super) fn wake(&mut self) {
        self.rest_until = None;
    }

    /// Counts all threads, keeping at most `open_max` files open.
    fn count(&mut self, proc: &Proc, open_max: usize) -> Result<Tally, ReadError> {
        let Self { pids, tids, path, process, groups, samples, .. } = self;
        let mut tally = Tally { counts: [0; 128], blocked: Vec::new() };
        let root = proc.path(Tree::Proc, "").to_string_lossy().into_owned();
        let mut line = [0; 1_024];
        let mut read_any = false;
        proc.numbers("", pids)?;
        *samples += 1;
        let open: usize = groups.values().map(Group::open).sum();
        let mut room = open_max.saturating_sub(open);
        for &pid in pids.iter() {
            let group = groups.entry(pid).or_default();
            group.seen_in = *samples;
            set(path, format_args!("{root}{pid}/stat"));
            // A process that ended since the folder was listed is no gap.
            let Some(text) = group.main.read(path, &mut room, &mut line) else { continue };
            let (name, state, mut rest) = task::head(text)?;
            read_any = true;
            // Field 20; the state was field 3.
            let threads: usize = number("stat", "num_threads", rest.nth(16))?;
            if threads <= 1 {
                tally.add(pid, pid, name, name, state);
                group.tasks.clear();
                continue;
            }
            process.clear();
            process.push_str(name);
            let mut read_tasks = |tasks: &mut Vec<(u32, KeptFile)>, path: &mut String| {
                let (known, mut error) = (tasks.len(), None);
                tasks.retain_mut(|(tid, file)| {
                    set(path, format_args!("{root}{pid}/task/{tid}/stat"));
                    let Some(text) = file.read(path, &mut room, &mut line) else { return false };
                    match task::head(text) {
                        Ok((thread, state, _)) => tally.add(pid, *tid, process, thread, state),
                        Err(why) => error = Some(why),
                    }
                    true
                });
                error.map_or(Ok(tasks.len() < known), Err)
            };
            // Listing the threads costs, too: as long as as many are there as are known, and all of these can
            // be read, none is new.
            let mut fresh = Vec::new();
            let changed = group.tasks.len() != threads;
            let some_ended = read_tasks(&mut group.tasks, path)?;
            if changed || some_ended {
                set(path, format_args!("{pid}/task"));
                // The whole process may have ended by now.
                let _ = proc.numbers(path, tids);
                let known = |tid: &u32| group.tasks.binary_search_by_key(tid, |(known, _)| *known).is_ok();
                fresh.extend(tids.drain(..).filter(|tid| !known(tid)).map(|tid| (tid, KeptFile::default())));
                read_tasks(&mut fresh, path)?;
                group.tasks.append(&mut fresh);
                group.tasks.sort_unstable_by_key(|(tid, _)| *tid);
            }
        }
        groups.retain(|_, group| group.seen_in == *samples);
        if read_any { Ok(tally) } else { Err(ReadError(format!("{root}: no process can be read"))) }
    }
}

impl Group {
    fn open(&self) -> usize {
        usize::from(self.main.is_open()) + self.tasks.iter().filter(|(_, file)| file.is_open()).count()
    }
}

fn row(proc: &Proc, source: &str, at: i64, (pid, tid, process, thread): (u32, u32, String, String)) -> Thread {
    let folder = format!("{pid}/task/{tid}");
    Thread {
        observed_at: at,
        source: source.to_owned(),
        pid: i64::from(pid),
        tid: i64::from(tid),
        process,
        thread,
        state: "D".to_owned(),
        wchan: task::wchan(proc, &folder),
        syscall: task::syscall(proc, &folder),
        cpu_ns_total: None,
        run_queue_ns_total: None,
        stack: None,
        path: None,
        count: 1,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::mpsc;

    use super::*;

    /// This very process through a link, so that nothing else is counted.
    fn own() -> (tempfile::TempDir, Proc) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let pid = std::process::id().to_string();
        std::os::unix::fs::symlink(format!("/proc/{pid}"), dir.path().join("proc").join(&pid)).unwrap();
        let proc = Proc::at(dir.path());
        (dir, proc)
    }

    fn listed(proc: &Proc) -> BTreeSet<u32> {
        let mut tids = Vec::new();
        proc.numbers(&format!("{}/task", std::process::id()), &mut tids).unwrap();
        tids.into_iter().collect()
    }

    /// Counts until no other test's thread came or went meanwhile: then what is counted is what is listed. A wrong count
    /// stays wrong however often it is made.
    fn count(scan: &mut Scan, proc: &Proc, open_max: usize) -> (usize, usize) {
        let mut last = (0, 0);
        for _ in 0..200 {
            let before = listed(proc);
            let tally = scan.count(proc, open_max).unwrap();
            last = (tally.counts.iter().map(|c| *c as usize).sum(), before.len());
            if before == listed(proc) && last.0 == last.1 {
                break;
            }
        }
        last
    }

    #[test]
    fn threads_that_come_and_go_are_counted_with_files_kept_and_without() {
        let (_dir, proc) = own();
        for open_max in [0, 3, 1_000] {
            let mut scan = Scan::default();
            for round in 0..6 {
                // As many new threads as ended since the last round: the number alone tells nothing.
                let (stop, stopped) = mpsc::channel::<()>();
                let thread = std::thread::spawn(move || stopped.recv());
                let (counted, listed) = count(&mut scan, &proc, open_max);
                assert_eq!(counted, listed, "round {round}, {open_max} files");
                let open: usize = scan.groups.values().map(Group::open).sum();
                assert!(open <= open_max, "{open} of {open_max} files");
                drop(stop);
                let _ = thread.join().unwrap();
            }
        }
    }
}
