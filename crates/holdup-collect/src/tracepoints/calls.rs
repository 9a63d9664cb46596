//! Durations of system calls on files and directories: entry and exit of each, by process and call.
//! Only calls that change directories or wait for a disk are traced; the kernel filters them.

use std::collections::{BTreeMap, HashMap};

use holdup_recording::{Labels, metrics};

use super::format::Format;
use super::ring::Record;
use crate::proc::{Proc, Tree};
use crate::reading::Out;

/// The traced calls, by their numbers on this machine's architecture.
const CALLS: &[(i64, &str)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, "creat"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_sync_file_range, "sync_file_range"),
];

/// Largest number of remembered process names, and of calls in progress.
const KEPT_MAX: usize = 10_000;

/// The condition under which the kernel records a call.
pub(super) fn filter() -> String {
    let terms: Vec<String> = CALLS.iter().map(|(number, _)| format!("id == {number}")).collect();
    terms.join(" || ")
}

/// The entry or the exit of a call.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    at: u64,
    pid: u32,
    tid: u32,
    number: i64,
    is_exit: bool,
}

impl Edge {
    /// Parses a `raw_syscalls` record; none if it lacks the call's number.
    pub fn parse(format: &Format, record: &Record<'_>, is_exit: bool) -> Option<Self> {
        let number = format.number(record.raw, "id")? as i64;
        Some(Self { at: record.at, pid: record.pid, tid: record.tid, number, is_exit })
    }
}

/// The totals so far.
#[derive(Default)]
pub(super) struct Calls {
    under_way: HashMap<u32, Edge>,
    totals: BTreeMap<(String, &'static str), Total>,
    names: HashMap<u32, String>,
}

#[derive(Default)]
struct Total {
    calls: u64,
    ns: u64,
}

impl Calls {
    /// Takes the edges of all CPUs since the last time.
    pub fn take(&mut self, proc: &Proc, mut edges: Vec<Edge>) {
        // Each CPU has its own ring, and a thread may leave a call on another CPU than it entered on.
        edges.sort_by_key(|edge| edge.at);
        for edge in edges {
            if !edge.is_exit {
                // Calls whose exits were lost would stay forever.
                if self.under_way.len() >= KEPT_MAX {
                    self.under_way.clear();
                }
                self.under_way.insert(edge.tid, edge);
                continue;
            }
            // Its entry was before the tracing, or was lost.
            let Some(entry) = self.under_way.remove(&edge.tid).filter(|entry| entry.number == edge.number) else {
                continue;
            };
            let Some((_, call)) = CALLS.iter().find(|(number, _)| *number == edge.number) else { continue };
            if self.names.len() >= KEPT_MAX {
                self.names.clear();
            }
            let name = self.names.entry(edge.pid).or_insert_with(|| process(proc, edge.pid));
            let total = self.totals.entry((name.clone(), call)).or_default();
            total.calls += 1;
            total.ns += edge.at.saturating_sub(entry.at);
        }
    }

    /// Adds all totals to `out`.
    pub fn put(&self, out: &mut Out) {
        for ((process, call), total) in &self.totals {
            let labels = Labels::new([("process", process.as_str()), ("call", call)]);
            out.put(metrics::tracepoints::CALLS, labels.clone(), total.calls as f64);
            out.put(metrics::tracepoints::CALL_TIME, labels, total.ns as f64 / 1e9);
        }
    }
}

/// A process' name. Those that have ended meanwhile share one name, or there would be a series for
/// each.
fn process(proc: &Proc, pid: u32) -> String {
    proc.word(Tree::Proc, &format!("{pid}/comm")).unwrap_or_else(|| "(ended)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(at: u64, tid: u32, number: i64, is_exit: bool) -> Edge {
        Edge { at, pid: u32::MAX, tid, number, is_exit }
    }

    #[test]
    fn edges_meet_across_rings_and_halves_count_for_nothing() {
        let mut calls = Calls::default();
        let (fsync, unlink) = (libc::SYS_fsync, libc::SYS_unlinkat);
        calls.take(
            &Proc::system(),
            vec![
                // In another ring's order: the exit first.
                edge(900, 1, fsync, true),
                edge(100, 1, fsync, false),
                edge(500, 2, unlink, true),
                edge(950, 3, unlink, false),
            ],
        );
        // The one under way ends in the next interval; another call's exit is not its.
        calls.take(&Proc::system(), vec![edge(1_200, 3, unlink, true), edge(1_300, 3, fsync, true)]);
        let of = |call| calls.totals.iter().find(|((_, c), _)| *c == call).map(|(_, t)| (t.calls, t.ns));
        assert_eq!((of("fsync"), of("unlinkat")), (Some((1, 800)), Some((1, 250))));
    }
}
