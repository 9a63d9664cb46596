//! A cgroup of its own for database and app, whose limits a fault can move while they run. Versions 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::process;

/// Every group's name begins so, with the process id of its bench behind it.
const PREFIX: &str = "holdup-strangers-";

/// One CPU in microseconds of a period of 100 ms.
const PERIOD_US: f64 = 100_000.0;

/// Where the kernel can't make enough memory free, a group is left so much more, so many times.
const SQUEEZE_BYTES: u64 = 4 << 20;
const SQUEEZES: u64 = 24;

/// A group; its folders go with it.
#[derive(Debug)]
pub struct Group {
    folders: Vec<PathBuf>,
}

impl Group {
    /// Makes a group. None where this machine has no controllers that may be written.
    pub fn make(name: &str) -> Option<Self> {
        let mut folders = Vec::new();
        for parent in parents() {
            for left in process::leftovers(&parent, PREFIX) {
                let _ = fs::remove_dir(left);
            }
            let folder = parent.join(format!("{PREFIX}{}-{name}", std::process::id()));
            if fs::create_dir(&folder).is_ok() || folder.is_dir() {
                folders.push(folder);
            }
        }
        (!folders.is_empty()).then_some(Self { folders })
    }

    /// Moves a process into it; its later children follow.
    pub fn take(&self, pid: u32) -> Result<()> {
        self.folders.iter().try_for_each(|folder| write(&folder.join("cgroup.procs"), &pid.to_string()))
    }

    /// Sets how many CPUs it may use; none lifts the limit.
    pub fn set_cpus(&self, cpus: Option<f64>) -> Result<()> {
        let quota = cpus.map(|cpus| (cpus * PERIOD_US).round() as i64);
        let v1 = quota.unwrap_or(-1).to_string();
        let v2 = quota.map_or_else(|| "max".to_owned(), |quota| format!("{quota} {PERIOD_US:.0}"));
        self.set("cpu.cfs_quota_us", &v1, "cpu.max", &v2)
    }

    /// Sets how much memory it may use; none lifts the limit.
    pub fn set_memory(&self, bytes: Option<u64>) -> Result<()> {
        let v1 = bytes.map_or_else(|| "-1".to_owned(), |bytes| bytes.to_string());
        let v2 = bytes.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
        for folder in &self.folders {
            // Version 1 kills where all that could be freed is still to be written to a slow disk: here it has to wait.
            let control = folder.join("memory.oom_control");
            if control.exists() {
                write(&control, "1")?;
            }
        }
        self.set("memory.limit_in_bytes", &v1, "memory.max", &v2)
    }

    /// Leaves it so much memory beside its own, or the least that the kernel can make free at once.
    pub fn squeeze(&self, bytes: u64) -> Result<()> {
        let own = self.own_memory()?;
        let mut last = Ok(());
        for more in 0..SQUEEZES {
            last = self.set_memory(Some(own + bytes + more * SQUEEZE_BYTES));
            if last.is_ok() {
                return Ok(());
            }
        }
        last
    }

    /// Memory that it can't do without: what is not the page cache's, bytes.
    fn own_memory(&self) -> Result<u64> {
        let text = self.folders.iter().find_map(|folder| fs::read_to_string(folder.join("memory.stat")).ok());
        let text = text.context("the cgroup has no memory.stat")?;
        let bytes = |name: &str| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
        };
        let v1 = bytes("total_rss").map(|rss| rss + bytes("total_shmem").unwrap_or(0));
        v1.or_else(|| Some(bytes("anon")? + bytes("shmem").unwrap_or(0))).context("memory.stat has neither form")
    }

    fn set(&self, v1: &str, v1_value: &str, v2: &str, v2_value: &str) -> Result<()> {
        for folder in &self.folders {
            for (name, value) in [(v1, v1_value), (v2, v2_value)] {
                let path = folder.join(name);
                if path.exists() {
                    return write(&path, value);
                }
            }
        }
        anyhow::bail!("no cgroup controller here has {v1} or {v2}")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            // Not before its last process has gone.
            for _ in 0..50 {
                if fs::remove_dir(folder).is_ok() || !folder.exists() {
                    break;
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("failed to write {value} to {}", path.display()))
}

/// Folders in which groups are made: version 1's controllers, or version 2's tree.
fn parents() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mounted = |kind: &str, controller: &str| {
        mounts.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let has = words.get(3)?.split(',').any(|option| option == controller) || controller.is_empty();
            (words.get(2) == Some(&kind) && has).then(|| PathBuf::from(words[1]))
        })
    };
    let v1: Vec<PathBuf> =
        ["cpu", "cpuacct", "memory"].iter().filter_map(|controller| mounted("cgroup", controller)).collect();
    if !v1.is_empty() {
        return v1;
    }
    mounted("cgroup2", "").into_iter().collect()
}
