//! A service whose capacity is known: so many servers, each busy for exactly so long with a request, and a bounded
//! waiting line before them (M/D/c/K in Kendall's notation, if requests come at random). One thread does all of it,
//! and does nothing for a request but wait, so that the capacity is that of the arithmetic and not of the CPU. What a
//! tool says about it can be held against what is known. It is no model of a service that works.

mod connections;
mod line;
mod poll;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::service::capacity::Overflow;
use crate::service::http::Status;
use crate::service::listener::{bind, own_address, set_backlog};
use crate::service::{Options, ServiceError};
use connections::{Connections, Ticket};
use line::Line;
pub use line::Shape;
use poll::{Poll, now_ns};

/// How often it looks whether it is to stop, ms.
const LOOK_MS: i32 = 100;

/// Connections that may wait in the kernel to be accepted: the line is to be the only one.
const BACKLOG: u32 = 4_096;

/// What the listener's event is called.
const LISTENER: u64 = u64::MAX - 1;

/// A queue at work.
pub struct Server {
    /// Where it serves.
    pub listen: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Binds and begins to serve.
    ///
    /// # Errors
    /// If the address is not on loopback (and that was not allowed) or taken, or the system refuses epoll or a thread.
    pub fn start(options: &Options, shape: Shape, overflow: Overflow) -> Result<Self, ServiceError> {
        let listener = bind(options.listen, "--listen", options.allow_remote)?;
        set_backlog(&listener, BACKLOG)?;
        let listen = own_address(&listener)?;
        let poll = Poll::new().and_then(|poll| poll.add(&listener, LISTENER).map(|()| poll));
        let poll = poll.map_err(|source| ServiceError::System { what: "use epoll", source })?;
        let stopping = Arc::new(AtomicBool::new(false));
        let mut queue = Queue {
            listener,
            poll,
            line: Line::new(shape),
            connections: Connections::default(),
            most_connections: options.max_connections as usize,
            listening: true,
            overflow,
            asked: Vec::new(),
        };
        let asked = Arc::clone(&stopping);
        let body = move || {
            if let Err(error) = queue.serve(&asked) {
                eprintln!("queue: {error}");
            }
        };
        let thread = thread::Builder::new().name("queue".to_owned()).spawn(body);
        let thread = thread.map_err(|source| ServiceError::System { what: "start a thread", source })?;
        Ok(Self { listen, stopping, thread })
    }

    /// Ends it; requests that wait are not answered.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

struct Queue {
    listener: TcpListener,
    poll: Poll,
    line: Line<Ticket>,
    connections: Connections,
    most_connections: usize,
    /// Connections are accepted; if not, there are as many as may be.
    listening: bool,
    overflow: Overflow,
    /// Connections that may have a whole request.
    asked: Vec<u32>,
}

impl Queue {
    fn serve(&mut self, stopping: &AtomicBool) -> io::Result<()> {
        let mut ready = Vec::new();
        let mut wakes_at = None;
        while !stopping.load(Ordering::Relaxed) {
            self.poll.wait(LOOK_MS, &mut ready)?;
            let now = now_ns();
            // What has ended by now makes room before anybody else comes.
            while let Some(ticket) = self.line.ended(now) {
                if self.connections.answer(ticket, Status::OK) {
                    self.asked.push(ticket.connection);
                }
            }
            for &token in &ready {
                if token == LISTENER {
                    self.accept()?;
                } else if self.connections.read(token as u32) {
                    self.asked.push(token as u32);
                }
            }
            while let Some(connection) = self.asked.pop() {
                self.enqueue(connection, now);
            }
            if !self.listening && self.connections.count() < self.most_connections {
                self.poll.add(&self.listener, LISTENER)?;
                self.listening = true;
            }
            let next = self.line.next_end();
            if next != wakes_at {
                self.poll.wake_at(next)?;
                wakes_at = next;
            }
        }
        Ok(())
    }

    /// The next request of a connection stands in line, if it is whole and there is room.
    fn enqueue(&mut self, connection: u32, now: u64) {
        let Some(ticket) = self.connections.next_request(connection) else { return };
        if self.line.arrive(ticket, now) {
            return;
        }
        match self.overflow {
            Overflow::Refuse => {
                if self.connections.answer(ticket, Status::UNAVAILABLE) {
                    self.asked.push(connection);
                }
            }
            Overflow::Close => self.connections.close(connection),
            // The connection stays as it is, busy with a request that nobody looks at.
            Overflow::Drop => {}
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while self.connections.count() < self.most_connections {
            match self.listener.accept() {
                Ok((stream, _)) => self.connections.add(stream, &self.poll),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // Out of file descriptors, most likely: there are as many connections as can be.
                    eprintln!("queue: failed to accept a connection: {error}");
                    self.most_connections = self.connections.count().max(1);
                }
            }
        }
        self.listening = false;
        self.poll.remove(&self.listener)
    }
}
