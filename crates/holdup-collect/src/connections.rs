//! The connections of one source to its server: never more than two, whatever the server does. A
//! silent connection still occupies the server even after holdup closes it, so it is kept and
//! counted until the server answers or ends it. After a failed attempt the next one waits. This
//! module speaks no protocol.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::backoff::Backoff;
use crate::own_thread::lock;
use crate::trouble::{Reads, Trouble};

/// Most connections of one source.
const CONNECTIONS_MAX: usize = 2;

/// Longest pause between two attempts at a server that refuses logins or does not answer.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The same where nothing listens: such an attempt costs no server anything.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(2);

/// A peer that acknowledges nothing for about this many seconds is given up. Only a dead host or
/// network does that; a hung server still acknowledges.
const DEAD_AFTER_S: u32 = 30;

/// A connection without traffic is probed at this interval, seconds.
const PROBED_EVERY_S: u32 = 10;

/// The state that all connections of one source share. Clones share it, too.
#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Slots in use, those of silent connections included.
    taken: usize,
    silent: Vec<OwnedFd>,
    backoff: Backoff,
    /// Why the last attempt failed.
    last: String,
    /// Whether the newest connection has served for one whole read of everything.
    has_served: bool,
}

/// A slot for one open connection, returned on drop. Drop it after the connection.
pub(crate) struct Slot(Connections);

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Whether a connection may be attempted now.
    ///
    /// # Errors
    /// Why the last attempt failed, while its pause lasts.
    fn may_try(&self) -> Result<(), String> {
        let mut state = self.state();
        state.release_answered();
        if state.backoff.is_due() { Ok(()) } else { Err(state.last.clone()) }
    }

    /// Opens a connection, unless the pause after the last failure lasts.
    ///
    /// # Errors
    /// Those of `open`, or why the last attempt failed.
    pub fn attempt<T, E: Trouble>(&self, open: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.may_try().map_err(E::not_tried)?;
        let opened = open();
        match &opened {
            Ok(_) => self.opened(),
            Err(failure) => self.failed(failure.to_string(), failure.is_refused()),
        }
        opened
    }

    /// The next attempt is made at once: the caller keeps the pauses.
    pub fn forget_failures(&self) {
        self.state().backoff.succeeded();
    }

    /// The connection `server` after a sample; none if the reads lost it.
    pub fn keep<S>(&self, server: S, reads: &Reads) -> Option<S> {
        if reads.lost {
            self.lost(reads.failures.join("; "));
            return None;
        }
        self.served();
        Some(server)
    }

    /// Takes a slot for one more connection.
    ///
    /// # Errors
    /// If no slot is free.
    pub fn take_slot(&self) -> Result<Slot, String> {
        let mut state = self.state();
        state.release_answered();
        if state.taken >= CONNECTIONS_MAX {
            return Err(format!(
                "the server does not answer on {} connections, and holdup opens no more than {CONNECTIONS_MAX}",
                state.silent.len().max(1)
            ));
        }
        state.taken += 1;
        Ok(Slot(self.clone()))
    }

    /// Records a failed attempt; `is_refused` if nothing listens there.
    fn failed(&self, why: String, is_refused: bool) {
        let mut state = self.state();
        state.backoff.failed(Duration::ZERO, if is_refused { REFUSED_PAUSE_MAX } else { PAUSE_MAX });
        state.last = why;
    }

    /// Records a new connection, which has not proved itself yet.
    fn opened(&self) {
        self.state().has_served = false;
    }

    /// Records that one whole sample was read over it.
    pub fn served(&self) {
        let mut state = self.state();
        state.has_served = true;
        state.backoff.succeeded();
    }

    /// Records that the connection was lost. If it never served, that counts as a failed attempt.
    pub fn lost(&self, why: String) {
        if !self.state().has_served {
            self.failed(why, false);
        }
    }
}

impl State {
    /// Returns the slots of connections that the server has answered or ended.
    fn release_answered(&mut self) {
        let before = self.silent.len();
        self.silent.retain(|socket| !has_news(socket));
        self.taken = self.taken.saturating_sub(before - self.silent.len());
    }
}

impl Slot {
    /// The connection over `socket` fell silent: it keeps its slot until the server sends something
    /// or ends it.
    pub fn keep(self, socket: OwnedFd) {
        let mut state = self.0.state();
        state.silent.push(socket);
        // Makes up for the slot that is returned when `self` is dropped.
        state.taken += 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.taken = state.taken.saturating_sub(1);
    }
}

/// Whether the peer has sent something or ended the connection.
fn has_news(socket: &OwnedFd) -> bool {
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN | libc::POLLRDHUP, revents: 0 };
    // SAFETY: `asked` is one valid pollfd, of a descriptor that is open as long as `socket` lives; poll returns at once.
    let found = unsafe { libc::poll(&raw mut asked, 1, 0) };
    found > 0
}

/// Lets the kernel detect that the peer's host is gone: see [`DEAD_AFTER_S`].
pub(crate) fn notice_death(socket: &std::net::TcpStream) {
    let ms = DEAD_AFTER_S * 1_000;
    for (level, name, value) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, PROBED_EVERY_S),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, PROBED_EVERY_S),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms),
    ] {
        // SAFETY: the option's value is a 32-bit integer that outlives the call, and its size is
        // passed.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                size_of_val(&value) as libc::socklen_t,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_silent_connection_keeps_its_place_until_the_server_answers_or_ends_it() {
        let connections = Connections::default();
        let ((mut server, ours), (other_server, other)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        connections.take_slot().unwrap().keep(ours.into());
        connections.take_slot().unwrap().keep(other.into());
        assert!(connections.take_slot().is_err_and(|why| why.contains("2 connections")));
        server.write_all(b"late").unwrap();
        let first = connections.take_slot().unwrap();
        assert!(connections.take_slot().is_err());
        drop(other_server);
        let second = connections.take_slot().unwrap();
        assert!(connections.take_slot().is_err());
        drop((first, second));
        assert!(connections.take_slot().is_ok());
    }

    #[test]
    fn a_connection_that_never_served_is_a_failed_attempt() {
        let connections = Connections::default();
        connections.served();
        connections.lost("restarted".to_owned());
        assert_eq!(connections.may_try(), Ok(()));
        connections.opened();
        connections.lost("closed again".to_owned());
        assert_eq!(connections.may_try(), Err("closed again".to_owned()));
    }
}
