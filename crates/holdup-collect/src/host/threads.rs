//! Every thread of the host by state, and a row for each that is in uninterruptible sleep (D).
//!
//! The load average and `procs_blocked` don't show a pile-up in D: with 300 threads in D behind a directory lock
//! `procs_blocked` stays at 0 or 1. So the states are counted, one small file a thread. This runs over thousands
//! of threads a second: it keeps its buffers and reads no more of a line than it needs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;

use holdup_recording::Labels;
use holdup_recording::rows::Thread;

use super::Reader;
use crate::ReadError;
use crate::proc::{Proc, Tree, number, task};
use crate::reading::Out;

/// State letters that are counted even when no thread is in them.
const STATES: &[u8] = b"RSDTtZIX";

/// Most rows of one sample: a pile-up larger than this has its pattern in so many.
const ROWS_MAX: usize = 1_000;

/// Reused between samples.
#[derive(Default)]
pub(super) struct Scan {
    pids: Vec<u32>,
    tids: Vec<u32>,
    path: String,
}

pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let Reader { proc, threads: Scan { pids, tids, path }, .. } = reader;
    let mut counts = [0_u32; 128];
    let mut blocked = Vec::new();
    let root = proc.path(Tree::Proc, "").to_string_lossy().into_owned();
    let mut line = [0; 1_024];
    proc.numbers("", pids)?;
    let mut read_any = false;
    for &pid in pids.iter() {
        // A process that ended since the folder was listed is no gap.
        set(path, format_args!("{root}{pid}/stat"));
        let Some(text) = read_start(path, &mut line) else { continue };
        let (process, state, mut rest) = task::head(text)?;
        read_any = true;
        // Field 20; the state was field 3.
        if number::<u32>("stat", "num_threads", rest.nth(16))? <= 1 {
            count(&mut counts, state);
            if state == 'D' {
                blocked.push((pid, pid, process.to_owned(), process.to_owned()));
            }
            continue;
        }
        let process = process.to_owned();
        set(path, format_args!("{pid}/task"));
        if proc.numbers(path, tids).is_err() {
            continue;
        }
        for &tid in tids.iter() {
            set(path, format_args!("{root}{pid}/task/{tid}/stat"));
            let Some(text) = read_start(path, &mut line) else { continue };
            let (thread, state, _) = task::head(text)?;
            count(&mut counts, state);
            if state == 'D' {
                blocked.push((pid, tid, process.clone(), thread.to_owned()));
            }
        }
    }
    if !read_any {
        return Err(ReadError(format!("{root}: no process can be read")));
    }
    for (letter, &threads) in (0_u8..).zip(&counts) {
        if threads > 0 || STATES.contains(&letter) {
            let labels = Labels::of([("state", char::from(letter).to_string())]);
            out.put("system_threads", labels, f64::from(threads));
        }
    }
    let at = out.at();
    blocked.truncate(ROWS_MAX);
    let source = out.source();
    out.batch.threads.extend(blocked.into_iter().map(|it| row(proc, source, at, it)));
    Ok(())
}

fn row(proc: &Proc, source: &str, at: i64, (pid, tid, process, thread): (u32, u32, String, String)) -> Thread {
    let folder = format!("{pid}/task/{tid}");
    Thread {
        at,
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
    }
}

fn set(path: &mut String, text: std::fmt::Arguments) {
    path.clear();
    // Writing to a String does not fail.
    let _ = path.write_fmt(text);
}

fn count(counts: &mut [u32; 128], state: char) {
    if let Some(count) = counts.get_mut(state as usize) {
        *count += 1;
    }
}

/// The file's first kilobyte; nothing if it is gone, or not ours to read.
fn read_start<'a>(path: &str, line: &'a mut [u8]) -> Option<&'a str> {
    let length = File::open(path).ok()?.read(line).ok()?;
    (length > 0).then(|| task::text(&mut line[..length]))
}
