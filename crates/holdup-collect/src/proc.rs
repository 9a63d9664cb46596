//! `/proc` and `/sys` as text: opens files, reads them whole, and checks that nothing was cut off.
//! Both roots can be moved, so that every parser also runs on a made-up tree. It knows no metrics;
//! those are in `host` and `process`.

pub mod calls;
pub(crate) mod census;
pub mod cgroups;
pub mod conntrack;
pub(crate) mod cpus;
pub mod devices;
pub mod diskstats;
pub(crate) mod driver_statistics;
pub mod keyed;
pub(crate) mod memory;
pub mod mountinfo;
mod netlink;
pub(crate) mod open_files;
pub mod permissions;
pub(crate) mod qdiscs;
pub(crate) mod shared_census;
pub mod sleeping;
pub(crate) mod sock_diag;
pub mod socket;
pub mod sockets;
pub mod softnet;
pub mod task;
pub(crate) mod thread_rows;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use self::open_files::keep_open;
use crate::ReadError;

/// Largest number of bytes read from one file. `/proc/net/tcp` has about 150 per socket: enough for
/// 200,000 of them.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Where the kernel's files are.
#[derive(Clone, Debug)]
pub struct Proc {
    proc: PathBuf,
    sys: PathBuf,
}

/// The tree that a file is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// `/proc`
    Proc,
    /// `/sys`
    Sys,
}

impl Proc {
    /// The machine's own `/proc` and `/sys`.
    pub fn system() -> Self {
        Self { proc: PathBuf::from("/proc"), sys: PathBuf::from("/sys") }
    }

    /// A copied or made-up tree: `ROOT/proc` and `ROOT/sys`.
    pub fn at(root: &Path) -> Self {
        Self { proc: root.join("proc"), sys: root.join("sys") }
    }

    /// The path of `name` in `tree`.
    pub fn path(&self, tree: Tree, name: &str) -> PathBuf {
        match tree {
            Tree::Proc => self.proc.join(name),
            Tree::Sys => self.sys.join(name),
        }
    }

    /// Reads `/proc/NAME` into `buffer` (dropping its old content) and returns it as text.
    ///
    /// # Errors
    /// If it cannot be opened or read, is not text, or is empty.
    pub fn read<'a>(&self, name: &str, buffer: &'a mut Vec<u8>) -> Result<&'a str, ReadError> {
        self.read_in(Tree::Proc, name, buffer)
    }

    /// [`read`](Self::read) for a file of lines: without a final line feed it was cut off.
    ///
    /// # Errors
    /// Those of `read`, and a last line without its end.
    pub fn read_lines<'a>(&self, name: &str, buffer: &'a mut Vec<u8>) -> Result<&'a str, ReadError> {
        let text = self.read(name, buffer)?;
        if !text.ends_with('\n') {
            return Err(ReadError(format!("/proc/{name}: cut off in its last line")));
        }
        Ok(text)
    }

    /// Reads a file of either tree into `buffer` and returns it as text.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn read_in<'a>(&self, tree: Tree, name: &str, buffer: &'a mut Vec<u8>) -> Result<&'a str, ReadError> {
        read_path(&self.path(tree, name), buffer)
    }

    /// Where the absolute path of this machine's file or folder (e.g. a mount point) is; in a
    /// made-up tree beside its `proc` and `sys`.
    pub(crate) fn rooted(&self, absolute: &str) -> PathBuf {
        let root = self.sys.parent().unwrap_or(Path::new("/"));
        root.join(absolute.trim_start_matches('/'))
    }

    /// A short file's content without surrounding white space; none if it cannot be read.
    pub fn word(&self, tree: Tree, name: &str) -> Option<String> {
        let mut buffer = Vec::new();
        let text = self.read_in(tree, name, &mut buffer).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Whether this is the machine's own `/proc`, whose process ids are valid for this process,
    /// too.
    pub fn is_live(&self) -> bool {
        self.proc == Path::new("/proc")
    }

    /// Puts the numeric names in the folder `/proc/NAME` (process, thread or descriptor numbers)
    /// into `into`.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn numbers(&self, name: &str, into: &mut Vec<u32>) -> Result<(), ReadError> {
        into.clear();
        let path = if name.is_empty() { self.proc.clone() } else { self.proc.join(name) };
        let wrap = |e: std::io::Error| ReadError(format!("{}: {e}", path.display()));
        for entry in std::fs::read_dir(&path).map_err(wrap)? {
            let entry = entry.map_err(wrap)?;
            if let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                into.push(number);
            }
        }
        Ok(())
    }
}

