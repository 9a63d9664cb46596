//! Reads the small files (`stat`, `schedstat`, …) of the same threads repeatedly, and keeps some of
//! them open as far as the limit on open files allows: opening and closing one costs as much CPU as
//! reading it (measured on Linux 6.18: 5 µs and 3 µs). An open file stays bound to its thread:
//! reading fails after the thread has ended, even if its number is used again.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ReadError;
use crate::proc::{Proc, Tree, set, task};

/// Largest number of files that all sources together keep open, whatever the limit.
const OPEN_MAX: usize = 8_192;

/// The default before [`keep_open`] is called; it fits beside other files under the usual limit of
/// 1,024.
const OPEN_UNSAID: usize = 256;

/// Bytes read of one file. For a stack these are its innermost twenty functions or so; all other
/// files are shorter.
const LINE_BYTES: usize = 1_024;

/// How many files all sources of this process may keep open together.
static MOST: AtomicUsize = AtomicUsize::new(OPEN_UNSAID);

/// How many are open now.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Lets all sources together keep `most` files open. Excess files are closed at their next read.
pub fn keep_open(most: u64) {
    MOST.store(usize::try_from(most).map_or(OPEN_MAX, |most| most.min(OPEN_MAX)), Ordering::Relaxed);
}

/// Descriptors have run out: from now on half as many are kept.
fn run_out() {
    let _ = MOST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |most| Some(most / 2));
}

/// Permission to keep one file open.
#[derive(Debug)]
struct Permit(());

impl Permit {
    fn take() -> Option<Self> {
        let most = MOST.load(Ordering::Relaxed);
        let one_more = |open: usize| (open < most).then_some(open + 1);
        OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Self(()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many files one source may keep open, if permits are left. None on a made-up tree: there a
/// removed file stays readable.
pub(crate) fn open_max(proc: &Proc) -> usize {
    if proc.is_live() { OPEN_MAX } else { 0 }
}

/// What reading threads' files needs: the root, memory for names and contents, and how many more
/// may be kept open.
pub(crate) struct Files {
    pub(crate) proc: Proc,
    root: String,
    path: String,
    line: Vec<u8>,
    /// How many more files may be kept open.
    pub(crate) room: usize,
}

/// A thread, by its process' number and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

impl Files {
    pub(crate) fn new(proc: &Proc) -> Self {
        let root = proc.path(Tree::Proc, "").to_string_lossy().into_owned();
        Self { proc: proc.clone(), root, path: String::new(), line: vec![0; LINE_BYTES], room: 0 }
    }

    /// The start of file `name` of a thread; none if it cannot be read.
    pub(crate) fn once(&mut self, id: Id, name: &str) -> Option<&str> {
        let mut file = self.open(id, name)?;
        let length = file.read(&mut self.line).ok().filter(|length| *length > 0)?;
        Some(task::text(&mut self.line[..length]))
    }

    /// A value that changes whenever a process' threads come or go; none if the kernel has no such
    /// value. The thread folder has a link for each thread, and two of its own.
    pub(crate) fn links(&mut self, pid: u32) -> Option<u64> {
        let root = &self.root;
        set(&mut self.path, format_args!("{root}{pid}/task"));
        std::fs::metadata(&self.path).ok().map(|data| data.nlink()).filter(|links| *links > 2)
    }

    /// Puts the numbers of a process' threads into `into`.
    ///
    /// # Errors
    /// If the folder cannot be read: the process has ended.
    pub(crate) fn list(&mut self, pid: u32, into: &mut Vec<u32>) -> Result<(), ReadError> {
        set(&mut self.path, format_args!("{pid}/task"));
        self.proc.numbers(&self.path, into)
    }

    fn open(&mut self, id: Id, name: &str) -> Option<File> {
        let Self { root, path, .. } = self;
        set(path, format_args!("{root}{}/task/{}/{name}", id.pid, id.tid));
        match File::open(path) {
            Ok(file) => Some(file),
            Err(error) => {
                if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                    run_out();
                }
                None
            }
        }
    }
}

/// One file of one thread.
#[derive(Debug, Default)]
pub(crate) struct CachedFile(Option<(File, Permit)>);

impl CachedFile {
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// The file's start; none if the thread has ended or may not be read. With `keep` it stays open
    /// if there is room.
    pub(crate) fn read<'a>(&mut self, files: &'a mut Files, id: Id, name: &str, keep: bool) -> Option<&'a str> {
        if let Some((file, _)) = &self.0 {
            let length = file.read_at(&mut files.line, 0).ok().filter(|length| *length > 0);
            // The thread has ended, and another may have its number; or too many files are open.
            if length.is_none() || OPEN.load(Ordering::Relaxed) > MOST.load(Ordering::Relaxed) {
                self.0 = None;
                files.room += 1;
            }
            if let Some(length) = length {
                return Some(task::text(&mut files.line[..length]));
            }
        }
        let mut file = files.open(id, name)?;
        let length = file.read(&mut files.line).ok().filter(|length| *length > 0)?;
        if keep
            && files.room > 0
            && let Some(permit) = Permit::take()
        {
            files.room -= 1;
            self.0 = Some((file, permit));
        }
        Some(task::text(&mut files.line[..length]))
    }
}
