//! A directory that holdup writes to, held by descriptor: a user who renames a part of its path
//! meanwhile cannot make holdup write elsewhere. It does not guard what lies inside: that is up to
//! the directory's mode.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use crate::files::{self, account};

/// Most links on the way to a directory, as in the kernel.
const LINKS_MAX: usize = 40;

const FOREIGN: &str =
    "it belongs to another user, who could read or redirect the files; name your own directory with -o";

/// An open directory of this account.
#[derive(Debug)]
pub struct Folder {
    held: File,
    /// As the user named it.
    path: PathBuf,
}

impl Folder {
    /// Opens `path`, and creates it and its parents where they are missing. Nothing in the path can
    /// be replaced unnoticed: each part is opened relative to the one before.
    ///
    /// # Errors
    /// Also if it belongs to another user, or another user's link is on the way to it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let held = walk(path)?;
        if held.metadata()?.uid() != account() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, FOREIGN));
        }
        Ok(Self { held, path: path.to_owned() })
    }

    /// The path for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for opening files: it leads to this directory wherever it has been moved, as long
    /// as this value lives.
    pub fn place(&self) -> PathBuf {
        place(&self.held)
    }

    /// Where it is now.
    pub fn current(&self) -> PathBuf {
        if self.is_in_place() {
            return self.path.clone();
        }
        fs::read_link(self.place()).unwrap_or_else(|_| self.path.clone())
    }

    /// What happened to it, if its path no longer leads to it.
    pub fn moved(&self) -> Option<String> {
        let is_removed = || self.held.metadata().is_ok_and(|data| data.nlink() == 0);
        match () {
            () if self.is_in_place() => None,
            () if is_removed() => Some(format!("the directory {} was removed", self.path.display())),
            () => Some(format!(
                "the directory {} was moved or replaced; holdup goes on writing to the same one, now {}",
                self.path.display(),
                self.current().display()
            )),
        }
    }

    /// `text` with this directory as the user named it.
    pub fn shown(&self, text: &str) -> String {
        text.replace(&*self.place().to_string_lossy(), &self.path.to_string_lossy())
    }

    fn is_in_place(&self) -> bool {
        let id = |data: fs::Metadata| (data.dev(), data.ino());
        let (there, held) = (fs::metadata(&self.path).map(id), self.held.metadata().map(id));
        there.is_ok_and(|there| held.is_ok_and(|held| held == there))
    }
}

fn place(held: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
}

/// Opens what has this name, and not what a link of this name leads to.
fn hold(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

/// The names in `path`, the last one first.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    let names = path.components().rev().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.map(|part| part.as_os_str().to_owned())
}

fn walk(path: &Path) -> io::Result<File> {
    let start = |path: &Path| hold(Path::new(if path.is_absolute() { "/" } else { "." }));
    let mut at = start(path)?;
    let mut ahead: Vec<OsString> = names(path).collect();
    let mut links = 0;
    while let Some(name) = ahead.pop() {
        let found = hold_or_create(&place(&at).join(&name))?;
        let data = found.metadata()?;
        if data.is_dir() {
            at = found;
            continue;
        }
        if !data.is_symlink() {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        // root needs no link to redirect files.
        if ![0, account()].contains(&data.uid()) {
            return Err(foreign_link(&name));
        }
        let target = target(&found)?;
        if target.is_absolute() {
            at = start(&target)?;
        }
        ahead.extend(names(&target));
    }
    Ok(at)
}

fn hold_or_create(path: &Path) -> io::Result<File> {
    match hold(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        held => return held,
    }
    match files::create_new_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => hold(path),
    }
}

fn foreign_link(name: &OsStr) -> io::Error {
    let name = name.to_string_lossy();
    let why =
        format!("{name} is a link of another user, who could redirect the files; name your own directory with -o");
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Where an open link leads.
fn target(link: &File) -> io::Result<PathBuf> {
    let mut bytes = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: the name is an empty text that ends in a zero byte, which stands for the open link
    // itself, and at most the length of `bytes` is written to it.
    let count = unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), bytes.as_mut_ptr().cast(), bytes.len()) };
    bytes.truncate(usize::try_from(count).map_err(|_| io::Error::last_os_error())?);
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    fn parents_are_made_and_own_links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        let folder = Folder::create(&dir.path().join("link/../link/a/b")).unwrap();
        fs::write(folder.place().join("f"), "x").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("real/a/b/f")).unwrap(), "x");
        assert!(folder.moved().is_none());
        fs::write(dir.path().join("file"), "").unwrap();
        let why = Folder::create(&dir.path().join("file/a")).unwrap_err();
        assert_eq!(why.raw_os_error(), Some(libc::ENOTDIR));
        symlink("loop", dir.path().join("loop")).unwrap();
        assert_eq!(Folder::create(&dir.path().join("loop/a")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn links_of_others_are_refused_anywhere_in_the_path() {
        if account() != 0 {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("victim")).unwrap();
        let link = dir.path().join("link");
        symlink("victim", &link).unwrap();
        lchown(&link, Some(65_534), Some(65_534)).unwrap();
        for path in ["link", "link/inside", "link/in/side"] {
            let why = Folder::create(&dir.path().join(path)).unwrap_err().to_string();
            assert!(why.contains("link is a link of another user") && why.contains("-o"), "{why}");
        }
        assert_eq!(fs::read_dir(dir.path().join("victim")).unwrap().count(), 0);
    }

    #[test]
    fn a_moved_folder_is_written_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (path, aside, other) = (dir.path().join("a/b"), dir.path().join("aside"), dir.path().join("other"));
        let folder = Folder::create(&path).unwrap();
        fs::create_dir_all(other.join("b")).unwrap();
        fs::rename(dir.path().join("a"), &aside).unwrap();
        symlink(&other, dir.path().join("a")).unwrap();
        fs::write(folder.place().join("f"), "x").unwrap();
        assert_eq!(fs::read_dir(other.join("b")).unwrap().count(), 0);
        assert!(aside.join("b/f").exists() && folder.current() == aside.join("b"));
        assert!(folder.moved().unwrap().ends_with("aside/b"));
        let shown = folder.shown(&format!("{}/f: full", folder.place().display()));
        assert_eq!(shown, format!("{}/f: full", path.display()));
        fs::remove_file(aside.join("b/f")).unwrap();
        fs::remove_dir(aside.join("b")).unwrap();
        assert!(folder.moved().unwrap().ends_with("was removed"));
    }
}
