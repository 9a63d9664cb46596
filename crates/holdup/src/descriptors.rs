//! Raises this process's limit of open files and divides it. The load's connections come first,
//! then holdup's own needs; sources may keep open files only from the rest.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use holdup_collect::proc;

use crate::failure::Failure;

/// Descriptors needed besides the load's connections: files of the recording, connections of
/// sources and outputs.
const OTHER_DESCRIPTORS: u64 = 200;

/// Sources may keep at most one in this many descriptors open.
const KEPT_SHARE: u64 = 4;

/// Raises this process's limit of open files as far as allowed, and divides it.
///
/// # Errors
/// If `connections` do not fit.
pub fn allow(connections: u32) -> Result<(), Failure> {
    let needed = if connections == 0 { 0 } else { u64::from(connections) + OTHER_DESCRIPTORS };
    let most = raise();
    if most < needed {
        return Err(Failure::Unusable(format!(
            "{connections} connections need {needed} open files, but this account may open only {most}; run: ulimit -n {needed} (as root), or use fewer connections"
        )));
    }
    proc::keep_open(most.saturating_sub(needed.max(OTHER_DESCRIPTORS)).min(most / KEPT_SHARE));
    Ok(())
}

/// The limit before it was raised.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Gives `command` the limit that holdup was started with, because programs size tables by it.
pub fn as_before(command: &mut Command) {
    let Some(before) = BEFORE.get().copied() else { return };
    // SAFETY: between fork and exec only setrlimit is called, which is async-signal-safe; an error
    // made from a number allocates nothing.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const before) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// Raises the soft limit to the hard one, and returns it.
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
