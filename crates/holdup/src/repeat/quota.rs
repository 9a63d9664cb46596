//! Changes the CPU quota of a cgroup, of version 1 or 2, and restores it however holdup ends.

mod journal;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use self::journal::{Journal, folder};
use crate::failure::Failure;

/// Where cgroups are mounted, including the CPU controller of version 1.
const ROOTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// The kernel accepts no quota below this, in microseconds.
const LEAST_MICROS: f64 = 1_000.0;

/// Restores quotas that killed holdups left changed.
///
/// # Errors
/// If the list of such quotas cannot be read.
pub fn restore() -> Result<(), Failure> {
    let said = journal::restore(&folder())?;
    said.iter().for_each(|line| errln!("{line}"));
    if said.is_empty() {
        errln!("no CPU quota needs restoring");
    }
    Ok(())
}

/// The same at the start of another command; it reports errors but goes on.
pub fn restore_if_any() {
    for line in journal::restore(&folder()).unwrap_or_default() {
        errln!("{line}");
    }
}

/// A cgroup whose quota is changed. Dropping it restores the earlier quota.
pub struct Quota {
    folder: PathBuf,
    /// The file of the quota.
    file: PathBuf,
    period_micros: f64,
    is_v2: bool,
    before: String,
    journal: Mutex<Journal>,
}

/// Quotas that are changed now, with their earlier values, for an exit that drops nothing.
static CHANGED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// Restores all quotas at once, because the process exits here.
pub fn set_back_all() {
    for (file, before) in CHANGED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::write(file, before);
    }
}

impl Quota {
    /// For the cgroup `path`: its folder, or its name.
    ///
    /// # Errors
    /// If it has no CPU quota, the quota may not be changed, or another holdup changes it.
    pub fn for_cgroup(path: &Path) -> Result<Self, Failure> {
        Self::noted_in(&folder(), path)
    }

    fn noted_in(journals: &Path, path: &Path) -> Result<Self, Failure> {
        let name = path.strip_prefix("/").unwrap_or(path);
        let folders = std::iter::once(path.to_owned()).chain(ROOTS.iter().map(|root| Path::new(root).join(name)));
        for folder in folders {
            for (name, is_v2) in [("cpu.max", true), ("cpu.cfs_quota_us", false)] {
                let file = folder.join(name);
                if !file.is_file() {
                    continue;
                }
                let mut journal = Journal::begin(journals, &file)?;
                let Ok(before) = fs::read_to_string(&file) else { continue };
                let before = before.trim().to_owned();
                let period = match is_v2 {
                    true => before.split_once(' ').map(|(_, period)| period.to_owned()),
                    false => fs::read_to_string(folder.join("cpu.cfs_period_us")).ok(),
                };
                let period = period.and_then(|text| text.trim().parse::<f64>().ok()).filter(|micros| *micros > 0.0);
                let Some(period_micros) = period else { continue };
                journal.note(&file, &before).map_err(Failure::unusable)?;
                CHANGED.lock().unwrap_or_else(PoisonError::into_inner).push((file.clone(), before.clone()));
                let quota = Self { folder, file, period_micros, is_v2, before, journal: Mutex::new(journal) };
                // Writing the present value shows whether it may be changed, before anything is
                // measured.
                quota.write(&quota.before)?;
                return Ok(quota);
            }
        }
        Err(Failure::Unusable(format!(
            "--cgroup {}: this cgroup has no CPU quota (cpu.max, or cpu.cfs_quota_us of version 1); give its folder, e.g. /sys/fs/cgroup/app, and add cpu to its parent's cgroup.subtree_control",
            path.display()
        )))
    }

