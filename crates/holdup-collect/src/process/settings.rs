//! Identity and limits of a process: name, executable, start, limits. No command line and no
//! environment. Mounts and cgroup are read as for the host.

use holdup_recording::clock;

use crate::proc::task::{self, Stat};
use crate::proc::{Proc, Tree, ticks_per_second};

/// The lines of `/proc/PID/limits` to keep, by their prefix, and our names of the soft and the hard
/// limit.
const LIMITS: [(&str, &str, Option<&str>); 4] = [
    ("Max open files", "limit.nofile", Some("limit.nofile_hard")),
    ("Max processes", "limit.nproc", None),
    ("Max locked memory", "limit.memlock_bytes", None),
    ("Max address space", "limit.address_space_bytes", None),
];

/// Name and value of everything readable.
pub(super) fn read(proc: &Proc, pid: u32, start_ticks: Option<u64>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut put = |name: &str, value: String| found.push((name.to_owned(), value));
    put("pid", pid.to_string());
    let mut buffer = Vec::new();
    let _ = proc.read(&format!("{pid}/stat"), &mut buffer);
    if let Ok(stat) = Stat::parse(task::text(&mut buffer)) {
        put("comm", stat.comm.to_owned());
        put("threads", stat.threads.to_string());
    }
    // Without the folder: only the program matters, and whether it was replaced (` (deleted)`).
    let executable = std::fs::read_link(proc.path(Tree::Proc, &format!("{pid}/exe"))).ok();
    if let Some(name) = executable.as_deref().and_then(|path| path.file_name()) {
        put("executable", name.to_string_lossy().into_owned());
    }
    if let Some(at) = start_ticks.and_then(|ticks| started_at(proc, ticks)) {
        put("started_at", clock::rfc3339(at));
    }
    if let Ok(text) = proc.read_lines(&format!("{pid}/limits"), &mut buffer) {
        for (beginning, soft_name, hard_name) in LIMITS {
            let line = text.lines().find_map(|line| line.strip_prefix(beginning));
            let mut values = line.into_iter().flat_map(str::split_ascii_whitespace);
            if let Some(soft) = values.next() {
                put(soft_name, soft.to_owned());
            }
            if let (Some(name), Some(hard)) = (hard_name, values.next()) {
                put(name, hard.to_owned());
            }
        }
    }
    if let Some(adjustment) = proc.word(Tree::Proc, &format!("{pid}/oom_score_adj")) {
        put("oom_score_adj", adjustment);
    }
    found
}

/// Start of a process that was started `ticks` after boot, nanoseconds since the epoch; accurate to
/// a second or so.
fn started_at(proc: &Proc, ticks: u64) -> Option<i64> {
    let mut buffer = Vec::new();
    let text = proc.read_lines("stat", &mut buffer).ok()?;
    let boot_s: f64 = text.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    Some(((boot_s + ticks as f64 / ticks_per_second()) * 1e9) as i64)
}
