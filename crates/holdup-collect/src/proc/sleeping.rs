//! Where a thread sleeps in the kernel: wait channel, system call, kernel stack, and the file of
//! the call. Unreadable parts are left out. The caller checks that the thread still slept after all
//! of it was read.
//!
//! Of another process' memory it reads only the path argument of a call.

use std::os::unix::ffi::OsStrExt as _;

use crate::proc::Tree;
use crate::proc::calls::{Call, FileReference};
use crate::proc::memory::{Memory, PATH_BYTES_MAX};
use crate::proc::open_files::{CachedFile, Files, Id};

/// Largest number of functions kept of a stack, the innermost.
const FUNCTIONS_MAX: usize = 12;

/// Longest path, characters.
const PATH_CHARS_MAX: usize = 512;

/// A run of at least this many letters `a` to `f` counts as a number even without a digit.
const HEX_LETTERS_MIN: usize = 8;

/// A place in the kernel. Unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KernelPlace {
    pub(crate) wchan: Option<String>,
    pub(crate) syscall: Option<i64>,
    pub(crate) stack: Option<String>,
    pub(crate) path: Option<String>,
}

/// How much of a place to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// Nothing of it.
    #[default]
    Nothing,
    /// Wait channel and number of the system call.
    Call,
    /// The stack and the file as well.
    File,
}

/// The two files that are read for every sleeping thread.
#[derive(Debug, Default)]
pub(crate) struct PlaceFiles {
    syscall: CachedFile,
    wchan: CachedFile,
}

impl PlaceFiles {
    /// How many of them are open.
    pub(crate) fn open(&self) -> usize {
        usize::from(self.syscall.is_open()) + usize::from(self.wchan.is_open())
    }
}

/// The place of thread `id`, read in the order in which the parts would go stale. With `keep` its
/// files stay open.
pub(crate) fn place(
    files: &mut Files,
    memory: &mut Memory,
    place_files: &mut PlaceFiles,
    id: Id,
    (depth, keep): (Depth, bool),
) -> KernelPlace {
    if depth == Depth::Nothing {
        return KernelPlace::default();
    }
    let call = place_files.syscall.read(files, id, "syscall", keep).and_then(Call::parse);
    let deep = depth == Depth::File;
    let path = if deep { call.and_then(|call| call_path(files, memory, id.pid, call)) } else { None };
    let stack = if deep { files.once(id, "stack").and_then(stack) } else { None };
    // `0` means "not sleeping", but the kernel also writes it to readers without permission.
    let wchan = place_files.wchan.read(files, id, "wchan", keep).map(str::trim);
    let wchan = wchan.filter(|name| !matches!(*name, "" | "0")).map(str::to_owned);
    KernelPlace { wchan, syscall: call.map(|call| call.number), stack, path }
}

/// The functions of `/proc/PID/task/TID/stack`, innermost first, joined by ` < `. Addresses,
/// offsets, modules and compiler suffixes (`.isra.0`) are dropped, so that the same place always
/// reads the same. None without a function.
pub fn stack(text: &str) -> Option<String> {
    let mut joined = String::new();
    // A last line without its end may contain half a name.
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let Some((_, frame)) = line.split_once("] ") else { continue };
        let name = frame.split(['+', '.', ' ', '\n']).next().unwrap_or_default();
        if name.is_empty() || name.starts_with("0x") {
            continue;
        }
        if !joined.is_empty() {
            joined.push_str(" < ");
        }
        joined.push_str(name);
        if joined.matches(" < ").count() + 1 == FUNCTIONS_MAX {
            break;
        }
    }
    (!joined.is_empty()).then_some(joined)
}

fn call_path(files: &Files, memory: &mut Memory, pid: u32, call: Call) -> Option<String> {
    let link = |name: &str| {
        let target = std::fs::read_link(files.proc.path(Tree::Proc, &format!("{pid}/{name}"))).ok()?;
        let target = String::from_utf8_lossy(target.as_os_str().as_bytes()).into_owned();
        // Sockets, pipes and other objects without a path are `kind:[…]`.
        target.starts_with('/').then(|| target.strip_suffix(" (deleted)").map(str::to_owned).unwrap_or(target))
    };
    let path = match call.file()? {
        FileReference::Descriptor(number) => link(&format!("fd/{number}"))?,
        FileReference::Path { address, folder } => {
            let bytes = memory.path_at(files.proc.path(Tree::Proc, &format!("{pid}/mem")), address)?;
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            if bytes.len() == PATH_BYTES_MAX {
                // The path was cut off: only its folder is certain.
                text.truncate(text.rfind('/')? + 1);
                text.push('?');
            }
            let base = || link(&folder.map_or("cwd".to_owned(), |number| format!("fd/{number}")));
            match text.strip_prefix("./").unwrap_or(&text) {
                // `fstat` by a descriptor, as newer C libraries call it.
                "" => base().filter(|_| folder.is_some())?,
                name if name.starts_with('/') => text,
                name => format!("{}/{name}", base()?.trim_end_matches('/')),
            }
        }
    };
    Some(one_of_many(&path))
}

