//! What a CPU quota was before holdup changed it, in a file outside of the recording: so that a holdup that was killed is undone by
//! the next one, or by `holdup capacity --restore`.
//!
//! The file is locked for as long as its holdup lives; the kernel lets go of the lock however that ends. It lies in a folder that
//! only this account may write, because what stands in it is written to a cgroup.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Files of cgroups that may be written by what a journal says.
const QUOTA_FILES: [&str; 2] = ["cpu.max", "cpu.cfs_quota_us"];

/// What one cgroup's quota was, and what it was set to since.
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// Where journals are: gone with the next boot, as quotas are.
pub fn folder() -> PathBuf {
    // SAFETY: geteuid takes nothing and can't fail.
    let user = unsafe { libc::geteuid() };
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| user != 0 && !dir.is_empty());
    match own {
        Some(dir) => Path::new(&dir).join("holdup"),
        None if user == 0 => PathBuf::from("/run/holdup"),
        None => std::env::temp_dir().join(format!("holdup-{user}")),
    }
}

/// # Errors
/// If it isn't a folder of this account that only it may write.
fn check(folder: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(folder)?;
    // SAFETY: geteuid takes nothing and can't fail.
    let user = unsafe { libc::geteuid() };
    if data.is_dir() && data.uid() == user && data.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it must be a folder of this account that no other account may write"))
}

impl Journal {
    /// Begins the journal of the quota in `quota_file`. If another holdup left one, its quota is set back first.
    ///
    /// # Errors
    /// If another holdup varies this cgroup now, or the journal can't be written.
    pub fn begin(folder: &Path, quota_file: &Path) -> Result<Self, Failure> {
        let failed = |why: String| {
            let (folder, file) = (folder.display(), quota_file.display());
            Failure::Unusable(format!("{file}: what it is can't be kept in {folder}, so it is not changed: {why}"))
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

    /// Opens and locks one; none if its holdup lives. A journal that was removed meanwhile is not it.
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

    /// Notes what the quota is before it is changed.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn note(&mut self, quota_file: &Path, before: &str) -> io::Result<()> {
        self.file.write_all(format!("{}\n{before}\n", quota_file.display()).as_bytes())
    }

    /// Notes what the quota is about to be set to.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn note_set(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(format!("{text}\n").as_bytes())
    }

    /// Sets back what the journal says, unless somebody else has changed it since. What was done, if anything.
    ///
    /// # Errors
    /// If the quota can't be written.
    fn undo(&self) -> io::Result<Option<String>> {
        let mut text = String::new();
        (&self.file).take(64 << 10).read_to_string(&mut text)?;
        let mut lines = text.lines();
        let (Some(file), Some(before)) = (lines.next().map(Path::new), lines.next()) else { return Ok(None) };
        let is_quota = file.file_name().is_some_and(|name| QUOTA_FILES.iter().any(|known| name == *known));
        // A cgroup that is gone has no quota to set back.
        let Some(now) = fs::read_to_string(file).ok().filter(|_| is_quota) else { return Ok(None) };
        let now = now.trim();
        if now == before {
            return Ok(None);
        }
        let shown = file.display();
        if !lines.any(|set| set == now) {
            return Ok(Some(format!("{shown} is {now}, which no holdup has set: it is left so (it was {before})")));
        }
        OpenOptions::new().write(true).truncate(true).open(file)?.write_all(before.as_bytes())?;
        Ok(Some(format!("{shown} was left at {now} by a holdup that was killed, and is set back to {before}")))
    }

    /// Lets go of the lock, as the end of a process does.
    #[cfg(test)]
    pub fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// The quota is what it was: there is nothing to undo.
    pub fn end(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Sets back what killed holdups have left changed. What was done, a line each, and what can't be done.
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
                said.push(format!("a CPU quota can't be set back ({}): {error}; needs root", journal.path.display()))
            }
        }
    }
    Ok(said)
}
