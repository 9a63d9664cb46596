//! What ends a command early: Ctrl-C, SIGTERM, SIGHUP, and a terminal on stdout that was closed. Each sets one flag, and a
//! recording is finished as at its end. More Ctrl-C do not cut that short: only where nothing is recorded does the second end the
//! process at once, and where it is, the third, from two seconds after the first.

use std::io::IsTerminal as _;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::repeat::quota;

/// How long a recording may take to be finished before it can be cut off.
const FINISH_WITHIN: Duration = Duration::from_secs(2);

/// Exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// Recordings that are being written.
static RECORDINGS: AtomicUsize = AtomicUsize::new(0);

/// While there is one, a recording is being written.
pub struct Recording(());

impl Recording {
    pub fn begin() -> Self {
        RECORDINGS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDINGS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Set once the command is to end.
///
/// # Errors
/// If signals can't be waited for.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    // Under nohup it is ignored, and stays so.
    let heeds_hangup = !is_ignored(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::unusable)?;
    if heeds_hangup {
        signals.add_signal(SIGHUP).map_err(Failure::unusable)?;
    }
    let set = Arc::clone(&stop);
    let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
    named("signals").spawn(move || watch_signals(&mut signals, &set)).map_err(Failure::unusable)?;
    if heeds_hangup {
        let set = Arc::clone(&stop);
        named("hangup").spawn(move || watch_stdout(&set)).map_err(Failure::unusable)?;
    }
    Ok(stop)
}

fn watch_signals(signals: &mut Signals, stop: &AtomicBool) {
    let (mut asked, mut first) = (0_u32, None);
    for signal in signals.forever() {
        stop.store(true, Ordering::Relaxed);
        // A terminal that closes sends several of these, and nobody waits behind it.
        if signal == SIGHUP {
            continue;
        }
        let first = *first.get_or_insert_with(Instant::now);
        asked += 1;
        let is_recording = RECORDINGS.load(Ordering::SeqCst) > 0;
        if (asked > 1 && !is_recording) || (asked > 2 && first.elapsed() >= FINISH_WITHIN) {
            quota::set_back_all();
            std::process::exit(INTERRUPTED);
        }
    }
}

/// Waits until the terminal on stdout is closed. A pipe whose reader leaves ends nothing: what goes there is one output of several.
fn watch_stdout(stop: &AtomicBool) {
    if !std::io::stdout().is_terminal() {
        return;
    }
    let mut stdout = libc::pollfd { fd: std::io::stdout().as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: `stdout` is one pollfd that lives through the call.
    while unsafe { libc::poll(&raw mut stdout, 1, -1) } <= 0 {
        std::thread::sleep(Duration::from_millis(100));
    }
    stop.store(true, Ordering::Relaxed);
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action sigaction only fills `now`, which is valid as zeros and lives through the call.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