/// `path` in printable characters, with `?` for the numbers in its last component, so that a
/// thousand temporary files count as one. Hexadecimal numbers count if they stand alone:
/// `#sql-temptable-1a2b-3f-0.MAI` becomes `#sql-temptable-?-?-?.MAI`.
pub fn one_of_many(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (&path[..=folder.len()], name));
    let mut masked = String::new();
    let words: Vec<&str> = split_words(name);
    let is_word = |word: &str| word.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_hex = |word: &str| is_word(word) && word.chars().all(|c| c.is_ascii_hexdigit());
    let is_number = |word: &str| is_hex(word) && word.contains(|c: char| c.is_ascii_digit());
    for (index, word) in words.iter().enumerate() {
        // Words and separators alternate.
        let beside = |by: usize| index.checked_sub(by).and_then(|at| words.get(at)).is_some_and(|word| is_number(word));
        let between = beside(2) && words.get(index + 2).is_some_and(|word| is_number(word));
        if is_number(word) || (is_hex(word) && (between || word.len() >= HEX_LETTERS_MIN)) {
            masked.push('?');
        } else {
            let mut last = ' ';
            for letter in word.chars() {
                let letter = if letter.is_ascii_digit() { '?' } else { letter };
                if !(letter == '?' && last == '?') {
                    masked.push(letter);
                }
                last = letter;
            }
        }
    }
    let printable = |c: char| {
        let plain = (!c.is_control()).then_some(c);
        plain.into_iter().chain(c.escape_default().filter(move |_| c.is_control()))
    };
    folder.chars().chain(masked.chars()).flat_map(printable).take(PATH_CHARS_MAX).collect()
}

