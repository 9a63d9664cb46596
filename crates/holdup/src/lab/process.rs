//! One process of a lab: started so that it cannot outlive holdup, watched without being reaped,
//! and stopped for certain. It does not know when a process is ready, nor its purpose.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::cannot;
use super::ending::Ending;
use crate::failure::Failure;

/// Interval between checks of a process.
pub(super) const POLL: Duration = Duration::from_millis(10);
/// How long to wait for the end of a killed process. Only a process that the kernel cannot wake
/// takes longer, and holdup cannot help that.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// A program to start, with all placeholders filled in.
pub(super) struct Program {
    /// Its name in messages.
    pub what: String,
    pub run: Vec<String>,
    pub env: Vec<(String, String)>,
    pub stdin: Option<PathBuf>,
}

/// A process that was started. Dropping it stops it.
pub(super) struct Running {
    pub what: String,
    child: Child,
    pub log: Log,
    signal: i32,
    within: Duration,
    reaped: bool,
}

impl Running {
    /// Starts `program` in `dir`, in its own process group, and appends its output to `log`. It
    /// gets SIGTERM when the calling thread ends.
    pub fn start(program: Program, dir: &Path, log: &Path, signal: i32, within: Duration) -> Result<Self, Failure> {
        let file = OpenOptions::new().create(true).append(true).open(log).map_err(cannot("write", log))?;
        let start = file.metadata().map_err(cannot("read", log))?.len();
        let errors = file.try_clone().map_err(cannot("write", log))?;
        let stdin = match &program.stdin {
            Some(path) => Stdio::from(File::open(path).map_err(cannot("read", path))?),
            None => Stdio::null(),
        };
        let (name, arguments) = program.run.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
        let mut command = Command::new(name);
        command.args(arguments).envs(program.env).current_dir(dir).stdin(stdin).stdout(file).stderr(errors);
        command.process_group(0);
        crate::descriptors::as_before(&mut command);
        let parent = std::process::id();
        // SAFETY: between fork and exec only async-signal-safe calls are made and nothing is
        // allocated: prctl and getppid need no memory, nor does an error made from a number.
        unsafe {
            command.pre_exec(move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // holdup may have ended before the kernel was asked to watch it.
                if libc::getppid().cast_unsigned() == parent {
                    Ok(())
                } else {
                    Err(io::Error::from_raw_os_error(libc::ESRCH))
                }
            });
        }
        let child = command.spawn().map_err(|error| {
            let what = &program.what;
            Failure::Unusable(format!("failed to start {what}: \"{name}\": {error}; is it installed, and on the path?"))
        })?;
        let log = Log { path: log.to_owned(), start };
        Ok(Self { what: program.what, child, log, signal, within, reaped: false })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn raw_pid(&self) -> libc::pid_t {
        self.child.id().cast_signed()
    }

    /// How it ended, if it has. It stays unreaped, so that its number and its group's are not
    /// reused until [`Running::stop`] has sent the last signal.
    pub fn ending(&self) -> Option<Ending> {
        if self.reaped {
            return Some(Ending::Gone);
        }
        // SAFETY: a siginfo of zeros is a valid value, and the call fills it in.
        let (status, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            (libc::waitid(libc::P_PID, self.child.id(), &raw mut info, flags), info)
        };
        if status != 0 {
            return Some(Ending::Gone);
        }
        // SAFETY: waitid fills in both fields for a child that has ended, and zeros are valid
        // numbers otherwise.
        let (pid, value) = unsafe { (info.si_pid(), info.si_status()) };
        match (pid, info.si_code) {
            (0, _) => None,
            (_, libc::CLD_EXITED) => Some(Ending::Exited(value)),
            _ => Some(Ending::Killed(value)),
        }
    }

    /// Waits until it has ended; none if it has not within `within`.
    ///
    /// # Errors
    /// If `stop` is set meanwhile.
    pub fn wait(
        &self,
        within: Duration,
        stop: &AtomicBool,
        mut meanwhile: impl FnMut(),
    ) -> Result<Option<Ending>, Failure> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(ending) = self.ending() {
                return Ok(Some(ending));
            }
            if stop.load(Ordering::SeqCst) {
                return Err(Failure::Interrupted);
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            meanwhile();
            std::thread::sleep(POLL);
        }
    }

    /// Ends it by its signal, and by force after its time; then kills the rest of its group; then
    /// reaps it.
    pub fn stop(&mut self) {
        if self.reaped {
            return;
        }
        let pid = self.raw_pid();
        if self.ending().is_none() {
            // SAFETY: kill touches no memory; the process is not reaped, so the number is still its
            // own.
            unsafe {
                libc::kill(pid, self.signal);
                // A process that a lab has frozen would not notice the signal.
                libc::kill(pid, libc::SIGCONT);
            }
            self.wait_quietly(self.within);
        }
        // SAFETY: as above; the group has the number of its unreaped leader.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
        self.wait_quietly(KILLED_WITHIN);
        // Fails only if another caller has reaped it.
        let _ = self.child.try_wait();
        self.reaped = true;
    }

    fn wait_quietly(&self, within: Duration) {
        let deadline = Instant::now() + within;
        while self.ending().is_none() && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The output of a process since its start; earlier variants' output comes before it in the same
/// file.
pub(super) struct Log {
    path: PathBuf,
    /// Where its own part begins.
    start: u64,
}

/// Number of lines at a log's end that a message quotes.
const TAIL_LINES: usize = 20;
const TAIL_BYTES: u64 = 64 * 1024;
const LINE_CHARACTERS: usize = 300;

impl Log {
    /// Output from `position` (relative to its own start) on, and the position after it.
    pub fn read_from(&self, position: u64) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.start + position))?;
            file.read_to_end(&mut bytes)
        });
        // An unreadable log counts as empty.
        let length = read.map_or(0, |length| length as u64);
        (bytes, position + length)
    }

    /// Its last lines. They may hold secrets.
    pub fn last_lines(&self) -> Vec<String> {
        let length = std::fs::metadata(&self.path).map_or(0, |m| m.len()).saturating_sub(self.start);
        let (bytes, _) = self.read_from(length.saturating_sub(TAIL_BYTES));
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].iter().map(|line| (*line).to_owned()).collect()
    }

    /// The end of the log for a message, redacted by `redact`.
    pub fn quote(&self, redact: impl Fn(&str) -> String) -> String {
        let lines = self.last_lines();
        if lines.is_empty() {
            return "; it wrote nothing".to_owned();
        }
        // Cut after redaction, because half a secret would not be recognized.
        lines.iter().fold("; the end of its log:".to_owned(), |quoted, line| {
            let line: String = redact(line).chars().take(LINE_CHARACTERS).collect();
            quoted + "\n    " + &line
        })
    }
}
