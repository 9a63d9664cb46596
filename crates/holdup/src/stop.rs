//! Ends a command early: at Ctrl-C, SIGTERM, SIGHUP, or when a terminal on stdout is closed. Each
//! sets one flag, and the recording is finished as usual. While a recording is written, only the
//! third Ctrl-C kills the process, and only two seconds after the first; otherwise the second does.

use std::io::IsTerminal as _;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::ending::{self, FINISH_WITHIN, is_recording};
use crate::failure::Failure;
use crate::repeat::quota;
use crate::terminal::outlet;

/// Exit code of an interrupted command.
const INTERRUPTED: i32 = 130;

/// The flag that is set once the command should end. Such a command waits for no terminal.
///
/// # Errors
/// If signals cannot be watched.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    outlet::begin();
    let stop = Arc::new(AtomicBool::new(false));
    // Under nohup SIGHUP is ignored, and stays so.
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
        ending::stop(stop);
        // A closing terminal sends several of these, and no user waits for the process.
        if signal == SIGHUP {
            continue;
        }
        let first = *first.get_or_insert_with(Instant::now);
        asked += 1;
        if (asked > 1 && !is_recording()) || (asked > 2 && first.elapsed() >= FINISH_WITHIN) {
            quota::set_back_all();
            std::process::exit(INTERRUPTED);
        }
    }
}

/// Waits until the terminal on stdout is closed. A pipe whose reader leaves ends nothing, because
/// it is one output of several.
fn watch_stdout(stop: &AtomicBool) {
    if !std::io::stdout().is_terminal() {
        return;
    }
    let mut stdout = libc::pollfd { fd: std::io::stdout().as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: `stdout` is one pollfd that lives through the call.
    while unsafe { libc::poll(&raw mut stdout, 1, -1) } <= 0 {
        std::thread::sleep(Duration::from_millis(100));
    }
    ending::stop(stop);
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: without a new action sigaction only fills `now`, which is valid as zeros and lives
    // through the call.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
