//! One connection: how far its requests have been read and how much of the answers is still to be sent. The answers are
//! one stream of the same bytes again and again, so its state is two numbers.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::requests::Ends;

/// What every request is answered with: something to capture and to check. ApacheBench asks in HTTP/1.0 and keeps a connection only if it is told.
pub const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n\
Content-Length: 13\r\n\r\n{\"token\":42}\n";

/// Answers that go out with one call at most.
const AT_ONCE: usize = 64;

/// The bytes that answers are sent from.
pub fn laid_out() -> Vec<u8> {
    ANSWER.repeat(AT_ONCE)
}

/// How sending ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything owed is with the kernel.
    All,
    /// The kernel takes no more for now.
    Part,
    /// The other side is gone.
    Gone,
}

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    /// Where in its requests the client is.
    pub ends: Ends,
    /// Bytes still to be sent; the stream of answers ends where an answer ends.
    owed_bytes: usize,
    /// Whether the kernel is asked to say when there is room again.
    pub waits_for_room: bool,
}

impl Connection {
    /// A new one.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, ends: Ends::default(), owed_bytes: 0, waits_for_room: false }
    }

    /// The socket's number.
    pub fn fd(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Owes so many more answers.
    pub fn owe(&mut self, answers: u64) {
        self.owed_bytes += usize::try_from(answers).unwrap_or(usize::MAX / ANSWER.len()) * ANSWER.len();
    }

    /// Sends what is owed from `laid_out`.
    pub fn send(&mut self, laid_out: &[u8]) -> Sent {
        while self.owed_bytes > 0 {
            // What is left of an answer that was cut short comes first, then whole ones.
            let cut_short = self.owed_bytes % ANSWER.len();
            let start = if cut_short == 0 { 0 } else { ANSWER.len() - cut_short };
            let length = self.owed_bytes.min(laid_out.len() - start);
            let bytes = &laid_out[start..start + length];
            // SAFETY: the slice is valid for reading for its whole length.
            let sent = unsafe { libc::send(self.fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
            match usize::try_from(sent) {
                Ok(sent) => self.owed_bytes -= sent,
                Err(_) => {
                    return match io::Error::last_os_error().kind() {
                        io::ErrorKind::WouldBlock => Sent::Part,
                        io::ErrorKind::Interrupted => continue,
                        _ => Sent::Gone,
                    };
                }
            }
        }
        Sent::All
    }
}
