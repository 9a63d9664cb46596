//! Space on the file system: the size limit of a recording, the minimum of free space, and a
//! reserve for its manifest.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::files;
use crate::segment::SEGMENTS;
use crate::words::bytes;

/// File that reserves space for the manifest until the recording ends.
const RESERVE: &str = ".reserve";

/// Size of the reserve; a manifest with a long scenario has some 100 KiB.
const RESERVE_BYTES: u64 = 256 << 10;

/// On a small file system the reserve takes at most one in this many free bytes.
const RESERVE_SHARE: u64 = 16;

/// Default minimum of free space: one in this many bytes of the file system …
const FLOOR_SHARE: u64 = 100;

/// … and at most this.
const FLOOR_BYTES_MAX: u64 = 1 << 30;

/// Memory for rows that could not be written yet: minutes of a typical recording.
const MEMORY_BYTES: usize = 64 << 20;

/// Limits of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size on disk, including the final merge, at which the recording is full. None for any size.
    pub max_bytes: Option<u64>,
    /// Minimum of free space on the file system, below which nothing is written. None for 1 % of
    /// it, at most 1 GiB.
    pub min_free_bytes: Option<u64>,
    /// Memory for rows that are not written yet. Further rows are lost, and counted.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: None, min_free_bytes: None, memory_bytes: MEMORY_BYTES }
    }
}

/// The limits on one directory.
pub(super) struct Room {
    dir: PathBuf,
    limits: Limits,
}

impl Room {
    pub(super) fn new(dir: &Path, limits: Limits) -> Self {
        Self { dir: dir.to_owned(), limits }
    }

    /// # Errors
    /// `StorageFull` if less than the minimum is free. If the file system does not say, there is
    /// room.
    pub(super) fn check(&self) -> io::Result<()> {
        let Some((free, total)) = space(&self.dir) else { return Ok(()) };
        let floor = self.limits.min_free_bytes.unwrap_or((total / FLOOR_SHARE).min(FLOOR_BYTES_MAX));
        if free >= floor {
            return Ok(());
        }
        let why = format!(
            "only {} are free on the file system, and {} must stay free (--min-free)",
            bytes(free as f64),
            bytes(floor as f64)
        );
        Err(io::Error::new(io::ErrorKind::StorageFull, why))
    }

    /// A message once the recording has reached its size limit. Merging writes a table once more
    /// before its segments are removed.
    pub(super) fn reached(&self) -> Option<String> {
        let most = self.limits.max_bytes?;
        let (mut all, mut largest, mut table) = (0, 0, (String::new(), 0));
        let mut files = files(&self.dir);
        files.extend(files_of_segments(&self.dir));
        files.sort_unstable();
        for (name, bytes) in files {
            all += bytes;
            let of = name.split(['-', '.']).next().unwrap_or_default();
            table = if table.0 == of { (table.0, table.1 + bytes) } else { (of.to_owned(), bytes) };
            largest = largest.max(table.1);
        }
        (all + largest >= most).then(|| format!("the recording has reached {} (--max-size)", bytes(most as f64)))
    }
}

fn files_of_segments(dir: &Path) -> Vec<(String, u64)> {
    files(&dir.join(SEGMENTS))
}

/// Names and sizes of the files in a folder.
fn files(dir: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let file = |entry: fs::DirEntry| {
        let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((entry.file_name().to_string_lossy().into_owned(), data.len()))
    };
    entries.filter_map(file).collect()
}

/// Bytes free for this account on the file system of `dir`, and its size.
fn space(dir: &Path) -> Option<(u64, u64)> {
    let path = CString::new(dir.as_os_str().as_bytes()).ok()?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends in a zero byte, and `found` is large enough for the result; it is read
    // only after success.
    let found = unsafe {
        if libc::statvfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return None;
        }
        found.assume_init()
    };
    Some((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}

/// Space that is reserved on the file system until it is dropped.
pub(super) struct Reserve(PathBuf);

impl Reserve {
    /// Reserves space for the manifest, less on a small file system.
    ///
    /// # Errors
    /// If there is no space. A file system that cannot reserve without writing gets no reserve.
    pub(super) fn create(dir: &Path) -> io::Result<Self> {
        let most = space(dir).map_or(RESERVE_BYTES, |(free, _)| RESERVE_BYTES.min(free / RESERVE_SHARE));
        let reserve = Self(dir.join(RESERVE));
        let file = files::create(&reserve.0)?;
        let length = libc::off_t::try_from(most).unwrap_or(0);
        // SAFETY: fallocate takes numbers and touches no memory.
        if length > 0 && unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Unsupported && error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(error);
            }
        }
        Ok(reserve)
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_and_the_size_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let room = |limits| Room::new(dir.path(), limits);
        let all = Limits { min_free_bytes: Some(u64::MAX), ..Limits::default() };
        let why = room(all).check().unwrap_err();
        assert!(why.kind() == io::ErrorKind::StorageFull && why.to_string().contains("--min-free"), "{why}");
        assert!(room(Limits { min_free_bytes: Some(0), ..Limits::default() }).check().is_ok());
        fs::create_dir(dir.path().join(SEGMENTS)).unwrap();
        fs::write(dir.path().join("latency.hlog"), [0; 300]).unwrap();
        fs::write(dir.path().join(SEGMENTS).join("samples-00000001.parquet"), [0; 400]).unwrap();
        fs::write(dir.path().join(SEGMENTS).join("samples-00000002.parquet"), [0; 200]).unwrap();
        // 900, and 600 once more while they are merged.
        assert_eq!(room(Limits::default()).reached(), None);
        assert_eq!(room(Limits { max_bytes: Some(1_501), ..Limits::default() }).reached(), None);
        assert!(room(Limits { max_bytes: Some(1_500), ..Limits::default() }).reached().is_some());
    }

    #[test]
    fn the_reserve_holds_room_and_gives_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::create(dir.path()).unwrap();
        assert!(dir.path().join(RESERVE).exists());
        drop(reserve);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
