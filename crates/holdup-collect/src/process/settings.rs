//! What a process is and may do: name, executable, start, limits. No command line, no environment.

use holdup_recording::clock;

use crate::proc::task::{self, Stat};
use crate::proc::{Proc, Tree, ticks_per_second};

/// Lines of `/proc/PID/limits` that are kept, by their beginning, and their names here.
const LIMITS: [(&str, &str); 3] = [
    ("Max open files", "limit.nofile"),
    ("Max processes", "limit.nproc"),
    ("Max address space", "limit.address_space_bytes"),
];

/// Name and value of everything that can be read.
pub(super) fn read(proc: &Proc, pid: u32, start_ticks: Option<u64>) -> Vec<(&'static str, String)> {
    let mut found = vec![("pid", pid.to_string())];
    let mut buffer = Vec::new();
    let _ = proc.read(&format!("{pid}/stat"), &mut buffer);
    if let Ok(stat) = Stat::parse(task::text(&mut buffer)) {
        found.push(("comm", stat.comm.to_owned()));
        found.push(("threads", stat.threads.to_string()));
    }
    // The folder is left out: what is asked is which program, and whether it was replaced (` (deleted)`).
    let executable = std::fs::read_link(proc.path(Tree::Proc, &format!("{pid}/exe"))).ok();
    if let Some(name) = executable.as_deref().and_then(|path| path.file_name()) {
        found.push(("executable", name.to_string_lossy().into_owned()));
    }
    if let Some(at) = start_ticks.and_then(|ticks| started_at(proc, ticks)) {
        found.push(("started_at", clock::rfc3339(at)));
    }
    if let Ok(text) = proc.read_lines(&format!("{pid}/limits"), &mut buffer) {
        for (beginning, name) in LIMITS {
            let line = text.lines().find_map(|line| line.strip_prefix(beginning));
            // Soft limit, then hard limit.
            if let Some(soft) = line.and_then(|rest| rest.split_ascii_whitespace().next()) {
                found.push((name, soft.to_owned()));
            }
        }
    }
    found
}

/// Nanoseconds since the epoch at which a process that was started `ticks` after boot began; to a second or so.
fn started_at(proc: &Proc, ticks: u64) -> Option<i64> {
    let mut buffer = Vec::new();
    let text = proc.read_lines("stat", &mut buffer).ok()?;
    let boot_s: f64 = text.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    Some(((boot_s + ticks as f64 / ticks_per_second()) * 1e9) as i64)
}
