//! Reads the small files (`stat`, `schedstat`, …) of the same threads over and over, and keeps some of them open as far as the
//! limit on open files allows: opening and closing one costs as much CPU as reading it (measured on Linux 6.18: 5 us and 3 us).
//! A kept file is of one thread for ever: it fails once that has ended, even if the number is used again.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ReadError;
use crate::proc::{Proc, Tree, set, task};

/// Most files kept open by all sources together, whatever the limit.
const OPEN_MAX: usize = 8_192;

/// Until it is said how many may be kept: no more than this, which fits beside all else under the usual limit of 1,024.
const OPEN_UNSAID: usize = 256;

/// Bytes that are read of one file. Of a stack that is its innermost twenty functions or so; all others are shorter.
const LINE_BYTES: usize = 1_024;

/// How many files all sources of this process may keep open together.
static MOST: AtomicUsize = AtomicUsize::new(OPEN_UNSAID);

/// How many they do.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Lets all sources together keep `most` files open. What is open beyond that is closed as it is read next.
pub fn keep_open(most: u64) {
    MOST.store(usize::try_from(most).map_or(OPEN_MAX, |most| most.min(OPEN_MAX)), Ordering::Relaxed);
}

/// Descriptors have run out: from now on half as many are kept.
fn run_out() {
    let _ = MOST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |most| Some(most / 2));
}

/// The right to keep one file open.
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

/// How many files one source may keep open, as far as there are permits. None of a made-up tree: there a file that was
/// removed goes on to be readable.
pub(crate) fn open_max(proc: &Proc) -> usize {
    if proc.is_live() { OPEN_MAX } else { 0 }
}

/// What threads' files are read with: where they are, the memory for names and contents, and how many more may be kept open.
pub(crate) struct Files {
    pub(crate) proc: Proc,
    root: String,
    path: String,
    line: Vec<u8>,
    /// How many more files may be kept open.
    pub(crate) room: usize,
}

/// A thread by its process' number and its own.
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

    /// The beginning of file `name` of a thread; nothing if it can't be read.
    pub(crate) fn once(&mut self, id: Id, name: &str) -> Option<&str> {
        let mut file = self.open(id, name)?;
        let length = file.read(&mut self.line).ok().filter(|length| *length > 0)?;
        Some(task::text(&mut self.line[..length]))
    }

    /// Something that changes whenever threads of a process come or go; nothing where the kernel has no such thing.
    /// The folder of threads counts a link for each, besides its own two.
    pub(crate) fn links(&mut self, pid: u32) -> Option<u64> {
        let root = &self.root;
        set(&mut self.path, format_args!("{root}{pid}/task"));
        std::fs::metadata(&self.path).ok().map(|data| data.nlink()).filter(|links| *links > 2)
    }

    /// Puts the numbers of a process' threads into `into`.
    ///
    /// # Errors
    /// If the folder can't be read: the process has ended.
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
pub(crate) struct KeptFile(Option<(File, Permit)>);

impl KeptFile {
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// The file's beginning; nothing if the thread has ended or is not ours to read. With `keep` it stays open if there is room.
    pub(crate) fn read<'a>(&mut self, files: &'a mut Files, id: Id, name: &str, keep: bool) -> Option<&'a str> {
        if let Some((file, _)) = &self.0 {
            let length = file.read_at(&mut files.line, 0).ok().filter(|length| *length > 0);
            // Ended, and there may be another one under its number; or more are open than may be.
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
