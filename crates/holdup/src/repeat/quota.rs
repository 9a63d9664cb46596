//! The CPU quota of a cgroup, of version 1 or 2, set to what is to be measured and set back to what it was.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where cgroups are mounted, and below it the controller of version 1.
const ROOTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// The kernel takes no quota below this, microseconds.
const LEAST_MICROS: f64 = 1_000.0;

/// A cgroup whose quota is changed. Dropping it sets back what was there before.
pub struct Quota {
    folder: PathBuf,
    /// The file that has the quota.
    file: PathBuf,
    period_micros: f64,
    is_v2: bool,
    before: String,
}

impl Quota {
    /// Of the cgroup `path`: its folder, or its name.
    ///
    /// # Errors
    /// If it is none with a CPU quota, or the quota may not be changed.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.strip_prefix("/").unwrap_or(path);
        let folders = std::iter::once(path.to_owned()).chain(ROOTS.iter().map(|root| Path::new(root).join(name)));
        for folder in folders {
            for (name, is_v2) in [("cpu.max", true), ("cpu.cfs_quota_us", false)] {
                let file = folder.join(name);
                let Ok(before) = fs::read_to_string(&file) else { continue };
                let before = before.trim().to_owned();
                let period = match is_v2 {
                    true => before.split_once(' ').map(|(_, period)| period.to_owned()),
                    false => fs::read_to_string(folder.join("cpu.cfs_period_us")).ok(),
                };
                let period = period.and_then(|text| text.trim().parse::<f64>().ok()).filter(|micros| *micros > 0.0);
                let Some(period_micros) = period else { continue };
                let quota = Self { folder, file, period_micros, is_v2, before };
                // Whether it may be changed is found out before anything is measured: by what is there already.
                quota.write(&quota.before)?;
                return Ok(quota);
            }
        }
        Err(Failure::Unusable(format!(
            "--cgroup {}: no cgroup with a CPU quota (cpu.max, or cpu.cfs_quota_us of version 1) is there; give its folder, e.g. /sys/fs/cgroup/app, and let its parent's cgroup.subtree_control have cpu",
            path.display()
        )))
    }

    /// The cgroup's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was there before, as its file has it.
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Allows `cpus`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set(&self, cpus: f64) -> Result<(), Failure> {
        let micros = cpus * self.period_micros;
        if micros < LEAST_MICROS {
            let least = LEAST_MICROS / self.period_micros;
            return Err(Failure::Unusable(format!("{cpus} CPUs: the kernel takes no quota below {least}")));
        }
        let period = self.period_micros;
        self.write(&if self.is_v2 { format!("{micros:.0} {period:.0}") } else { format!("{micros:.0}") })
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let refused =
            |error| Failure::Unusable(format!("{}: {error}; setting a quota needs root", self.file.display()));
        fs::write(&self.file, text).map_err(refused)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        if let Err(Failure::Unusable(why)) = self.write(&self.before) {
            errln!("the CPU quota could not be set back to {}: {why}", self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_set_and_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        fs::write(dir.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(dir.path().join("cpu.cfs_period_us"), "50000\n").unwrap();
        let quota = Quota::of(dir.path()).unwrap();
        quota.set(0.4).unwrap();
        assert_eq!(read("cpu.cfs_quota_us"), "20000");
        assert!(matches!(quota.set(0.001), Err(Failure::Unusable(why)) if why.contains("no quota below 0.02")));
        drop(quota);
        assert_eq!(read("cpu.cfs_quota_us"), "-1");
        fs::write(dir.path().join("cpu.max"), "max 100000\n").unwrap();
        let quota = Quota::of(dir.path()).unwrap();
        quota.set(2.0).unwrap();
        assert_eq!(read("cpu.max"), "200000 100000");
        drop(quota);
        assert_eq!(read("cpu.max"), "max 100000");
    }

    #[test]
    fn what_is_no_cgroup_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Quota::of(&dir.path().join("none")).err();
        assert!(matches!(refused, Some(Failure::Unusable(why)) if why.contains("no cgroup with a CPU quota")));
    }
}
