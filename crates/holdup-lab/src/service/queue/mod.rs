//! A service whose capacity is known: a number of servers, each busy for an exact time with a
//! request, and a bounded waiting line before them (M/D/c/K in Kendall's notation, if requests come
//! at random). One thread does all of it, and a request costs it nothing but waiting, so the
//! capacity is that of the arithmetic and not of the CPU. Tests compare what a tool reports with
//! these known figures. It is not a model of a real service.

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

use crate::service::http::Status;
use crate::service::listener::{bind, own_address, set_backlog};
use crate::service::{Options, ServiceError};
use connections::{Connections, Ticket};
use line::Line;
pub use line::Shape;
use poll::{Poll, now_ns};

/// How often it looks for a stop, ms.
const LOOK_MS: i32 = 100;

/// Connections that may wait in the kernel to be accepted. Small, because the line is to be the
/// only queue.
const BACKLOG: u32 = 4_096;

/// Token of the listener's event.
const LISTENER: u64 = u64::MAX - 1;

/// The response to a request that finds no room.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// A 503.
    Refuse,
    /// A closed connection.
    Close,
    /// No answer, ever.
    Drop,
}

/// A running queue.
pub struct Server {
    /// Its address.
    pub listen: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Binds and begins to serve.
    ///
    /// # Errors
    ///
    /// If the address is not on loopback (and that was not allowed) or taken, or the system refuses
    /// epoll or a thread.
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
            readable: Vec::new(),
        };
        let stop = Arc::clone(&stopping);
        let body = move || {
            if let Err(error) = queue.serve(&stop) {
                eprintln!("queue: {error}");
            }
        };
        let thread = thread::Builder::new().name("queue".to_owned()).spawn(body);
        let thread = thread.map_err(|source| ServiceError::System { what: "start a thread", source })?;
        Ok(Self { listen, stopping, thread })
    }

    /// Ends it; waiting requests are not answered.
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
    /// Whether it accepts connections; if not, the maximum is open.
    listening: bool,
    overflow: Overflow,
    /// Connections that may have a complete request.
    readable: Vec<u32>,
}

impl Queue {
    fn serve(&mut self, stopping: &AtomicBool) -> io::Result<()> {
        let mut ready = Vec::new();
        let mut wakes_at = None;
        while !stopping.load(Ordering::Relaxed) {
            self.poll.wait(LOOK_MS, &mut ready)?;
            let now = now_ns();
            // Requests that have ended by now make room before new ones are read.
            while let Some(ticket) = self.line.ended(now) {
                if self.connections.answer(ticket, Status::OK) {
                    self.readable.push(ticket.connection);
                }
            }
            for &token in &ready {
                if token == LISTENER {
                    self.accept()?;
                } else if self.connections.read(token as u32) {
                    self.readable.push(token as u32);
                }
            }
            while let Some(connection) = self.readable.pop() {
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

    /// Puts the next request of a connection in line, if it is complete and there is room.
    fn enqueue(&mut self, connection: u32, now: u64) {
        let Some(ticket) = self.connections.next_request(connection) else { return };
        if self.line.arrive(ticket, now) {
            return;
        }
        match self.overflow {
            Overflow::Refuse => {
                if self.connections.answer(ticket, Status::UNAVAILABLE) {
                    self.readable.push(connection);
                }
            }
            Overflow::Close => self.connections.close(connection),
            // The connection stays as it is, busy with a request that is never served.
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
                    // Most likely out of file descriptors: no more connections are possible.
                    eprintln!("queue: failed to accept a connection: {error}");
                    self.most_connections = self.connections.count().max(1);
                }
            }
        }
        self.listening = false;
        self.poll.remove(&self.listener)
    }
}
