//! The network of another process: a database in a container has interfaces that the machine around it doesn't see. A socket
//! belongs to the namespace it was opened in, so only opening needs to be there.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::thread;

/// What `work` gives in the network of process `pid`; none is ours. A thread of its own goes there, and ends there.
///
/// # Errors
/// Those of `work`; `NotFound` without such a process; `EPERM` without `CAP_SYS_ADMIN` there.
pub(crate) fn inside<T: Send>(pid: Option<u32>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let Some(pid) = pid else { return work() };
    let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
    let there = move || {
        // SAFETY: plain numbers; it moves the calling thread alone.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        work()
    };
    let ended = thread::scope(|scope| scope.spawn(there).join());
    ended.unwrap_or_else(|_| Err(io::Error::other("it panicked; please report this")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobodys_network_is_an_error_and_ours_is_here() {
        assert_eq!(inside(Some(u32::MAX), || Ok(1)).map_err(|e| e.kind()), Err(io::ErrorKind::NotFound));
        assert_eq!(inside(None, || Ok(2)).ok(), Some(2));
    }
}