/// Reads a file into `buffer` and returns it as text: [`Proc::read`] for any path.
pub(crate) fn read_path<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> Result<&'a str, ReadError> {
    match read_even_empty(path, buffer)? {
        "" => Err(ReadError(format!("{}: empty", path.display()))),
        text => Ok(text),
    }
}

/// [`read_path`] for a file that may be empty.
pub(crate) fn read_even_empty<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> Result<&'a str, ReadError> {
    buffer.clear();
    let result = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(buffer));
    result.map_err(|e| ReadError(format!("{}: {e}", path.display())))?;
    std::str::from_utf8(buffer).map_err(|_| ReadError(format!("{}: not text", path.display())))
}

/// Longest number that the kernel writes: 20 digits, a sign, a point and decimals.
const NUMBER_BYTES_MAX: usize = 32;

/// The number in `field`; otherwise an error with the file and the field. `inf`, `nan` and `1e999`,
/// which Rust would parse, are rejected.
pub(crate) fn number<T: std::str::FromStr>(file: &str, what: &str, field: Option<&str>) -> Result<T, ReadError> {
    let field = field.ok_or_else(|| ReadError(format!("{file}: {what} is missing")))?;
    let is_plain = field.len() <= NUMBER_BYTES_MAX && !field.bytes().any(|byte| byte.is_ascii_alphabetic());
    let parsed = if is_plain { field.parse().ok() } else { None };
    parsed.ok_or_else(|| ReadError(format!("{file}: {what} is `{}`, not a number", clip(field))))
}

/// [`number`] for a counter that the kernel writes in hexadecimal, eight digits long.
pub(crate) fn hexadecimal(file: &str, what: &str, field: Option<&str>) -> Result<u32, ReadError> {
    let field = field.ok_or_else(|| ReadError(format!("{file}: {what} is missing")))?;
    let is_plain = field.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = if is_plain { u32::from_str_radix(field, 16).ok() } else { None };
    parsed.ok_or_else(|| ReadError(format!("{file}: {what} is `{}`, not a hexadecimal number", clip(field))))
}

/// Replaces `path` with `text`, reusing its memory.
pub(crate) fn set(path: &mut String, text: std::fmt::Arguments) {
    path.clear();
    // Writing to a String cannot fail.
    let _ = path.write_fmt(text);
}

pub(crate) use holdup_recording::words::clip;

/// Clock ticks per second in `/proc` (`USER_HZ`); 100 on every Linux in use.
pub(crate) fn ticks_per_second() -> f64 {
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

/// Bytes of a memory page.
pub(crate) fn page_bytes() -> f64 {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if bytes > 0 { bytes as f64 } else { 4096.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(file: &str, content: &[u8]) -> (tempfile::TempDir, Proc) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc").join(file), content).unwrap();
        let proc = Proc::at(dir.path());
        (dir, proc)
    }

    #[test]
    fn an_empty_a_cut_and_a_binary_file_are_errors() {
        let mut buffer = Vec::new();
        for (content, said) in [(&b""[..], "empty"), (b"a 1\nb 2", "cut off"), (b"\xff\xfe\n", "not text")] {
            let (_dir, proc) = tree("stat", content);
            let error = proc.read_lines("stat", &mut buffer).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let (_dir, proc) = tree("stat", b"a 1\n");
        assert_eq!(proc.read_lines("stat", &mut buffer).unwrap(), "a 1\n");
        assert!(proc.read_lines("loadavg", &mut buffer).is_err());
    }
}
