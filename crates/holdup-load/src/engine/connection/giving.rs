//! Writes to the socket, as much as it takes. The rest waits until the socket has room again: in
//! the request's own bytes, which were laid out beforehand, or in the HTTP/2 session.

use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;

use holdup_protocol::http::WantedParts;

use super::{Connection, ProtocolState, Stage};
use crate::engine::outcome::Outcome;
use crate::engine::plan::Form;
use crate::engine::trace::Mark;
use crate::sys;

/// Most bytes handed to TLS at once. TLS buffers what it can't send, so it gets no more while the
/// socket is full.
const TLS_PIECE: usize = 64 * 1024;

/// A request being sent.
pub struct OutgoingRequest<'a> {
    /// Its bytes.
    pub form: &'a Form,
    /// The trace id to put into them.
    pub mark: Option<&'a Mark>,
    /// `HEAD` is answered without a body.
    pub is_head: bool,
    /// Which parts of the response to keep.
    pub wanted: WantedParts,
}

impl Connection {
    /// Writes as much of an HTTP/1 request as the socket takes, with `mark` in its place; `scratch`
    /// is working memory.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn write(&mut self, bytes: &[u8], mark: Option<&Mark>, scratch: &mut Vec<u8>) -> Result<(), Outcome> {
        if self.tls.is_some() {
            while self.push_out()? {
                let Some(tls) = &mut self.tls else { return Ok(()) };
                let left = Mark::piece(mark, bytes, self.written, scratch);
                if left.is_empty() {
                    self.is_written = true;
                    return Ok(());
                }
                let piece = &left[..left.len().min(TLS_PIECE)];
                tls.writer().write_all(piece).map_err(|_| Outcome::TlsFailed)?;
                self.written += piece.len();
            }
            return Ok(());
        }
        let Some(socket) = &self.socket else { return Ok(()) };
        while self.written < bytes.len() {
            match sys::send(socket, Mark::piece(mark, bytes, self.written, scratch)) {
                Ok(count) => self.written += count,
                Err(e) => return self.unwritten(&e),
            }
        }
        self.is_written = true;
        Ok(())
    }

    /// Writes as much of the HTTP/2 output as the socket takes.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn flush_session(&mut self) -> Result<(), Outcome> {
        if self.stage != Stage::Open
            && !matches!((&self.speech, self.stage), (ProtocolState::Sql(_), Stage::Handshaking(_)))
        {
            // The output belongs to the old socket and must not be sent on the next.
            return Ok(());
        }
        if self.tls.is_some() {
            while self.push_out()? {
                let Some(tls) = &mut self.tls else { return Ok(()) };
                let session: &mut dyn HasOutput = match &mut self.speech {
                    ProtocolState::Http2(session) => &mut **session,
                    ProtocolState::Sql(database) if !tls.is_handshaking() => &mut database.session,
                    _ => return Ok(()),
                };
                let bytes = session.output();
                if bytes.is_empty() {
                    return Ok(());
                }
                tls.writer().write_all(bytes).map_err(|_| Outcome::TlsFailed)?;
                let count = bytes.len();
                // This may make room for more of a body.
                session.consumed(count);
            }
            return Ok(());
        }
        self.flush_clear()
    }

    /// The same in clear text.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn flush_clear(&mut self) -> Result<(), Outcome> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let session: &mut dyn HasOutput = match &mut self.speech {
            ProtocolState::Http2(session) => &mut **session,
            ProtocolState::Sql(database) => &mut database.session,
            ProtocolState::Http1(_) => return Ok(()),
        };
        while !session.output().is_empty() {
            match sys::send(socket, session.output()) {
                Ok(count) => session.consumed(count),
                Err(e) => return self.unwritten(&e),
            }
        }
        Ok(())
    }

    /// Handles a write for which the socket took nothing.
    fn unwritten(&mut self, error: &io::Error) -> Result<(), Outcome> {
        match error.kind() {
            // The epoll set will report when there is room. (A non-blocking call is not
            // interrupted.)
            ErrorKind::WouldBlock => Ok(()),
            // The server may have answered before it closed, and that answer can still be read.
            ErrorKind::BrokenPipe => Ok(()),
            ErrorKind::ConnectionReset => {
                self.is_reset = true;
                Ok(())
            }
            _ => Err(Outcome::from_io_error(error)),
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
                return self.unwritten(&e).map(|()| false);
            }
        }
        Ok(true)
    }

    /// Whether something is left to write.
    pub fn has_more_to_write(&self) -> bool {
        let has_own = match &self.speech {
            ProtocolState::Http1(_) => !self.is_written,
            ProtocolState::Http2(session) => !session.output().is_empty(),
            ProtocolState::Sql(database) => !database.session.output().is_empty(),
        };
        has_own || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }
}

/// A protocol that collects its output.
trait HasOutput {
    /// The bytes to send.
    fn output(&self) -> &[u8];
    /// This many bytes of it were sent.
    fn consumed(&mut self, count: usize);
}

impl HasOutput for holdup_protocol::http::http2::Session {
    fn output(&self) -> &[u8] {
        self.output()
    }

    fn consumed(&mut self, count: usize) {
        self.consumed(count);
    }
}

impl HasOutput for holdup_protocol::database::Session {
    fn output(&self) -> &[u8] {
        self.output()
    }

    fn consumed(&mut self, count: usize) {
        self.consumed(count);
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