    /// The cgroup's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The earlier quota, as in its file.
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
            return Err(Failure::Unusable(format!("{cpus} CPUs: the kernel accepts no quota below {least}")));
        }
        let period = self.period_micros;
        let text = if self.is_v2 { format!("{micros:.0} {period:.0}") } else { format!("{micros:.0}") };
        let noted = self.journal.lock().unwrap_or_else(PoisonError::into_inner).note_set(&text);
        noted.map_err(|error| Failure::Unusable(format!("the CPU quota was not changed: {error}")))?;
        self.write(&text)
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let refused =
            |error| Failure::Unusable(format!("{}: {error}; setting a quota needs root", self.file.display()));
        fs::write(&self.file, text).map_err(refused)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        match self.write(&self.before) {
            Ok(()) => {
                CHANGED.lock().unwrap_or_else(PoisonError::into_inner).retain(|(file, _)| *file != self.file);
                self.journal.lock().unwrap_or_else(PoisonError::into_inner).end();
            }
            Err(Failure::Unusable(why)) => {
                errln!("the CPU quota could not be restored to {}: {why}; run: holdup capacity --restore", self.before)
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_set_and_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let journals = dir.path().join("journals");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        fs::write(dir.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(dir.path().join("cpu.cfs_period_us"), "50000\n").unwrap();
        let quota = Quota::noted_in(&journals, dir.path()).unwrap();
        quota.set(0.4).unwrap();
        assert_eq!(read("cpu.cfs_quota_us"), "20000");
        assert!(matches!(quota.set(0.001), Err(Failure::Unusable(why)) if why.contains("no quota below 0.02")));
        drop(quota);
        assert_eq!(read("cpu.cfs_quota_us"), "-1");
        fs::write(dir.path().join("cpu.max"), "max 100000\n").unwrap();
        let quota = Quota::noted_in(&journals, dir.path()).unwrap();
        quota.set(2.0).unwrap();
        assert_eq!(read("cpu.max"), "200000 100000");
        drop(quota);
        assert_eq!(read("cpu.max"), "max 100000");
        assert_eq!(fs::read_dir(journals).unwrap().count(), 0, "a journal is left");
    }

    /// A process that is killed drops nothing, and its lock goes.
    fn killed(quota: Quota) {
        let quota = std::mem::ManuallyDrop::new(quota);
        let journal = quota.journal.lock().unwrap();
        let _ = journal.unlock();
    }

    #[test]
    fn a_quota_left_by_a_killed_run_is_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let (journals, file) = (dir.path().join("journals"), dir.path().join("cpu.max"));
        let read = || fs::read_to_string(&file).unwrap();
        fs::write(&file, "max 100000").unwrap();
        let first = Quota::noted_in(&journals, dir.path()).unwrap();
        first.set(0.1).unwrap();
        // Two at once would take each other's quota for the one before.
        let second = Quota::noted_in(&journals, dir.path()).err();
        assert!(matches!(second, Some(Failure::Unusable(why)) if why.contains("another holdup varies")));
        assert_eq!(journal::restore(&journals).unwrap(), Vec::<String>::new(), "it lives");
        killed(first);
        let next = Quota::noted_in(&journals, dir.path()).unwrap();
        assert_eq!(next.before(), "max 100000");
        next.set(0.2).unwrap();
        killed(next);
        let said = journal::restore(&journals).unwrap();
        assert!(said.len() == 1 && said[0].contains("restored to max 100000"), "{said:?}");
        assert_eq!((read(), journal::restore(&journals).unwrap().len()), ("max 100000".to_owned(), 0));
        // A quota that another program has set since stays.
        let last = Quota::noted_in(&journals, dir.path()).unwrap();
        last.set(0.3).unwrap();
        killed(last);
        fs::write(&file, "70000 100000").unwrap();
        let said = journal::restore(&journals).unwrap();
        assert!(said[0].contains("left unchanged") && read() == "70000 100000", "{said:?}");
    }

    #[test]
    fn a_journal_that_others_could_have_written_is_not_believed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let (journals, file) = (dir.path().join("journals"), dir.path().join("cpu.max"));
        fs::create_dir(&journals).unwrap();
        fs::set_permissions(&journals, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(&file, "20000 100000").unwrap();
        fs::write(journals.join("quota-1-1"), format!("{}\n10000 100000\n20000 100000\n", file.display())).unwrap();
        assert!(journal::restore(&journals).is_err() && Quota::noted_in(&journals, dir.path()).is_err());
        fs::set_permissions(&journals, fs::Permissions::from_mode(0o700)).unwrap();
        let other = dir.path().join("shadow");
        fs::write(&other, "20000 100000").unwrap();
        fs::write(journals.join("quota-1-1"), format!("{}\nroot::0\n20000 100000\n", other.display())).unwrap();
        assert_eq!(journal::restore(&journals).unwrap().len(), 0);
        assert_eq!(fs::read_to_string(&other).unwrap(), "20000 100000");
    }

    #[test]
    fn a_folder_that_is_not_a_cgroup_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Quota::for_cgroup(&dir.path().join("none")).err();
        assert!(matches!(refused, Some(Failure::Unusable(why)) if why.contains("has no CPU quota")));
    }
}
