//! Open files of this process: as many as the account may have, and shared out. The load's connections come first, then what holdup
//! itself needs; sources keep files open only of what is left.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use holdup_collect::proc;

use crate::failure::Failure;

/// Descriptors that are needed beside those of the load's connections: files of the recording, connections of sources and outputs.
const OTHER_DESCRIPTORS: u64 = 200;

/// Sources keep at most this part (one in so many) of all open, whatever is left.
const KEPT_SHARE: u64 = 4;

/// Raises this process's limit of open files as far as it may go, and shares it out.
///
/// # Errors
/// If `connections` don't fit.
pub fn allow(connections: u32) -> Result<(), Failure> {
    let needed = if connections == 0 { 0 } else { u64::from(connections) + OTHER_DESCRIPTORS };
    let most = raise();
    if most < needed {
        return Err(Failure::Unusable(format!(
            "{connections} connections need {needed} open files, and this account may have {most}; run: ulimit -n {needed} (as root), or use fewer connections"
        )));
    }
    proc::keep_open(most.saturating_sub(needed.max(OTHER_DESCRIPTORS)).min(most / KEPT_SHARE));
    Ok(())
}

/// The limit before it was raised.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Lets `command` have the limit that holdup was started with: programs size tables by it.
pub fn as_before(command: &mut Command) {
    let Some(before) = BEFORE.get().copied() else { return };
    // SAFETY: between fork and exec setrlimit alone is called, which is async-signal-safe; an error made of a number holds no memory.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const before) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// Raises the limit to the hard one. What it is then.
fn raise() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit fills and setrlimit reads `limit`, which lives through the calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 0;
        }
        BEFORE.get_or_init(|| limit);
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 { limit.rlim_max } else { limit.rlim_cur }
    }
}
