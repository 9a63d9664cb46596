//! Programs that are started, watched and ended. Each is in a process group of its own, dies with us whatever happens,
//! and is ended by its id. Ctrl-C ends the wait, and with it the program.

use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::system::CpuTime;

/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a program has to end when it is told to.
const END_WITHIN: Duration = Duration::from_secs(5);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Turns Ctrl-C and SIGTERM into an error of the wait that is under way.
pub fn catch_interrupts() {
    extern "C" fn note(_: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: the handler only stores to an atomic. Without SA_RESTART system calls return, so that waits notice.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        for signal in [libc::SIGINT, libc::SIGTERM] {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether we were told to end.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// How a program ended and what it took.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Exit code; None if a signal ended it.
    pub code: Option<i32>,
    /// From start to end.
    pub wall_seconds: f64,
    /// CPU time of it and of the children it waited for.
    pub cpu: CpuTime,
    /// Its memory over time: seconds since the start, resident bytes.
    pub resident: Vec<(f64, u64)>,
    /// Most resident memory (the kernel's own high-water mark as last seen).
    pub resident_most_bytes: u64,
}

/// A program that runs. Dropped, it is ended.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    begun: Instant,
    reaped: bool,
}

impl Running {
    /// Starts `words` in `dir` with its output in these files.
    pub fn start(words: &[String], dir: &Path, stdout: &Path, stderr: &Path) -> Result<Self> {
        let Some((program, arguments)) = words.split_first() else { bail!("no program to start") };
        let file = |path: &Path| File::create(path).with_context(|| format!("failed to write {}", path.display()));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(dir).stdin(Stdio::null()).stdout(file(stdout)?).stderr(file(stderr)?);
        command.process_group(0);
        // SAFETY: prctl is safe to call between fork and exec. The signal comes when the starting thread ends: there
        // is only one. SIGTERM, because a killed nginx would leave its worker behind.
        unsafe {
            command.pre_exec(|| {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong) != 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let begun = Instant::now();
        let child = command.spawn().with_context(|| format!("failed to start {program}"))?;
        Ok(Self { pid: child.id() as i32, begun, reaped: false })
    }

    /// Waits for its end, at most `within`.
    pub fn wait(mut self, within: Duration) -> Result<Ended> {
        let mut ended = Ended::default();
        loop {
            if self.ended_within(LOOK_EVERY)? {
                let (code, cpu) = self.reap()?;
                ended.code = code;
                ended.cpu = cpu;
                return Ok(Ended { wall_seconds: self.begun.elapsed().as_secs_f64(), ..ended });
            }
            if interrupted() {
                bail!("interrupted");
            }
            let elapsed = self.begun.elapsed();
            if elapsed > within {
                bail!("it still ran after {} s and was ended", within.as_secs());
            }
            if let Some((resident, most)) = memory(self.pid) {
                ended.resident.push((elapsed.as_secs_f64(), resident));
                ended.resident_most_bytes = ended.resident_most_bytes.max(most);
            }
        }
    }

    /// Tells it to end (SIGTERM), and waits for that.
    pub fn stop(mut self) -> Result<CpuTime> {
        self.signal(libc::SIGTERM);
        if !self.ended_within(END_WITHIN)? {
            bail!("process {} didn't end within {} s of SIGTERM", self.pid, END_WITHIN.as_secs());
        }
        Ok(self.reap()?.1)
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        !self.ended_within(Duration::ZERO).unwrap_or(true)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: it is our child and not waited for yet, so the number is still its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    fn ended_within(&self, within: Duration) -> Result<bool> {
        // SAFETY: plain system calls; the descriptor is closed in each case.
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, self.pid, 0) as i32;
            if fd < 0 {
                return Err(io::Error::last_os_error()).context("failed to watch a process");
            }
            let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let ready = libc::poll(&raw mut watched, 1, within.as_millis() as i32);
            libc::close(fd);
            Ok(ready > 0)
        }
    }

    fn reap(&mut self) -> Result<(Option<i32>, CpuTime)> {
        let mut status = 0;
        // SAFETY: both places are valid for writing, and all-zero is a valid rusage.
        let usage = unsafe {
            let mut usage: libc::rusage = mem::zeroed();
            while libc::wait4(self.pid, &raw mut status, 0, &raw mut usage) < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error).context("failed to wait for a process");
                }
            }
            usage
        };
        self.reaped = true;
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        Ok((code, CpuTime::of(&usage)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.signal(libc::SIGTERM);
        if !self.ended_within(END_WITHIN).unwrap_or(false) {
            // SAFETY: the group was made for it, and it is not waited for yet.
            unsafe { libc::kill(-self.pid, libc::SIGKILL) };
        }
        let _ = self.reap();
    }
}

/// Resident bytes of a process now and at most.
fn memory(pid: i32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some((bytes("VmRSS:")?, bytes("VmHWM:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(words: &[&str], dir: &Path) -> Running {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Running::start(&words, dir, &dir.join("out"), &dir.join("err")).unwrap()
    }

    #[test]
    fn output_code_and_cpu_time() {
        let dir = tempfile::tempdir().unwrap();
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; exit 3";
        let ended = start(&["sh", "-c", script], dir.path()).wait(Duration::from_secs(60)).unwrap();
        assert_eq!(ended.code, Some(3));
        assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), "done\n");
        assert!(ended.cpu.user_seconds > 0.0 && ended.cpu.user_seconds <= ended.wall_seconds * 1.1, "{ended:?}");
    }

    #[test]
    #[holdup_witness::judged]
    fn what_runs_too_long_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let sleeper = start(&["sleep", "60"], dir.path());
        let pid = sleeper.pid;
        assert!(sleeper.is_running());
        assert!(sleeper.wait(Duration::from_millis(150)).is_err());
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