/// Runs of letters and digits, and the separators between them.
fn split_words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut begin = 0;
    let mut inside = None;
    for (at, letter) in name.char_indices() {
        let now = Some(letter.is_ascii_alphanumeric());
        if inside.is_some() && inside != now {
            words.push(&name[begin..at]);
            begin = at;
        }
        inside = now;
    }
    words.push(&name[begin..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::Proc;

    #[test]
    fn a_stack_is_its_functions() {
        let text = "[<0>] do_unlinkat.isra.0+0xb1/0x2f0\n[<0>] ext4_lookup+0x1/0x2 [ext4]\n\
                    [<ffffffff81000000>] do_syscall_64+0x71/0x280\n[<ffffffffffffffff>] 0xffffffffffffffff\n";
        assert_eq!(stack(text).as_deref(), Some("do_unlinkat < ext4_lookup < do_syscall_64"));
        assert_eq!(stack("[<0>] do_unlinkat+0xb1/0x2f0\n[<0>] ext4_loo").as_deref(), Some("do_unlinkat"));
        for none in ["", "\n", "[<0>] 0x0\n", "permission denied\n"] {
            assert_eq!(stack(none), None, "{none}");
        }
        let deep: String = (0..40).map(|n| format!("[<0>] f{n}+0x1/0x2\n")).collect();
        assert_eq!(stack(&deep).unwrap().split(" < ").count(), FUNCTIONS_MAX);
    }

    #[test]
    fn numbers_of_the_last_component_are_one() {
        for (path, masked) in [
            ("/tmp/7/#sql_1f4a_0.MYI", "/tmp/7/#sql_?_?.MYI"),
            ("/tmp/#sql-temptable-1a2b-3f-0.MAI", "/tmp/#sql-temptable-?-?-?.MAI"),
            ("/tmp/#sql-temptable-1a2b-ab-0.MAI", "/tmp/#sql-temptable-?-?-?.MAI"),
            ("/tmp/MY0a1b2c", "/tmp/MY?a?b?c"),
            ("/data/shop/orders.ibd", "/data/shop/orders.ibd"),
            ("/data/16384/2619_vm", "/data/16384/?_vm"),
            ("/data/db-face.ibd", "/data/db-face.ibd"),
            ("/data/deadbeef.tmp", "/data/?.tmp"),
            ("/data/x86", "/data/x?"),
            ("/data/", "/data/"),
            ("/", "/"),
            ("/a\nb/c\x1b[1m7", "/a\\nb/c\\u{1b}[?m?"),
            ("/caf\u{e9}9", "/caf\u{e9}?"),
        ] {
            assert_eq!(one_of_many(path), masked);
        }
        assert_eq!(one_of_many(&"/x".repeat(2_000)).len(), PATH_CHARS_MAX);
    }

    /// A thread 9 of a process 8 that waits in `number` with `arguments`; at address 0x1000 of its memory stands `path`.
    fn thread(number: libc::c_long, arguments: &str, path: &[u8]) -> (tempfile::TempDir, KernelPlace) {
        let dir = tempfile::tempdir().unwrap();
        let process = dir.path().join("proc/8");
        let task = process.join("task/9");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::create_dir_all(process.join("fd")).unwrap();
        for (name, target) in
            [("cwd", "/var/lib/db"), ("fd/5", "/tmp/x1"), ("fd/6", "/tmp/#99 (deleted)"), ("fd/7", "socket:[12]")]
        {
            std::os::unix::fs::symlink(target, process.join(name)).unwrap();
        }
        let mut memory = vec![b'.'; 0x1000];
        memory.extend(path);
        std::fs::write(process.join("mem"), memory).unwrap();
        let line = format!("{number} {arguments} 0x0 0x0 0x0 0x0 0x7ffd0000f000 0x7f2000001000\n");
        std::fs::write(task.join("syscall"), line).unwrap();
        std::fs::write(task.join("wchan"), "do_unlinkat").unwrap();
        let mut files = Files::new(&Proc::at(dir.path()));
        let (mut memory, id) = (Memory::default(), Id { pid: 8, tid: 9 });
        // A machine that stalls takes longer than the caller waits for a path.
        let place = loop {
            let place = place(&mut files, &mut memory, &mut PlaceFiles::default(), id, (Depth::File, false));
            if !memory.take_missed() {
                break place;
            }
        };
        (dir, place)
    }

    #[test]
    fn a_path_is_made_absolute() {
        let path = |number, arguments: &str, text: &[u8]| thread(number, arguments, text).1.path;
        let at = |folder: &str, text: &[u8]| path(libc::SYS_unlinkat, &format!("{folder} 0x1000"), text);
        assert_eq!(at("0xffffff9c", b"./shop/t1.frm\0secret").as_deref(), Some("/var/lib/db/shop/t?.frm"));
        assert_eq!(at("0xffffff9c", b"/tmp/#sql_1f_0.MYI\0secret").as_deref(), Some("/tmp/#sql_?_?.MYI"));
        assert_eq!(at("0x5", b"a\xff\0").as_deref(), Some("/tmp/x1/a\u{fffd}"));
        assert_eq!(at("0x7", b"a\0"), None);
        assert_eq!(at("0x99", b"a\0"), None);
        assert_eq!(at("0x5", b"\0secret").as_deref(), Some("/tmp/x?"));
        assert_eq!(at("0xffffff9c", b"\0secret"), None);
        let long = [b"/tmp/deep/".to_vec(), vec![b'n'; 400]].concat();
        assert_eq!(at("0x5", &long).as_deref(), Some("/tmp/deep/?"));
        assert_eq!(path(libc::SYS_pwrite64, "0x6 0x1000", b"secret").as_deref(), Some("/tmp/#?"));
        assert_eq!(path(libc::SYS_pwrite64, "0x7 0x1000", b"secret"), None);
        assert_eq!(path(libc::SYS_futex, "0x1000 0x1000", b"secret"), None);
        assert_eq!(path(libc::SYS_truncate, "0x900000 0x0", b"secret"), None);
    }

    #[test]
    fn unreadable_parts_of_a_place_are_left_out() {
        let (_dir, found) = thread(libc::SYS_futex, "0x0 0x0", b"");
        let wchan = Some("do_unlinkat".to_owned());
        let syscall = Some(libc::SYS_futex);
        assert_eq!(found, KernelPlace { wchan, syscall, stack: None, path: None });
    }

    /// A thread of this very process that waits for a writer: by name, and by a folder's descriptor and a name in it.
    #[test]
    fn a_real_thread_in_open() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo 71");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for by_folder in [false, true] {
            let (tell, told) = std::sync::mpsc::channel();
            let (folder, name) = (std::fs::File::open(dir.path()).unwrap(), fifo.clone());
            let waiter = std::thread::spawn(move || {
                // SAFETY: gettid has no preconditions.
                tell.send(unsafe { libc::gettid() }).unwrap();
                if by_folder {
                    use std::os::fd::AsRawFd as _;
                    // SAFETY: the descriptor is open and the name ends with NUL.
                    let fifo = unsafe { libc::openat(folder.as_raw_fd(), c"fifo 71".as_ptr(), libc::O_RDONLY) };
                    assert!(fifo >= 0);
                } else {
                    drop(std::fs::File::open(name).unwrap());
                }
            });
            let id = Id { pid: std::process::id(), tid: told.recv().unwrap().try_into().unwrap() };
            let mut files = Files::new(&Proc::system());
            let mut memory = Memory::default();
            let mut found = KernelPlace::default();
            for _ in 0..6_000 {
                found = place(&mut files, &mut memory, &mut PlaceFiles::default(), id, (Depth::File, false));
                if found.path.is_some() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            drop(std::fs::OpenOptions::new().write(true).open(&fifo).unwrap());
            waiter.join().unwrap();
            assert_eq!(found.path, Some(format!("{}/fifo ?", dir.path().display())), "{found:?}");
            assert_eq!(found.syscall, Some(libc::SYS_openat));
        }
    }
}
