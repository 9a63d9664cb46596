//! The clients of a queue: their bytes, and which of their requests is in line. A connection has
//! one request in line at a time; later requests wait in its buffer. If a client closes, the
//! request it had in line is still served, as by a server that cannot see that the client is gone.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::poll::Poll;
use crate::service::http::{BODY_BYTES_MAX, HEAD_BYTES_MAX, NoRequest, Status, parse};

/// Most bytes that are read ahead from a connection.
const AHEAD_BYTES_MAX: usize = HEAD_BYTES_MAX + BODY_BYTES_MAX;

/// A request in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// Place of its connection.
    pub connection: u32,
    /// Tells apart successive connections in the same place, so that a successor is not answered.
    serial: u32,
}

/// See the module.
#[derive(Default)]
pub struct Connections {
    places: Vec<Place>,
    free: Vec<u32>,
    count: usize,
    response: Vec<u8>,
}

#[derive(Default)]
struct Place {
    stream: Option<TcpStream>,
    serial: u32,
    ahead: Vec<u8>,
    /// The request in line: whether it is a HEAD, and whether the connection stays open after it.
    queued: Option<QueuedRequest>,
}

#[derive(Clone, Copy)]
struct QueuedRequest {
    is_head: bool,
    keep_alive: bool,
}

impl Connections {
    /// Number of open connections.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds an accepted connection, and makes `poll` wait for it.
    pub fn add(&mut self, stream: TcpStream, poll: &Poll) {
        let at = self.free.pop().unwrap_or(self.places.len() as u32);
        let is_ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
        if is_ready.and_then(|()| poll.add(&stream, u64::from(at))).is_err() {
            // It is already gone.
            if (at as usize) < self.places.len() {
                self.free.push(at);
            }
            return;
        }
        if at as usize == self.places.len() {
            self.places.push(Place::default());
        }
        self.places[at as usize].stream = Some(stream);
        self.count += 1;
    }

    /// Closes a connection, if it is open.
    pub fn close(&mut self, at: u32) {
        let Some(place) = self.places.get_mut(at as usize) else { return };
        if place.stream.take().is_some() {
            *place = Place { serial: place.serial.wrapping_add(1), ..Place::default() };
            self.free.push(at);
            self.count -= 1;
        }
    }

    /// Reads the bytes that arrived. Returns whether a complete request may be ready now.
    pub fn read(&mut self, at: u32) -> bool {
        let Some(place) = self.places.get_mut(at as usize) else { return false };
        let Some(stream) = &mut place.stream else { return false };
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 && place.ahead.len() + count <= AHEAD_BYTES_MAX => {
                place.ahead.extend_from_slice(&bytes[..count]);
                place.queued.is_none()
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => false,
            _ => {
                self.close(at);
                false
            }
        }
    }

    /// The next complete request of a connection that has none in line. An invalid request is
    /// refused.
    pub fn next_request(&mut self, at: u32) -> Option<Ticket> {
        let place = self.places.get_mut(at as usize)?;
        if place.stream.is_none() || place.queued.is_some() || place.ahead.is_empty() {
            return None;
        }
        let ticket = Ticket { connection: at, serial: place.serial };
        match parse(&place.ahead, Instant::now()) {
            Ok(Some(parsed)) => {
                let whole = parsed.head_bytes + parsed.body_bytes;
                if place.ahead.len() < whole {
                    return None;
                }
                place.ahead.drain(..whole);
                let is_head = parsed.request.method == "HEAD";
                place.queued = Some(QueuedRequest { is_head, keep_alive: parsed.request.keep_alive });
                Some(ticket)
            }
            Ok(None) if place.ahead.len() < HEAD_BYTES_MAX => None,
            refused => {
                let status = match refused {
                    Err(NoRequest::Refused(status, _)) => status,
                    _ => Status::HEAD_TOO_LARGE,
                };
                place.queued = Some(QueuedRequest { is_head: false, keep_alive: false });
                self.answer(ticket, status);
                None
            }
        }
    }

    /// Answers a request. Returns whether its connection can be used again. A client that does not
    /// read is closed.
    pub fn answer(&mut self, ticket: Ticket, status: Status) -> bool {
        let Some(place) = self.places.get_mut(ticket.connection as usize) else { return false };
        if place.serial != ticket.serial {
            return false;
        }
        let (Some(queued), Some(stream)) = (place.queued.take(), &mut place.stream) else { return false };
        let Status(number, words) = status;
        let connection = if queued.keep_alive { "keep-alive" } else { "close" };
        let (length, body) = if queued.is_head { (0, "") } else { (2, "{}") };
        self.response.clear();
        let _ = write!(
            self.response,
            "HTTP/1.1 {number} {words}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n{body}"
        );
        let written = stream.write(&self.response).is_ok_and(|written| written == self.response.len());
        if !written || !queued.keep_alive {
            self.close(ticket.connection);
            return false;
        }
        true
    }
}
