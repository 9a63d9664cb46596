//! What holdup may not read of other processes' threads, and how to permit it. It tries, because
//! users, capabilities, containers and security modules all have a say.

use std::fs::File;
use std::io::{ErrorKind, Read as _};

use crate::proc::{Proc, Tree};

/// One unreadable kind of file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAccess {
    /// Its name in the coverage.
    pub name: &'static str,
    /// What is missing without it.
    pub why: &'static str,
    /// How to enable it.
    pub enable: &'static str,
}

const CALLS: MissingAccess = MissingAccess {
    name: "wait channels",
    why: "cannot read where threads of other users wait in the kernel (wchan, system call, file)",
    enable: "give holdup CAP_SYS_PTRACE: setcap cap_sys_ptrace,cap_sys_admin+ep \"$(command -v holdup)\", or run it as root; \
             a container with --cap-add SYS_PTRACE --cap-add SYS_ADMIN",
};

const STACKS: MissingAccess = MissingAccess {
    name: "kernel stacks",
    why: "cannot read the kernel stacks of threads in uninterruptible sleep",
    enable: "give holdup CAP_SYS_ADMIN and CAP_SYS_PTRACE: setcap cap_sys_ptrace,cap_sys_admin+ep \"$(command -v holdup)\", or \
             run it as root; a container with --cap-add SYS_PTRACE --cap-add SYS_ADMIN",
};

const NO_STACKS: MissingAccess = MissingAccess {
    name: "kernel stacks",
    why: "this kernel does not provide the stacks of threads",
    enable: "use a kernel with CONFIG_STACKTRACE",
};

/// What cannot be read of most threads whose folders (`71`, `71/task/72`) are given. A single
/// thread may have protected itself; most of them are unreadable only if holdup lacks the right.
pub fn lacking(proc: &Proc, folders: &[String]) -> Vec<MissingAccess> {
    let errors = |name: &str| -> Vec<ErrorKind> {
        folders.iter().filter_map(|folder| unreadable(proc, &format!("{folder}/{name}"))).collect()
    };
    let mut lacking = Vec::new();
    if errors("syscall").len() * 2 > folders.len() {
        lacking.push(CALLS);
    }
    let stacks = errors("stack");
    if stacks.len() * 2 > folders.len() {
        let none = stacks.iter().all(|kind| *kind == ErrorKind::NotFound);
        lacking.push(if none { NO_STACKS } else { STACKS });
    }
    lacking
}

/// Why a file cannot be read; none if it can, even if it is empty: a running thread has no stack.
fn unreadable(proc: &Proc, name: &str) -> Option<ErrorKind> {
    let mut bytes = [0; 64];
    let read = File::open(proc.path(Tree::Proc, name)).and_then(|mut file| file.read(&mut bytes));
    read.err().map(|error| error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_readable_in_most_processes_is_not_reported_missing() {
        let dir = tempfile::tempdir().unwrap();
        let folders: Vec<String> = (1..=4).map(|pid| pid.to_string()).collect();
        for folder in &folders {
            let path = dir.path().join("proc").join(folder);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("syscall"), "running\n").unwrap();
            std::fs::write(path.join("stack"), "").unwrap();
        }
        let proc = Proc::at(dir.path());
        let names = || -> Vec<&str> { lacking(&proc, &folders).into_iter().map(|it| it.name).collect() };
        let file = |pid: &str, name: &str| dir.path().join("proc").join(pid).join(name);
        assert!(names().is_empty());
        std::fs::remove_file(file("1", "syscall")).unwrap();
        assert!(names().is_empty());
        for pid in ["2", "3"] {
            std::fs::remove_file(file(pid, "syscall")).unwrap();
        }
        assert_eq!(names(), ["wait channels"]);
        for pid in ["1", "2", "3"] {
            std::fs::remove_file(file(pid, "stack")).unwrap();
        }
        assert_eq!(lacking(&proc, &folders)[1], NO_STACKS);
        for pid in ["1", "2", "3"] {
            // Not readable as a file, whoever asks.
            std::fs::create_dir(file(pid, "stack")).unwrap();
        }
        assert_eq!(lacking(&proc, &folders)[1], STACKS);
        assert!(lacking(&proc, &[]).is_empty());
    }
}
