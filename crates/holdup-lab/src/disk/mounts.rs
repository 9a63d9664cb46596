//! Mounting, unmounting, and listing mounts below a folder, from the kernel's list. Never unmounts
//! anything outside that folder.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::disk::DiskError;

/// How often unmounting is tried again while something uses a mount.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Unmounts `mountpoint`, waiting for its users for `patience`. Users that remain keep the mount,
/// detached from the tree, until they end.
///
/// # Errors
///
/// If it cannot be detached either.
pub fn unmount(mountpoint: &Path, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        match umount2(mountpoint, libc::UMOUNT_NOFOLLOW) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                std::thread::sleep(TRY_EVERY);
            }
            Ok(()) => return Ok(()),
            Err(_) => return umount2(mountpoint, libc::UMOUNT_NOFOLLOW | libc::MNT_DETACH),
        }
    }
}

fn umount2(mountpoint: &Path, flags: libc::c_int) -> io::Result<()> {
    let path = CString::new(mountpoint.as_os_str().as_bytes())?;
    // SAFETY: the path is a string that ends in a zero and is only read.
    if unsafe { libc::umount2(path.as_ptr(), flags) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lists the mounts at or below `dir`, the last mounted first.
///
/// # Errors
///
/// If the kernel's list cannot be read.
pub fn below(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let list = std::fs::read("/proc/self/mountinfo")?;
    Ok(listed_below(&list, dir))
}

fn listed_below(mountinfo: &[u8], dir: &Path) -> Vec<PathBuf> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    // proc_pid_mountinfo(5): the fifth field is the mount point.
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let mut found: Vec<PathBuf> =
        points.map(|field| PathBuf::from(unescaped(field))).filter(|path| path.starts_with(dir)).collect();
    found.reverse();
    found
}

/// The list writes spaces and the like as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// Folders of system administration programs, on the user's path or not.
const PLACES: [&str; 6] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/// The path of the program with this name; none if it is not installed.
pub fn program(name: &str) -> Option<PathBuf> {
    PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

/// Runs a program to its end and returns its output.
///
/// # Errors
///
/// If it is not installed, or fails: the error has its output.
pub fn run(name: &'static str, arguments: &[&std::ffi::OsStr]) -> Result<String, DiskError> {
    let path = program(name).ok_or_else(|| DiskError::Needs(format!("{name} is not installed")))?;
    let output = Command::new(path)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| DiskError::System { what: format!("start {name}"), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(DiskError::Program { name, said: said.trim().replace('\n', "; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_below_a_folder_come_innermost_first() {
        let list = b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
            30 22 0:40 / /tmp/a\\040b/store rw shared:1 - fuse.x holdup-disk rw\n\
            31 22 7:0 / /tmp/a\\040b/mnt rw - ext4 /dev/loop0 rw\n\
            32 22 7:1 / /tmp/a\\040bc rw - ext4 /dev/loop1 rw\n";
        let found = listed_below(list, Path::new("/tmp/a b"));
        assert_eq!(found, [PathBuf::from("/tmp/a b/mnt"), PathBuf::from("/tmp/a b/store")]);
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescaped(b"a\\134b\\9\\"), OsString::from("a\\b\\9\\"));
    }
}
