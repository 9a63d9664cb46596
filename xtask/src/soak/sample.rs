//! What a process takes, as the kernel says, and what a folder takes.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// One look at everything.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Since the watch was started.
    pub seconds: f64,
    /// Each holdup by its name.
    pub processes: Vec<(String, Process)>,
    pub recording_bytes: u64,
    pub recording_files: u64,
}

/// What one process takes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    /// Resident memory.
    pub rss_bytes: u64,
    /// Open files.
    pub descriptors: u64,
    pub threads: u64,
    /// CPU time since its start.
    pub cpu_seconds: f64,
}

/// Files of a folder that do not belong to the recording in it.
const NOT_RECORDED: [&str; 2] = [".reserve", "report.html"];

/// Ticks a second of the kernel's CPU times (`USER_HZ`): 100 on every architecture that holdup is built for.
const TICKS: f64 = 100.0;

/// Nothing if there is no such process any more.
pub fn process(pid: u32) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Process {
        rss_bytes: kib(&status, "VmRSS:")?,
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
        threads: number(&status, "Threads:")?,
        cpu_seconds: cpu_seconds(&stat)?,
    })
}

/// Most resident memory that it has had, bytes.
pub fn peak_bytes(pid: u32) -> Option<u64> {
    kib(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")
}

fn number(status: &str, key: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

fn kib(status: &str, key: &str) -> Option<u64> {
    number(status, key).map(|kib| kib * 1_024)
}

/// User and system time are fields 14 and 15 (proc(5)); behind the name, which may hold anything, stands field 3.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(14)? + ticks(15)?) / TICKS)
}

/// Bytes and number of the files below `dir`; zero before it is made. A file that is merged away meanwhile is left out. What is
/// held free for the end (`.reserve`) does not belong to a recording, and neither does its report.
pub fn folder(dir: &Path) -> Result<(u64, u64)> {
    let (mut bytes, mut files) = (0, 0);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((0, 0)),
        entries => entries.with_context(|| format!("failed to list {}", dir.display()))?,
    };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            let (inner, count) = folder(&entry.path())?;
            (bytes, files) = (bytes + inner, files + count);
        } else if NOT_RECORDED.iter().all(|name| entry.file_name() != *name) {
            (bytes, files) = (bytes + metadata.size(), files + 1);
        }
    }
    Ok((bytes, files))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_process_has_memory_files_and_threads() {
        let own = process(std::process::id()).unwrap();
        assert!(own.rss_bytes > 100_000 && own.descriptors >= 3 && own.threads >= 1, "{own:?}");
        assert!(peak_bytes(std::process::id()).unwrap() >= own.rss_bytes);
        assert_eq!(process(u32::MAX), None);
    }

    #[test]
    fn a_folder_that_is_not_made_yet_is_empty() {
        let dir = std::env::temp_dir().join(format!("holdup-soak-folder-{}", std::process::id()));
        assert_eq!(folder(&dir).unwrap(), (0, 0));
        fs::create_dir_all(dir.join("inner")).unwrap();
        for (name, text) in [("a", "12"), ("inner/b", "345"), (".reserve", "6"), ("report.html", "7")] {
            fs::write(dir.join(name), text).unwrap();
        }
        assert_eq!(folder(&dir).unwrap(), (5, 2));
        assert!(folder(&dir.join("a")).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn cpu_time_stands_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0";
        assert_eq!(cpu_seconds(stat), Some(2.0));
    }
}
