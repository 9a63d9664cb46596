//! A socket, and TLS on it: sends as much as it takes. The rest waits where it is until the socket
//! has room again: in the request's own bytes, which were laid out beforehand, or in the session.

use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;

use rustls::ClientConnection;

use super::outcome::Outcome;
use crate::sys;

/// Most bytes handed to TLS at once. TLS buffers what it can't send, so it gets no more while the
/// socket is full.
const TLS_PIECE: usize = 64 * 1024;

/// Bytes that wait to be sent.
pub trait Output {
    /// Some or all of them; empty if none is left.
    fn waiting(&mut self) -> &[u8];
    /// This many of them were sent.
    fn sent(&mut self, count: usize);
}

/// See the module.
#[derive(Default)]
pub struct Link {
    pub socket: Option<OwnedFd>,
    pub tls: Option<Box<ClientConnection>>,
    /// A write found the connection reset; data that arrived before can still be read.
    pub is_reset: bool,
}

impl Link {
    /// Whether TLS is being negotiated.
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Sends as much of `out` as the socket takes. True if that is all of it.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn send(&mut self, out: &mut impl Output) -> Result<bool, Outcome> {
        if self.tls.is_some() {
            while self.push_out()? {
                let Some(tls) = self.tls.as_mut().filter(|tls| !tls.is_handshaking()) else { return Ok(false) };
                let waiting = out.waiting();
                if waiting.is_empty() {
                    return Ok(true);
                }
                let piece = &waiting[..waiting.len().min(TLS_PIECE)];
                tls.writer().write_all(piece).map_err(|_| Outcome::TlsFailed)?;
                let count = piece.len();
                out.sent(count);
            }
            return Ok(false);
        }
        let Some(socket) = &self.socket else { return Ok(false) };
        loop {
            let waiting = out.waiting();
            if waiting.is_empty() {
                return Ok(true);
            }
            match sys::send(socket, waiting) {
                Ok(count) => out.sent(count),
                Err(e) => return self.unwritten(&e),
            }
        }
    }

    /// Writes as much of the TLS output as the socket takes. True if that is all of it.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn push_out(&mut self) -> Result<bool, Outcome> {
        let (Some(tls), Some(socket)) = (&mut self.tls, &self.socket) else { return Ok(false) };
        while tls.wants_write() {
            if let Err(e) = tls.write_tls(&mut SocketWriter(socket)) {
                return self.unwritten(&e);
            }
        }
        Ok(true)
    }

    /// Handles a write for which the socket took nothing: false, unless the connection is broken.
    fn unwritten(&mut self, error: &io::Error) -> Result<bool, Outcome> {
        match error.kind() {
            // The epoll set will report when there is room. (A non-blocking call is not
            // interrupted.)
            ErrorKind::WouldBlock => Ok(false),
            // The server may have answered before it closed, and that answer can still be read.
            ErrorKind::BrokenPipe => Ok(false),
            ErrorKind::ConnectionReset => {
                self.is_reset = true;
                Ok(false)
            }
            _ => Err(Outcome::from_io_error(error)),
        }
    }
}

/// A socket to write to.
struct SocketWriter<'a>(&'a OwnedFd);

impl Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::send(self.0, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
