//! The few system calls that the responder and the runner make, wrapped so that they can be used without `unsafe`.
//! Times are nanoseconds of the monotonic clock. Linux only.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use anyhow::{Context as _, Result};

/// CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    /// In user mode.
    pub user_seconds: f64,
    /// In the kernel.
    pub system_seconds: f64,
}

impl CpuTime {
    /// As the kernel reports it.
    pub fn of(usage: &libc::rusage) -> Self {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self { user_seconds: seconds(usage.ru_utime), system_seconds: seconds(usage.ru_stime) }
    }
}

/// CPU time of this process so far.
pub fn own_cpu_time() -> CpuTime {
    // SAFETY: all-zero is a valid rusage, and the call writes nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    CpuTime::of(&usage)
}

/// Now.
pub fn monotonic_ns() -> u64 {
    // SAFETY: the call writes one timespec.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until then, signals or not.
pub fn sleep_until(at_ns: u64) {
    let time = timespec(at_ns);
    // SAFETY: the timespec lives through the call; the rest time isn't asked for.
    unsafe {
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut())
            == libc::EINTR
        {}
    }
}

/// Lets this thread's sleeps end when they should, not up to 50 us later.
pub fn exact_timers() {
    // SAFETY: sets a number of this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Binds this thread to a core.
pub fn pin_thread(cpu: usize) -> Result<()> {
    // SAFETY: an all-zero set is valid; CPU_SET panics for numbers past its end, which is checked first.
    let done = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        if cpu >= 8 * mem::size_of::<libc::cpu_set_t>() {
            Err(io::Error::from(io::ErrorKind::InvalidInput))
        } else {
            libc::CPU_SET(cpu, &mut set);
            check(libc::sched_setaffinity(0, mem::size_of::<libc::cpu_set_t>(), &raw const set))
        }
    };
    done.with_context(|| format!("failed to bind to core {cpu}"))?;
    Ok(())
}

/// Lets this process and those it starts open as many files as it may, and returns how many that is.
pub fn raise_open_files() -> u64 {
    // SAFETY: both calls get a valid rlimit.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 0;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 { limit.rlim_max } else { limit.rlim_cur }
    }
}

/// Keeps SIGTERM and SIGINT from ending this thread and those it starts.
pub fn block_end_signals() -> Result<()> {
    // SAFETY: the set is filled by the call before it is used.
    let result = unsafe {
        let set = end_signals();
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
    };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(result)).context("failed to block signals");
    }
    Ok(())
}

/// Waits for one of the signals that [`block_end_signals`] holds back.
pub fn wait_for_end() -> Result<()> {
    let mut signal = 0;
    // SAFETY: the set is valid, and one int is written.
    let result = unsafe {
        let set = end_signals();
        libc::sigwait(&raw const set, &raw mut signal)
    };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(result)).context("failed to wait for a signal");
    }
    Ok(())
}

fn end_signals() -> libc::sigset_t {
    // SAFETY: sigemptyset makes the set valid.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        set
    }
}

/// Something that many threads can wait for with [`Poll`]; once raised it stays so.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// Not raised.
    pub fn new() -> Result<Self> {
        // SAFETY: a new descriptor is owned at once.
        let fd = unsafe { check(libc::eventfd(0, libc::EFD_CLOEXEC)).map(|fd| OwnedFd::from_raw_fd(fd)) };
        Ok(Self(fd.context("failed to make an event")?))
    }

    /// A descriptor that is readable once it is raised.
    pub fn watch(&self) -> Result<OwnedFd> {
        self.0.try_clone().context("failed to watch an event")
    }

    /// Raises it.
    pub fn raise(&self) -> Result<()> {
        let one: u64 = 1;
        // SAFETY: 8 bytes are read from a u64.
        let written = unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
        if written != 8 {
            return Err(io::Error::last_os_error()).context("failed to raise an event");
        }
        Ok(())
    }
}

/// An epoll instance.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poll {
    /// Most events taken at once.
    const AT_ONCE: usize = 512;

    /// An empty one.
    pub fn new() -> Result<Self> {
        // SAFETY: a new descriptor is owned at once.
        let epoll = unsafe { check(libc::epoll_create1(libc::EPOLL_CLOEXEC)).map(|fd| OwnedFd::from_raw_fd(fd)) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; Self::AT_ONCE];
        Ok(Self { epoll: epoll.context("failed to make an epoll")?, events })
    }

    /// Watches `fd`.
    pub fn add(&self, fd: RawFd, events: i32) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events)
    }

    /// Watches `fd` for something else.
    pub fn change(&self, fd: RawFd, events: i32) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events)
    }

    fn control(&self, operation: i32, fd: RawFd, events: i32) -> Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: fd as u64 };
        // SAFETY: the event lives through the call.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &raw mut event) };
        check(result).context("failed to watch a socket")?;
        Ok(())
    }

    /// Waits until something is ready, at most so long, and puts (descriptor, events) into `ready`.
    pub fn wait(&mut self, timeout_ns: Option<u64>, ready: &mut Vec<(RawFd, i32)>) -> Result<()> {
        ready.clear();
        let time = timeout_ns.map(timespec);
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the kernel writes at most as many events as there is room for; epoll_pwait2 (Linux 5.11) takes a
        // timespec where epoll_wait has milliseconds; no signal mask is given.
        let count = unsafe {
            let room = self.events.len() as libc::c_int;
            let mask: *const libc::sigset_t = std::ptr::null();
            let epoll = self.epoll.as_raw_fd();
            libc::syscall(libc::SYS_epoll_pwait2, epoll, self.events.as_mut_ptr(), room, time, mask, 8_usize)
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(())
            } else {
                Err(error).context("failed to wait for sockets")
            };
        };
        ready.extend(self.events[..count].iter().map(|event| (event.u64 as RawFd, event.events as i32)));
        Ok(())
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
