//! The network namespace of another process: a database in a container has interfaces that the host
//! does not see. A socket belongs to the namespace in which it was opened, so only opening must
//! happen there.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::thread;

/// The result of `work` in the network namespace of process `pid`; none means our own. It runs on a
/// separate thread, which ends afterwards.
///
/// # Errors
/// Those of `work`; `NotFound` if the process does not exist; `EPERM` without `CAP_SYS_ADMIN`
/// there.
pub(crate) fn inside<T: Send>(pid: Option<u32>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let Some(pid) = pid else { return work() };
    let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
    let there = move || {
        // SAFETY: plain numbers; only the calling thread moves.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        work()
    };
    let ended = thread::scope(|scope| scope.spawn(there).join());
    ended.unwrap_or_else(|_| {
        Err(io::Error::other("the thread in the other network namespace panicked; please report this"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_process_has_no_network_to_enter() {
        assert_eq!(inside(Some(u32::MAX), || Ok(1)).map_err(|e| e.kind()), Err(io::ErrorKind::NotFound));
        assert_eq!(inside(None, || Ok(2)).ok(), Some(2));
    }
}
