//! One serving thread: accept, read, answer, on one core and with nothing shared. Readiness is level-triggered, so
//! that one read a turn is enough.

use std::os::fd::{AsRawFd as _, OwnedFd};

use anyhow::Result;

use super::Options;
use super::connection::{Connection, Sent, laid_out};
use super::delay::{Delay, Freeze};
use super::socket;
use crate::system::{self, Poll};

/// Most that is read at once.
const READ_BYTES: usize = 16 * 1024;

/// What a thread saw.
#[derive(Debug, Default)]
pub struct Tally {
    /// Requests read to their end.
    pub requests: u64,
    /// The kernel's receive time of each.
    pub stamps: Vec<u64>,
    /// When connections were accepted, on the monotonic clock.
    pub accepted_ns: Vec<u64>,
    /// Most connections open at once.
    pub connections_most: u64,
}

impl Tally {
    /// Takes in another thread's.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.stamps.extend(other.stamps);
        self.accepted_ns.extend(other.accepted_ns);
        self.connections_most += other.connections_most;
    }
}

/// A thread's server.
#[derive(Debug)]
pub struct Server {
    cpu: usize,
    listener: OwnedFd,
    end: OwnedFd,
    stamped: bool,
    delay: Delay,
    freeze: Option<Freeze>,
    first_request_ns: Option<u64>,
    /// By socket number.
    connections: Vec<Option<Connection>>,
    /// How many connections each number has stood for.
    lives: Vec<u32>,
    open: u64,
    laid_out: Vec<u8>,
    tally: Tally,
}

impl Server {
    /// Serves `listener` on `cpu` until `end` is readable.
    pub fn new(cpu: usize, listener: OwnedFd, end: OwnedFd, options: &Options) -> Result<Self> {
        let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
        let freeze = options.freeze_at_s.zip(options.freeze_for_s);
        Ok(Self {
            cpu,
            listener,
            end,
            stamped: options.stamps.is_some(),
            delay: Delay::new(nanoseconds(options.service_ms / 1e3)),
            freeze: freeze.map(|(at, long)| Freeze { after_ns: nanoseconds(at), length_ns: nanoseconds(long) }),
            first_request_ns: None,
            connections: Vec::new(),
            lives: Vec::new(),
            open: 0,
            laid_out: laid_out(),
            tally: Tally::default(),
        })
    }

    /// Serves to the end.
    pub fn run(mut self) -> Result<Tally> {
        system::pin_thread(self.cpu)?;
        system::exact_timers();
        let mut poll = Poll::new()?;
        poll.add(self.listener.as_raw_fd(), libc::EPOLLIN)?;
        poll.add(self.end.as_raw_fd(), libc::EPOLLIN)?;
        let mut buffer = vec![0; READ_BYTES];
        let mut ready = Vec::new();
        loop {
            let timeout_ns = self.delay.next_due_ns().map(|due| due.saturating_sub(system::monotonic_ns()));
            poll.wait(timeout_ns, &mut ready)?;
            self.freeze_if_it_is_time();
            for &(fd, events) in &ready {
                if fd == self.end.as_raw_fd() {
                    return Ok(self.tally);
                }
                if fd == self.listener.as_raw_fd() {
                    self.accept(&poll)?;
                } else {
                    self.turn(&poll, fd, events, &mut buffer)?;
                }
            }
            self.answer_due(&poll)?;
        }
    }

    fn accept(&mut self, poll: &Poll) -> Result<()> {
        while let Some(socket) = socket::accept(&self.listener) {
            let fd = socket.as_raw_fd();
            let at = fd as usize;
            if self.connections.len() <= at {
                self.connections.resize_with(at + 1, || None);
                self.lives.resize(at + 1, 0);
            }
            poll.add(fd, libc::EPOLLIN)?;
            self.lives[at] += 1;
            self.connections[at] = Some(Connection::new(socket));
            self.open += 1;
            self.tally.connections_most = self.tally.connections_most.max(self.open);
            self.tally.accepted_ns.push(system::monotonic_ns());
        }
        Ok(())
    }

    /// One connection's turn: reads, and answers or remembers to.
    fn turn(&mut self, poll: &Poll, fd: i32, events: i32, buffer: &mut [u8]) -> Result<()> {
        let at = fd as usize;
        let Some(connection) = self.connections.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        if events & libc::EPOLLOUT != 0 {
            return self.send(poll, fd);
        }
        let read = if self.stamped {
            socket::read_stamped(fd, buffer)
        } else {
            socket::read(fd, buffer).map(|length| (length, None))
        };
        let (length, stamp) = match read {
            Ok((0, _)) => return self.close(fd),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) => return self.close(fd),
        };
        let requests = connection.ends.count(&buffer[..length]);
        if requests == 0 {
            return Ok(());
        }
        self.tally.requests += requests;
        if let Some(stamp) = stamp {
            self.tally.stamps.extend((0..requests).map(|_| stamp));
        }
        if self.freeze.is_some() && self.first_request_ns.is_none() {
            self.first_request_ns = Some(system::monotonic_ns());
        }
        if self.delay.is_on() {
            self.delay.push(system::monotonic_ns(), fd, self.lives[at], requests);
            return Ok(());
        }
        connection.owe(requests);
        self.send(poll, fd)
    }

    fn answer_due(&mut self, poll: &Poll) -> Result<()> {
        if !self.delay.is_on() {
            return Ok(());
        }
        let now_ns = system::monotonic_ns();
        while let Some(due) = self.delay.pop_due(now_ns) {
            let at = due.fd as usize;
            if self.lives[at] != due.life {
                continue;
            }
            if let Some(connection) = self.connections[at].as_mut() {
                connection.owe(due.answers);
                self.send(poll, due.fd)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, poll: &Poll, fd: i32) -> Result<()> {
        let Some(connection) = self.connections[fd as usize].as_mut() else { return Ok(()) };
        let waits_for_room = match connection.send(&self.laid_out) {
            Sent::All => false,
            Sent::Part => true,
            Sent::Gone => return self.close(fd),
        };
        if connection.waits_for_room != waits_for_room {
            connection.waits_for_room = waits_for_room;
            // A client that doesn't read its answers isn't read either.
            poll.change(fd, if waits_for_room { libc::EPOLLOUT } else { libc::EPOLLIN })?;
        }
        Ok(())
    }

    /// Closing takes it out of the poll too.
    fn close(&mut self, fd: i32) -> Result<()> {
        if self.connections[fd as usize].take().is_some() {
            self.open -= 1;
        }
        Ok(())
    }

    fn freeze_if_it_is_time(&mut self) {
        let Some((freeze, first_ns)) = self.freeze.zip(self.first_request_ns) else { return };
        let begins_ns = first_ns + freeze.after_ns;
        if system::monotonic_ns() >= begins_ns {
            system::sleep_until(begins_ns + freeze.length_ns);
            self.freeze = None;
        }
    }
}
