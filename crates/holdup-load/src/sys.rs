//! The few system calls that the loop needs and the standard library lacks: epoll with a timeout in
//! nanoseconds, sleeping until a given time, connecting without blocking, receiving with the
//! kernel's time stamp, and this thread's own CPU and run-queue time.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

/// Nanoseconds of the monotonic clock.
pub fn monotonic_ns() -> i64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since the Unix epoch by the wall clock, which may jump.
pub fn wall_ns() -> i64 {
    clock_ns(libc::CLOCK_REALTIME)
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

/// Nanoseconds that the calling thread was runnable but waited for a CPU since it started; none
/// where the kernel has no schedstat.
pub fn thread_run_queue_ns() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Sleeps until the monotonic clock reads `until`, or a signal comes.
pub fn sleep_until(until: i64) {
    let time = libc::timespec { tv_sec: until / 1_000_000_000, tv_nsec: until % 1_000_000_000 };
    // SAFETY: `time` lives through the call; no remaining time is asked for (an absolute sleep has none).
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut()) };
}

/// CPUs this thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a zeroed set is an empty one; the kernel fills in at most its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// Binds the calling thread to `cpu`.
///
/// # Errors
/// If this process may not run there.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    // SAFETY: a zeroed set is an empty one; CPU_SET checks the bounds of `cpu`.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks for timers without slack (the default lets the kernel fire 50 us late).
pub fn precise_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number of nanoseconds and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Readiness of many sockets, edge-triggered: each change is reported once, so the reader has to
/// read until a short read.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    has_pwait2: bool,
}

/// One socket that became ready.
#[derive(Clone, Copy)]
pub struct Ready {
    /// What it was registered with.
    pub token: u64,
    /// It can be read, was closed, or is in error.
    pub readable: bool,
    /// Something can be written, or connecting ended.
    pub writable: bool,
    /// The peer has closed: its data is followed by the end.
    pub closed: bool,
}

impl Epoll {
    /// A new set.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the returned descriptor is new and has no other owner.
        let fd = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 512], has_pwait2: true })
    }

    /// Adds a socket for all events. Closing it removes it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add(&self, socket: &OwnedFd, token: u64) -> io::Result<()> {
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let mut event = libc::epoll_event { events: interest as u32, u64: token };
        let (set, socket) = (self.fd.as_raw_fd(), socket.as_raw_fd());
        // SAFETY: both descriptors are open, `event` lives through the call.
        let result = unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, socket, &raw mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits at most `timeout`; returns how many sockets are ready, for [`Self::ready`].
    ///
    /// # Errors
    /// The kernel's. An interrupting signal is not an error: nothing is ready then.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let count = self.wait_raw(timeout);
        if count >= 0 {
            return Ok(count as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            Some(libc::ENOSYS) if self.has_pwait2 => {
                self.has_pwait2 = false;
                self.wait(timeout)
            }
            _ => Err(error),
        }
    }

    /// The `i`-th of the last [`Self::wait`].
    pub fn ready(&self, i: usize) -> Ready {
        let event = self.events[i];
        let (bits, token) = (event.events as i32, event.u64);
        let closed = bits & (libc::EPOLLHUP | libc::EPOLLERR | libc::EPOLLRDHUP) != 0;
        let (readable, writable) = (closed || bits & libc::EPOLLIN != 0, closed || bits & libc::EPOLLOUT != 0);
        Ready { token, readable, writable, closed }
    }

    fn wait_raw(&mut self, timeout: Duration) -> i64 {
        let (fd, events, room) = (self.fd.as_raw_fd(), self.events.as_mut_ptr(), self.events.len() as libc::c_int);
        if timeout.is_zero() || !self.has_pwait2 {
            let milliseconds = timeout.as_millis().min(i32::MAX as u128) as libc::c_int;
            // SAFETY: `events` has `room` entries, no signal mask is given.
            return unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait,
                    fd,
                    events,
                    room,
                    milliseconds,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            };
        }
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
    }
}

/// Writes `bytes` to the socket; returns how many it took.
///
/// # Errors
/// The kernel's, `WouldBlock` among them.
pub fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: `bytes` is valid for its length, no address is given; a closed peer is an error, not
    // a signal. This is the bare system call, because the C library's is a cancellation point,
    // which holdup's threads do not need and every call would pay for.
    let count = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            socket.as_raw_fd(),
            bytes.as_ptr(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
            none,
            0_usize,
        )
    };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
}

/// Reads what has arrived into `buffer`. Returns the number of bytes (0 if the peer has closed),
/// and when the kernel received the last of them by the wall clock, if known.
///
/// # Errors
/// The kernel's, `WouldBlock` among them.
pub fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, Option<i64>)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Room for one time stamp, aligned as a control message has to be.
    let mut control = [0_u64; 8];
    // SAFETY: a zeroed header is valid; its pointers are to `part` and `control`, which live through the call.
    let (count, header) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        // Eight words: glibc and musl have different types for it.
        header.msg_controllen = 64;
        (libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), &raw mut header, 0_usize), header)
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the macros walk the control messages that the kernel wrote within `control`; the data of a
    // SCM_TIMESTAMPNS message is a timespec.
    let stamp = unsafe {
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        (!message.is_null()
            && (*message).cmsg_level == libc::SOL_SOCKET
            && (*message).cmsg_type == libc::SCM_TIMESTAMPNS)
            .then(|| std::ptr::read_unaligned(libc::CMSG_DATA(message).cast::<libc::timespec>()))
    };
    Ok((count as usize, stamp.map(|t| t.tv_sec * 1_000_000_000 + t.tv_nsec)))
}

/// The error of connecting, once the socket is ready; none if it is connected.
pub fn connect_error(socket: &OwnedFd) -> Option<io::Error> {
    SockRef::from(socket).take_error().unwrap_or_else(Some)
}

/// Starts a connection to `address` without waiting for it.
///
/// # Errors
/// The kernel's: no descriptor left, no local port left, no route.
pub fn connect(address: &SocketAddr) -> io::Result<OwnedFd> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new_raw(Domain::for_address(*address), kind, None)?;
    // Older kernels may lack one of the two options.
    let _ = socket.set_tcp_nodelay(true);
    let on: libc::c_int = 1;
    let (length, option) = (size_of_val(&on) as libc::socklen_t, libc::SO_TIMESTAMPNS);
    // SAFETY: `on` lives through the call and its size is given.
    unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const on).cast(), length) };
    match socket.connect(&(*address).into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}
