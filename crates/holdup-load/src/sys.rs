//! The few kernel calls the loop needs and the standard library does not have: epoll with a timeout in
//! nanoseconds, connecting without blocking, and this thread's own CPU and run-queue time.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

/// Nanoseconds of the monotonic clock.
pub fn monotonic_ns() -> i64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CPU time of the calling thread.
pub fn thread_cpu_ns() -> i64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill in; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Nanoseconds the calling thread was runnable but waited for a CPU since it started; none where the
/// kernel has no schedstat.
pub fn thread_run_queue_ns() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Asks for timers without slack (the default lets the kernel fire 50 us late).
pub fn precise_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number of nanoseconds and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Readiness of many sockets.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    has_pwait2: bool,
}

/// One socket that is ready.
#[derive(Clone, Copy)]
pub struct Ready {
    /// What it was registered with.
    pub token: u64,
    /// Something can be read, or it is closed or in error.
    pub readable: bool,
    /// Something can be written, or connecting ended.
    pub writable: bool,
}

impl Epoll {
    /// A new set.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the returned descriptor is new and owned by nobody else.
        let fd = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 1_024], has_pwait2: true })
    }

    /// Adds a socket; `writable` too until it is connected and has nothing to write.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add(&self, stream: &TcpStream, token: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, stream, token, writable)
    }

    /// Changes whether `writable` is of interest.
    ///
    /// # Errors
    /// The kernel's.
    pub fn change(&self, stream: &TcpStream, token: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, stream, token, writable)
    }

    fn control(&self, operation: libc::c_int, stream: &TcpStream, token: u64, writable: bool) -> io::Result<()> {
        let interest = libc::EPOLLIN | libc::EPOLLRDHUP | if writable { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: interest as u32, u64: token };
        // SAFETY: both descriptors are open, `event` lives through the call.
        let result = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, stream.as_raw_fd(), &raw mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits at most `timeout` and puts what is ready into `ready`.
    ///
    /// # Errors
    /// The kernel's, but for an interrupting signal, which is nothing ready.
    pub fn wait(&mut self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        let count = self.wait_raw(timeout);
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINTR) => Ok(()),
                Some(libc::ENOSYS) if self.has_pwait2 => {
                    self.has_pwait2 = false;
                    self.wait(timeout, ready)
                }
                _ => Err(error),
            };
        }
        for event in &self.events[..count as usize] {
            let (bits, token) = (event.events as i32, event.u64);
            let closed = bits & (libc::EPOLLHUP | libc::EPOLLERR | libc::EPOLLRDHUP) != 0;
            ready.push(Ready {
                token,
                readable: closed || bits & libc::EPOLLIN != 0,
                writable: closed || bits & libc::EPOLLOUT != 0,
            });
        }
        Ok(())
    }

    fn wait_raw(&mut self, timeout: Duration) -> i64 {
        let (fd, events, room) = (self.fd.as_raw_fd(), self.events.as_mut_ptr(), self.events.len() as libc::c_int);
        if self.has_pwait2 {
            let time = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
            // SAFETY: `events` has `room` entries, `time` lives through the call, no signal mask is given.
            // epoll_pwait2 (Linux 5.11) takes nanoseconds; epoll_wait only whole milliseconds.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    fd,
                    events,
                    room,
                    &raw const time,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            }
        } else {
            let milliseconds = timeout.as_millis().min(i32::MAX as u128) as libc::c_int;
            // SAFETY: `events` has `room` entries.
            i64::from(unsafe { libc::epoll_wait(fd, events, room, milliseconds) })
        }
    }
}

/// Begins a connection to `address` without waiting for it.
///
/// # Errors
/// The kernel's: no descriptor left, no local port left, no route.
pub fn connect(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: the descriptor is new; the address structures are whole and their lengths are right.
    unsafe {
        let fd = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let stream = TcpStream::from_raw_fd(fd);
        stream.set_nodelay(true)?;
        let result = match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                libc::connect(fd, (&raw const raw).cast(), size_of_val(&raw) as libc::socklen_t)
            }
            SocketAddr::V6(v6) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                libc::connect(fd, (&raw const raw).cast(), size_of_val(&raw) as libc::socklen_t)
            }
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINPROGRESS) {
                return Err(error);
            }
        }
        Ok(stream)
    }
}
