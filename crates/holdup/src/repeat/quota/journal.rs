//! Stores a CPU quota's earlier value in a file outside the recording, so that the next holdup, or
//! `holdup capacity --restore`, can undo the change of a killed one.
//!
//! The file is locked as long as its holdup lives, and the kernel releases the lock however that
//! ends. It lies in a folder that only this account may write, because holdup writes its contents
//! to a cgroup.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Files of cgroups that a journal may restore.
const QUOTA_FILES: [&str; 2] = ["cpu.max", "cpu.cfs_quota_us"];

/// One cgroup's earlier quota, and the values set since.
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// The folder of journals: like quotas, it does not survive a boot.
pub fn folder() -> PathBuf {
    // SAFETY: geteuid takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| user != 0 && !dir.is_empty());
    match own {
        Some(dir) => Path::new(&dir).join("holdup"),
        None if user == 0 => PathBuf::from("/run/holdup"),
        None => std::env::temp_dir().join(format!("holdup-{user}")),
    }
}

/// # Errors
/// If it is not a folder of this account that only the account may write.
fn check(folder: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(folder)?;
    // SAFETY: geteuid takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    if data.is_dir() && data.uid() == user && data.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it must be a folder of this account that no other account may write"))
}

impl Journal {
    /// Begins the journal of the quota in `quota_file`. If another holdup left one, its quota is
    /// restored first.
    ///
    /// # Errors
    /// If another holdup varies this cgroup now, or the journal cannot be written.
    pub fn begin(folder: &Path, quota_file: &Path) -> Result<Self, Failure> {
        let failed = |why: String| {
            let (folder, file) = (folder.display(), quota_file.display());
            Failure::Unusable(format!("{file} was not changed, because its value cannot be saved in {folder}: {why}"))
        };
        let io = |error: io::Error| failed(error.to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
        check(folder).map_err(io)?;
        let data = fs::metadata(quota_file).map_err(io)?;
        let path = folder.join(format!("quota-{:x}-{:x}", data.dev(), data.ino()));
        let journal = match Self::open(path, true).map_err(io)? {
            Some(journal) => journal,
            None => return Err(failed("another holdup varies this cgroup now".to_owned())),
        };
        if let Some(said) = journal.undo().map_err(io)? {
            errln!("{said}");
        }
        journal.file.set_len(0).map_err(io)?;
        Ok(journal)
    }

    /// Opens and locks a journal; none if its holdup lives, or if the file was removed meanwhile.
    fn open(path: PathBuf, create: bool) -> io::Result<Option<Self>> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(create).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            let file = options.open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
            match fs::symlink_metadata(&path) {
                Ok(now) if now.ino() == file.metadata()?.ino() => return Ok(Some(Self { path, file })),
                Err(error) if error.kind() != io::ErrorKind::NotFound || !create => return Err(error),
                _ => {}
            }
        }
    }

    /// Notes the quota before it is changed.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn note(&mut self, quota_file: &Path, before: &str) -> io::Result<()> {
        self.file.write_all(format!("{}\n{before}\n", quota_file.display()).as_bytes())
    }

    /// Notes the quota that is about to be set.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn note_set(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(format!("{text}\n").as_bytes())
    }

    /// Restores the journal's quota, unless another program has changed it since. Returns a
    /// description of what it did.
    ///
    /// # Errors
    /// If the quota cannot be written.
    fn undo(&self) -> io::Result<Option<String>> {
        let mut text = String::new();
        (&self.file).take(64 << 10).read_to_string(&mut text)?;
        let mut lines = text.lines();
        let (Some(file), Some(before)) = (lines.next().map(Path::new), lines.next()) else { return Ok(None) };
        let is_quota = file.file_name().is_some_and(|name| QUOTA_FILES.iter().any(|known| name == *known));
        // A cgroup that is gone needs no restoring.
        let Some(now) = fs::read_to_string(file).ok().filter(|_| is_quota) else { return Ok(None) };
        let now = now.trim();
        if now == before {
            return Ok(None);
        }
        let shown = file.display();
        if !lines.any(|set| set == now) {
            return Ok(Some(format!(
                "{shown} is {now}, which holdup did not set, so it was left unchanged (it was {before})"
            )));
        }
        OpenOptions::new().write(true).truncate(true).open(file)?.write_all(before.as_bytes())?;
        Ok(Some(format!("a killed holdup left {shown} at {now}; restored to {before}")))
    }

    /// Releases the lock, as the end of a process does.
    #[cfg(test)]
    pub fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// The quota has its earlier value again: there is nothing to undo.
    pub fn end(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Restores quotas that killed holdups left changed. Returns a line for each, and errors.
pub fn restore(folder: &Path) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::Unusable(format!("{}: {error}", folder.display()))),
    };
    check(folder).map_err(|error| Failure::Unusable(format!("{}: {error}", folder.display())))?;
    let mut said = Vec::new();
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("quota-")) {
            continue;
        }
        // Another holdup may have dealt with it since the folder was read.
        let Ok(Some(journal)) = Journal::open(path, false) else { continue };
        match journal.undo() {
            Ok(text) => {
                said.extend(text);
                journal.end();
            }
            Err(error) => {
                said.push(format!("a CPU quota cannot be restored ({}): {error}; needs root", journal.path.display()))
            }
        }
    }
    Ok(said)
}
