//! How holdup opens files. An input must be a regular file. Files that holdup writes belong to its
//! user alone and never lie behind another user's link.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Largest file with a password, a token or certificates.
pub const SMALL_BYTES: u64 = 16 << 20;

/// Opens an input. A pipe is accepted only if the caller's shell passed it (`<(…)`, `/dev/fd/N`),
/// as with standard input.
///
/// # Errors
/// Also if it is a pipe, a socket or a device, which may never end or answer. holdup does not wait
/// for it.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(file);
    }
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_fifo() && is_handed_over(path) {
        return File::open(path);
    }
    let what = if kind.is_fifo() { "a pipe" } else { "a device" };
    Err(io::Error::other(format!("it is {what}, not a regular file; copy it into one")))
}

/// Whether it is a descriptor that this process was started with.
fn is_handed_over(path: &Path) -> bool {
    let is_in = |folder: &str| path.parent() == Some(Path::new(folder));
    is_in("/dev/fd") || is_in("/proc/self/fd") || path == Path::new("/dev/stdin")
}

/// Reads an input of at most `most` bytes.
///
/// # Errors
/// As [`open`], and if it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let too_large = || io::Error::other(format!("it has more than {most} bytes"));
    // Said before any memory is taken, where the file has a size.
    if file.metadata()?.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    Ok(bytes)
}

/// The same for a text.
///
/// # Errors
/// As [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Creates or empties a file for writing. Refuses a link in its place.
///
/// # Errors
/// Those of the file system.
pub fn create(path: &Path) -> io::Result<File> {
    writable().truncate(true).open(path)
}

/// The same for appending.
///
/// # Errors
/// Those of the file system.
pub fn append(path: &Path) -> io::Result<File> {
    writable().append(true).open(path)
}

fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    let mode = if account() == 0 { 0o600 } else { 0o666 };
    options.write(true).create(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
    options
}

/// Replaces a file as a whole; if that fails, the old file stays.
///
/// # Errors
/// Those of the file system; nothing is left behind then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let partial = path.with_file_name(name);
    let written = create(&partial)
        .and_then(|mut file| io::Write::write_all(&mut file, bytes))
        .and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Creates `dir`, which must not exist: of several processes that try at the same time, one
/// succeeds.
///
/// # Errors
/// Also if something with that name exists.
pub fn create_new_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(if account() == 0 { 0o700 } else { 0o777 }).create(dir)
}

/// The account that will own the files.
pub(crate) fn account() -> u32 {
    // SAFETY: geteuid(2) takes nothing, touches no memory and always succeeds.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::folder::Folder;

    #[test]
    fn links_are_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "kept").unwrap();
        symlink(&victim, &link).unwrap();
        assert!(create(&link).is_err() && append(&link).is_err());
        symlink(&victim, dir.path().join("page.tmp")).unwrap();
        assert!(replace(&dir.path().join("page"), b"x").is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        // Without the planted link, the next attempt succeeds.
        replace(&dir.path().join("page"), b"x").unwrap();
    }

    #[test]
    fn folders_made_by_root_are_readable_by_root_alone() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("a/b");
        Folder::create(&inside).unwrap();
        Folder::create(&inside).unwrap();
        let file = inside.join("f");
        create(&file).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        if account() == 0 {
            assert_eq!((mode(&dir.path().join("a")), mode(&inside), mode(&file)), (0o700, 0o700, 0o600));
        }
    }

    #[test]
    fn inputs_are_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "abc").unwrap();
        assert_eq!(read(&file, 3).unwrap(), b"abc");
        assert_eq!(read(&file, 2).unwrap_err().to_string(), "it has more than 2 bytes");
        assert!(read(Path::new("/dev/zero"), 2).unwrap_err().to_string().contains("not a regular file"));
    }
}
