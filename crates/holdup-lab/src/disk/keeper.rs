//! Two processes for one disk, so that either can take it down when the other is killed. The keeper
//! is the process that was started; the server below it does the work. They share a pipe, whose end
//! tells the server to stop.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::disk::limits::Limits;
use crate::disk::stack::{Disk, clear};
use crate::disk::{DiskError, DiskOptions};

/// How often the keeper looks at signals, the other process and the file of limits.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the server has to take the disk down: longer than it waits for the disk's users.
const DOWN_WITHIN: Duration = Duration::from_secs(25);
/// The server's exit status when it lacks something that the user must supply.
pub const STATUS_NEEDS: i32 = 3;

/// Starts the server and waits until it ends, or until a signal asks for its end. `program` starts
/// it, with all its arguments but the one that makes it the server.
///
/// # Errors
///
/// If it cannot be started or fails; it has printed why itself.
pub fn keep(program: &mut Command, dir: &Path) -> Result<(), DiskError> {
    let stop = stop_flag()?;
    // In a separate process group: a signal to this process's group must leave it time to clean up.
    let mut server = program
        .arg("--server")
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| DiskError::System { what: "start the disk's server".to_owned(), source })?;
    let mut pipe = server.stdin.take();
    let mut deadline = None;
    loop {
        let ended = server
            .try_wait()
            .map_err(|source| DiskError::System { what: "wait for the disk's server".to_owned(), source })?;
        if let Some(status) = ended {
            return match status.code() {
                Some(0) => Ok(()),
                Some(STATUS_NEEDS) => Err(DiskError::Said { needs: true }),
                Some(_) => Err(DiskError::Said { needs: false }),
                None => {
                    clear(dir);
                    Err(DiskError::Killed)
                }
            };
        }
        if stop.load(Ordering::SeqCst) && pipe.take().is_some() {
            deadline = Some(Instant::now() + DOWN_WITHIN);
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            // It hangs, perhaps in the kernel, but its mounts can be removed from under it.
            let _ = server.kill();
            deadline = Some(Instant::now() + DOWN_WITHIN);
            clear(dir);
        }
        std::thread::sleep(LOOK_EVERY.min(Duration::from_millis(20)));
    }
}

/// Makes the disk, prints `ready MOUNTPOINT DEVICE` on stdout, and serves until its keeper is gone
/// or a signal comes.
///
/// # Errors
///
/// If the disk cannot be made or taken down.
pub fn serve(options: &DiskOptions, dir: &Path) -> Result<(), DiskError> {
    let stop = stop_flag()?;
    let disk = Disk::make(options, dir)?;
    let served = say(&format!("ready {} {}", disk.mountpoint.display(), disk.device().display()));
    let mut file = options.limits_file.as_deref().map(|path| LimitsFile { path, text: None });
    while served.is_ok() && !stop.load(Ordering::SeqCst) && keeper_lives() {
        if let Some(changed) = file.as_mut().and_then(|file| file.changed(options.limits())) {
            match changed {
                Ok(limits) => disk.control().limit(limits),
                // The old limits stay: another program may be in the middle of writing the file.
                Err(why) => eprintln!("disk: {why}; the old limits stay"),
            }
        }
    }
    let (requests, bytes) = disk.control().totals();
    disk.remove()?;
    served?;
    // The reader of stdout may be gone by now, and does not need to know.
    let _ = say(&format!("ended requests_total={requests} bytes_total={bytes}"));
    Ok(())
}

/// A file of limits, as it was at the last look.
struct LimitsFile<'a> {
    path: &'a Path,
    text: Option<String>,
}

impl LimitsFile<'_> {
    /// Its limits if it has changed; the options' own when it is gone.
    fn changed(&mut self, otherwise: Limits) -> Option<Result<Limits, String>> {
        let text = std::fs::read_to_string(self.path).ok();
        if text == self.text {
            return None;
        }
        self.text = text;
        let text = self.text.as_deref().unwrap_or_default();
        Some(Limits::parse(text, otherwise).map_err(|(line, why)| format!("{}:{line}: {why}", self.path.display())))
    }
}

/// Whether the other end of the pipe is still open, after waiting for a moment.
fn keeper_lives() -> bool {
    let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    let wait = i32::try_from(LOOK_EVERY.as_millis()).unwrap_or(100);
    // SAFETY: `poll` is one valid entry for the call to read and fill in.
    let ready = unsafe { libc::poll(&raw mut poll, 1, wait) };
    // No process ever writes to the pipe: if it is readable, it has ended. The caller looks at a
    // signal (-1).
    ready <= 0
}

fn stop_flag() -> Result<Arc<AtomicBool>, DiskError> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .map_err(|source| DiskError::System { what: "handle signals".to_owned(), source })?;
    }
    Ok(flag)
}

fn say(text: &str) -> Result<(), DiskError> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{text}")
        .and_then(|()| stdout.flush())
        .map_err(|source| DiskError::System { what: "write to stdout".to_owned(), source })
}
