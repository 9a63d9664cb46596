//! Waits for many sockets and one moment: epoll and a timer, level-triggered. The timer fires at an
//! absolute time of the monotonic clock, to some ten microseconds. Linux only.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Events taken at once.
const EVENTS: usize = 256;

/// See the module.
pub struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// Token of the timer's event.
const TIMER: u64 = u64::MAX;

impl Poll {
    /// A poll that waits for nothing yet.
    pub fn new() -> io::Result<Self> {
        // SAFETY: both calls take numbers only, and only this value owns the descriptors they
        // return, once they are checked.
        let (epoll, timer) = unsafe {
            let epoll = owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
            (epoll, owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?)
        };
        let poll = Self { epoll, timer, events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS] };
        poll.add(&poll.timer, TIMER)?;
        Ok(poll)
    }

    /// Also waits until `source` is readable; its events have the token `token`. Closing it ends
    /// that.
    pub fn add(&self, source: &impl AsRawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, source, token)
    }

    /// Stops waiting for `source`.
    pub fn remove(&self, source: &impl AsRawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, source, 0)
    }

    fn control(&self, what: libc::c_int, source: &impl AsRawFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: `event` is valid for the call, which keeps no pointer.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, source.as_raw_fd(), &raw mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Wakes at `moment` (see [`now_ns`]), which replaces an earlier one.
    pub fn wake_at(&self, moment: Option<u64>) -> io::Result<()> {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // All zeros would mean never; a past moment fires at once.
        let moment = moment.map_or(0, |moment| moment.max(1));
        let value = libc::timespec {
            tv_sec: (moment / 1_000_000_000) as libc::time_t,
            tv_nsec: (moment % 1_000_000_000) as libc::c_long,
        };
        let setting = libc::itimerspec { it_interval: zero, it_value: value };
        let timer = self.timer.as_raw_fd();
        // SAFETY: `setting` is valid for the call, which does not return the old setting.
        let result =
            unsafe { libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &raw const setting, std::ptr::null_mut()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for up to `at_most_ms`, and puts the readable sources into `ready`. The timer's own
    /// event is not among them.
    pub fn wait(&mut self, at_most_ms: i32, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: the buffer is valid for the number of events that the call gets.
        let count = unsafe { libc::epoll_wait(epoll, self.events.as_mut_ptr(), EVENTS as libc::c_int, at_most_ms) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        for event in &self.events[..count as usize] {
            let token = event.u64;
            if token == TIMER {
                let mut expirations = [0_u8; 8];
                // SAFETY: a buffer of the eight bytes that a timer's read takes. If the timer has
                // none, that does no harm.
                unsafe { libc::read(self.timer.as_raw_fd(), expirations.as_mut_ptr().cast(), 8) };
            } else {
                ready.push(token);
            }
        }
        Ok(())
    }
}

/// Takes ownership of a file descriptor that a call returned, or returns its error.
///
/// # Safety
///
/// If it is a descriptor, nothing else may own it.
unsafe fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just returned, and the caller owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The monotonic clock, ns.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call to fill in; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_at_the_moment_that_was_set_last() {
        let mut poll = Poll::new().expect("epoll");
        let begun = now_ns();
        poll.wake_at(Some(begun + 60_000_000_000)).expect("set");
        poll.wake_at(Some(begun + 20_000_000)).expect("set");
        let mut ready = vec![7];
        poll.wait(30_000, &mut ready).expect("waited");
        let waited = now_ns() - begun;
        assert!((20_000_000..10_000_000_000).contains(&waited) && ready.is_empty(), "{waited} ns");
        poll.wake_at(Some(begun)).expect("a moment that is over");
        poll.wait(30_000, &mut ready).expect("waited");
        poll.wake_at(None).expect("unset");
        let unset = now_ns();
        poll.wait(20, &mut ready).expect("waited");
        assert!(now_ns() - unset >= 15_000_000, "it woke for nothing");
    }
}
