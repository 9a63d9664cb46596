//! Every thread of the host by state, and rows for those that are in uninterruptible sleep (D).
//!
//! The load average and `procs_blocked` hide a pile-up in D: with 300 threads in D behind a
//! directory lock `procs_blocked` stays at 0 or 1. So holdup counts the states itself, from one
//! small file per thread. A process that a `pid:N` watches as well is read once for both.

use std::collections::HashMap;
use std::time::Instant;

use holdup_recording::{Labels, metrics};

use super::Reader;
use crate::ReadError;
use crate::proc::census::{BUDGET, Budget, Census};
use crate::proc::memory::Memory;
use crate::proc::open_files::{Files, open_max};
use crate::proc::shared_census::{self, SharedCensus};
use crate::proc::{Proc, Tree, thread_rows};
use crate::reading::{Out, thread_cpu_time};

/// States that are reported even when no thread is in them.
const STATES: &[u8] = b"RSDTtZIX";

/// Share of one core that counting may use: the part of the host's 2 % that the other sections
/// leave. With so many threads that a count costs more, holdup counts less often.
const CPU_RATIO_MAX: f64 = 0.018;

/// The kernel's own threads in D are examined like those of programs; sleeping ones never are.
const HOST_BUDGET: Budget = Budget { sleepers: 0, ..BUDGET };

/// State between samples.
#[derive(Default)]
pub(super) struct Scan {
    parts: Option<(Files, Memory)>,
    pids: Vec<u32>,
    groups: HashMap<u32, Group>,
    shared: HashMap<u32, SharedCensus>,
    samples: usize,
    /// No count before this time, which pays for the CPU time of the last one.
    rest_until: Option<Instant>,
}

/// The threads of one process.
struct Group {
    census: Census,
    seen_in: usize,
}

/// The result of one sample.
struct Tally<'a> {
    counts: [u32; 128],
    rows: Vec<holdup_recording::rows::Thread>,
    source: &'a str,
    at: i64,
}

impl Tally<'_> {
    fn add(&mut self, census: &Census) {
        let mut blocked = false;
        for state in census.tasks().iter().filter_map(|task| task.state) {
            if let Some(count) = self.counts.get_mut(state as usize) {
                *count += 1;
            }
            blocked |= state == 'D';
        }
        if blocked {
            self.rows.append(&mut thread_rows::rows(census, Some('D'), self.source, self.at));
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
    let mut tally = Tally { counts: [0; 128], rows: Vec::new(), source: out.source(), at: 0 };
    scan.count(proc, open_max(proc), &mut tally)?;
    let cost = cpu_begun.zip(thread_cpu_time()).map(|(before, after)| after.saturating_sub(before));
    // The cost is ignored on a made-up tree, which is not this machine's own.
    scan.rest_until = cost.filter(|_| proc.is_live()).map(|cost| begun + cost.div_f64(CPU_RATIO_MAX));
    for (letter, &threads) in (0_u8..).zip(&tally.counts) {
        if threads > 0 || STATES.contains(&letter) {
            let labels = Labels::new([("state", char::from(letter).to_string())]);
            out.put(metrics::host::THREADS, labels, f64::from(threads));
        }
    }
    let at = out.at();
    out.batch
        .threads
        .extend(tally.rows.into_iter().map(|row| holdup_recording::rows::Thread { observed_at: at, ..row }));
    Ok(())
}

impl Scan {
    /// Allows the next count at once.
    pub(super) fn wake(&mut self) {
        self.rest_until = None;
    }

    /// Counts all threads, keeping at most `open_max` files open.
    fn count(&mut self, proc: &Proc, open_max: usize, tally: &mut Tally) -> Result<(), ReadError> {
        let (files, memory) = self.parts.get_or_insert_with(|| (Files::new(proc), Memory::default()));
        let Self { pids, groups, shared, samples, .. } = self;
        proc.numbers("", pids)?;
        shared_census::update(proc, shared);
        *samples += 1;
        let open: usize = groups.values().map(|group| group.census.open()).sum();
        files.room = open_max.saturating_sub(open);
        let mut budget = HOST_BUDGET;
        let mut read_any = false;
        // Each sample starts at another process, so that the budget reaches all of them.
        let first = if pids.is_empty() { 0 } else { (*samples * (pids.len() / 3 + 1)) % pids.len() };
        for &pid in pids[first..].iter().chain(&pids[..first]) {
            // A process that ended since the folder was listed is not a gap.
            if let Some(shared) = shared.get_mut(&pid) {
                let found = shared.look(files, memory, |census| {
                    tally.add(census);
                    !census.tasks().is_empty()
                });
                read_any |= found?;
                continue;
            }
            let group = groups.entry(pid).or_insert_with(|| Group { census: Census::new(pid), seen_in: 0 });
            group.seen_in = *samples;
            group.census.look(files, memory, &mut budget)?;
            tally.add(&group.census);
            read_any |= !group.census.tasks().is_empty();
        }
        groups.retain(|_, group| group.seen_in == *samples);
        let root = proc.path(Tree::Proc, "");
        if read_any {
            Ok(())
        } else {
            Err(ReadError(format!(
                "{}: no process can be read; is proc mounted there, and may holdup read it?",
                root.display()
            )))
        }
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
        // Other tests of this program begin and end threads all the while.
        for _ in 0..20_000 {
            let before = listed(proc);
            let mut tally = Tally { counts: [0; 128], rows: Vec::new(), source: "host", at: 0 };
            scan.count(proc, open_max, &mut tally).unwrap();
            last = (tally.counts.iter().map(|c| *c as usize).sum(), before.len());
            if before == listed(proc) && last.0 == last.1 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
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
                let open: usize = scan.groups.values().map(|group| group.census.open()).sum();
                assert!(open <= open_max, "{open} of {open_max} files");
                drop(stop);
                let _ = thread.join().unwrap();
            }
        }
    }
}
