//! One process of a test: its output in a file, what waits for it, and its end, which comes with the value.

use std::fs::File;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::PATIENCE;

/// What takes longer than this over its end is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// The account of nobody: some servers refuse to be run by root.
const NOBODY: u32 = 65_534;

/// A process that ends with this value.
pub struct Process {
    child: Child,
    log: PathBuf,
    signal: i32,
    is_group: bool,
}

impl Process {
    /// Starts it; `log` gets its output, and `signal` ends it.
    pub fn start(command: &mut Command, log: &Path, signal: i32) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("a log");
        let errors = file.try_clone().expect("a log");
        let child = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn().expect("it starts");
        Self { child, log: log.to_owned(), signal, is_group: false }
    }

    /// The same as a process group of its own, which is killed whole.
    pub fn start_group(command: &mut Command, log: &Path) -> Self {
        let mut process = Self::start(command.process_group(0), log, libc::SIGKILL);
        process.is_group = true;
        process
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits until `is_so`.
    pub fn wait(&mut self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(!self.has_ended(), "it has ended before {what}: {}", self.log());
            assert!(Instant::now() < deadline, "no {what}: {}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until something listens on a port of loopback.
    pub fn wait_for_port(&mut self, port: u16) {
        self.wait("listener", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// Sends it and its children a signal: itself first, because it may start others in place of those that end.
    pub fn signal_all(&self, signal: i32) {
        let own = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        self.signal(signal);
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            // SAFETY: plain numbers; a child that has just ended is not there any more, which is as well.
            let _ = unsafe { libc::kill(child, signal) };
        }
    }

    /// Waits for its end.
    pub fn reap(&mut self) {
        let _ = self.child.wait();
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        self.reap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_group {
            // SAFETY: plain numbers; the group is that of our own child.
            unsafe { libc::kill(-self.child.id().cast_signed(), libc::SIGKILL) };
        }
        if !self.has_ended() {
            self.signal(self.signal);
        }
        let deadline = Instant::now() + ENDS_WITHIN;
        while !self.has_ended() && Instant::now() < deadline {
            sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}

/// Sends a signal to a process that the test started.
pub fn send(pid: u32, signal: i32) {
    // SAFETY: kill(2) takes two numbers and touches no memory of ours.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0, "signal {signal} to {pid}");
}

pub(crate) fn is_root() -> bool {
    // SAFETY: it reads the process's own user id and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A program as somebody who is not root.
pub fn command_of_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]).arg(program);
    command
}

/// Lets [`command_of_nobody`] have a file or a folder.
pub fn give_to_nobody(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
    }
}

/// A folder for what [`command_of_nobody`] starts.
pub fn folder_of_nobody() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    give_to_nobody(dir.path());
    dir
}
