//! One connection: a socket, TLS if the target uses it, and HTTP/1.1, HTTP/2 or SQL on top. It
//! moves bytes and reports which requests ended; the loop decides when and why.

mod database;
mod giving;
mod results;
mod reuse;
mod taking;

use std::collections::VecDeque;
use std::io::{self, BufRead as _, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use holdup_protocol::database::Login;
use holdup_protocol::http::{WantedParts, http1, http2};
use rustls::ClientConnection;

use self::database::DatabaseSession;
pub use self::database::TargetProtocol;
pub use self::giving::OutgoingRequest;
pub use self::results::{EndedRequest, ReadContext, ReadResult, Resend, SetCookies, Stage};
use self::taking::finish_http1;
use super::cookies::Cookies;
use super::outcome::Outcome;
use super::plan::{Commands, Form};
use super::tls::Tls;
use super::trace::Mark;
use crate::scenario::HttpVersion;
use crate::sys;

/// Buffers read from one connection before the others get their turn.
const MOST_READS: usize = 16;

enum ProtocolState {
    Http1(http1::Parser),
    Http2(Box<http2::Session>),
    Sql(Box<DatabaseSession>),
}

impl ProtocolState {
    fn version(&self) -> HttpVersion {
        match self {
            Self::Http1(_) | Self::Sql(_) => HttpVersion::Http1,
            Self::Http2(_) => HttpVersion::Http2,
        }
    }
}

/// One of the loop's connections: at most one socket at a time, and the state of its protocol.
pub struct Connection {
    socket: Option<OwnedFd>,
    stage: Stage,
    /// Increases with every socket, so that late events of an earlier one are recognised.
    generation: u32,
    tls: Option<Box<ClientConnection>>,
    speech: ProtocolState,
    /// HTTP/1: the slot, and how much of its request has been written.
    slot: u32,
    written: usize,
    is_written: bool,
    reusable: bool,
    /// Whether a socket carries further requests after the first, and whether it has carried one.
    keeps_alive: bool,
    is_used: bool,
    /// HTTP/1: a request is out, and a byte of its response has arrived.
    is_asked: bool,
    is_answering: bool,
    /// A response has been received on this socket.
    has_answered: bool,
    /// The database agreed to TLS.
    begins_tls: bool,
    /// A write found the connection reset; data that arrived before can still be read.
    is_reset: bool,
    /// Free slots that are unused because the server allows no more streams now.
    pub spare: Vec<u32>,
    /// Slots whose requests wait for the server to allow more streams.
    pub waiting: VecDeque<u32>,
    /// The cookies of the user who has this connection.
    pub cookies: Option<Box<Cookies>>,
}

impl Connection {
    /// Without a socket; its first slot is `slot`. A socket carries one request unless `keeps_alive`.
    pub fn new(slot: u32, language: &TargetProtocol, keeps_alive: bool) -> Self {
        let speech = match language {
            TargetProtocol::Sql(address, login, manner) => ProtocolState::Sql(Box::new(DatabaseSession::new(
                Arc::clone(address),
                Arc::clone(login),
                manner.clone(),
            ))),
            TargetProtocol::Http(HttpVersion::Http1) => ProtocolState::Http1(http1::Parser::new()),
            TargetProtocol::Http(HttpVersion::Http2) => {
                ProtocolState::Http2(Box::new(http2::Session::new(http2::Config {
                    max_streams: 1,
                    wanted: WantedParts::default(),
                })))
            }
        };
        Self {
            socket: None,
            stage: Stage::Closed,
            generation: 0,
            tls: None,
            speech,
            slot,
            written: 0,
            is_written: true,
            reusable: true,
            keeps_alive,
            is_used: false,
            is_asked: false,
            is_answering: false,
            has_answered: false,
            begins_tls: false,
            is_reset: false,
            spare: Vec::new(),
            waiting: VecDeque::new(),
            cookies: None,
        }
    }

    /// The HTTP/1 parser, which holds the kept parts of the last response; none with other
    /// protocols.
    pub fn http1(&self) -> Option<&http1::Parser> {
        match &self.speech {
            ProtocolState::Http1(parser) => Some(parser),
            ProtocolState::Http2(_) | ProtocolState::Sql(_) => None,
        }
    }

    /// Its state.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// See the field.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Starts to connect; `token` identifies it in the epoll set.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connect(&mut self, address: &SocketAddr, epoll: &sys::Epoll, token: u64, now: i64) -> io::Result<()> {
        let socket = sys::connect(address)?;
        epoll.add(&socket, token)?;
        self.socket = Some(socket);
        self.stage = Stage::Connecting(now);
        Ok(())
    }

    /// Checks whether the kernel has connected, and starts TLS if it is used. True if requests can
    /// be sent.
    ///
    /// # Errors
    /// How connecting failed.
    pub fn connected(&mut self, tls: Option<&Tls>, streams: u32, wanted: WantedParts) -> Result<bool, Outcome> {
        let (Some(socket), Stage::Connecting(since)) = (&self.socket, self.stage) else { return Ok(false) };
        if let Some(error) = sys::connect_error(socket) {
            return Err(Outcome::from_connect_error(&error));
        }
        self.reusable = true;
        if let ProtocolState::Http2(session) = &mut self.speech {
            **session = http2::Session::new(http2::Config { max_streams: streams, wanted });
        }
        if let ProtocolState::Sql(database) = &mut self.speech {
            **database = database.again();
            // It is open only after the login.
            self.stage = Stage::Handshaking(since);
            if let Some(tls) = tls.filter(|_| database.session.begins_encrypted()) {
                self.tls = Some(tls.connection().map_err(|e| Outcome::from_tls_error(&e, HttpVersion::Http1))?);
                self.push_out()?;
                return Ok(false);
            }
            self.flush_session()?;
            return Ok(false);
        }
        match tls {
            None => {
                self.stage = Stage::Open;
                self.flush_session()?;
                Ok(true)
            }
            Some(tls) => {
                self.tls = Some(tls.connection().map_err(|e| Outcome::from_tls_error(&e, self.speech.version()))?);
                self.stage = Stage::Handshaking(since);
                self.push_out()?;
                Ok(false)
            }
        }
    }

    /// The next socket uses this account.
    pub fn log_in_as(&mut self, login: &Arc<Login>) {
        if let ProtocolState::Sql(database) = &mut self.speech {
            database.login = Arc::clone(login);
        }
    }

    /// Ends the database session properly; servers count connections that close without it.
    pub fn say_goodbye(&mut self) {
        if let (ProtocolState::Sql(database), Stage::Open) = (&mut self.speech, self.stage) {
            database.session.quit();
            // Do not wait for what cannot be written at once.
            let _ = self.flush_session();
        }
    }

    /// Closes the socket.
    pub fn close(&mut self) {
        // Dropping the socket closes it and takes it out of the epoll set.
        self.socket = None;
        self.tls = None;
        self.begins_tls = false;
        self.stage = Stage::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.written = 0;
        self.is_used = false;
        self.is_asked = false;
        self.has_answered = false;
        self.is_reset = false;
        self.spare.clear();
        self.waiting.clear();
    }

    /// Begins to send the request of `slot`. HTTP/2 collects frames until [`Self::flush_session`].
    ///
    /// # Errors
    /// How the connection broke.
    pub fn start(&mut self, slot: u32, what: &OutgoingRequest<'_>, scratch: &mut Vec<u8>) -> Result<(), Outcome> {
        let OutgoingRequest { form, mark, is_head, wanted } = *what;
        self.is_used = true;
        match (&mut self.speech, form) {
            (ProtocolState::Http1(parser), Form::Http1(bytes, _)) => {
                parser.begin(is_head, wanted);
                self.written = 0;
                self.is_written = false;
                self.is_asked = true;
                self.is_answering = false;
                self.write(bytes, mark, scratch)
            }
            (ProtocolState::Http2(session), Form::Http2(template)) => {
                if session.send_marked(template, slot, mark.map(|mark| (mark.at, mark.text()))) {
                    Ok(())
                } else {
                    Err(Outcome::StreamReset)
                }
            }
            (ProtocolState::Sql(database), Form::Sql(statements, keeps)) => {
                let comment = mark.map(Mark::comment);
                let comment = comment.as_ref().map_or(&[][..], |comment| comment);
                let taken = database.session.execute_with(statements, *keeps, comment);
                taken.map_err(|_| Outcome::StatementFailed)?;
                self.is_asked = true;
                self.flush_session()
            }
            (ProtocolState::Sql(database), Form::Mongodb(commands)) => {
                let comment = mark.map(Mark::key_and_text);
                let comment = comment.as_ref().map_or(&[][..], |comment| comment);
                let Commands { list, is_transaction, keeps_row } = commands;
                let taken = database.session.execute_commands(list, *is_transaction, *keeps_row, comment);
                taken.map_err(|_| Outcome::StatementFailed)?;
                self.is_asked = true;
                self.flush_session()
            }
            _ => Err(Outcome::BadResponse),
        }
    }

    /// Gives up the request of `slot` and keeps the connection, if the protocol allows that.
    pub fn cancel(&mut self, slot: u32) -> bool {
        match &mut self.speech {
            ProtocolState::Http1(_) | ProtocolState::Sql(_) => false,
            ProtocolState::Http2(session) => {
                session.cancel(slot);
                self.waiting.retain(|waiting| *waiting != slot);
                self.stage == Stage::Open && self.keeps_alive
            }
        }
    }

    /// Reads what has arrived; with `to_end`, until the end of the stream, which is known to
    /// follow. If it contained the last handshake message, the stage is open afterwards.
    pub fn receive(&mut self, context: &mut ReadContext<'_>, to_end: bool) -> ReadResult {
        for _ in 0..MOST_READS {
            let Some(socket) = &self.socket else { return ReadResult::All };
            let (count, stamp) = match sys::receive(socket, context.buffer) {
                Ok(read) => read,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return ReadResult::All,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) if matches!((&self.speech, self.stage), (ProtocolState::Sql(_), Stage::Handshaking(_))) => {
                    return ReadResult::Broken(self.closed_early());
                }
                Err(e) => return ReadResult::Broken(Outcome::from_io_error(&e)),
            };
            if count == 0 {
                return self.peer_closed(context);
            }
            let result = if matches!(self.speech, ProtocolState::Sql(_)) {
                self.take_sql_bytes(count, stamp, context)
            } else if self.tls.is_some() {
                self.take_encrypted(count, stamp, context)
            } else {
                let buffer = std::mem::take(&mut context.buffer);
                let result = self.take(&buffer[..count], stamp, context);
                context.buffer = buffer;
                result
            };
            if let Err(outcome) = result {
                return ReadResult::Broken(outcome);
            }
            // The epoll set reports every change, so a read that did not fill the buffer took
            // everything.
            if count < context.buffer.len() && !to_end {
                return ReadResult::All;
            }
        }
        ReadResult::Some
    }

    /// Takes bytes of a database, encrypted or not, and sends the replies of the protocol.
    fn take_sql_bytes(
        &mut self,
        count: usize,
        stamp: Option<i64>,
        context: &mut ReadContext<'_>,
    ) -> Result<(), Outcome> {
        if self.tls.is_some() {
            self.take_encrypted(count, stamp, context)?;
        } else {
            let buffer = std::mem::take(&mut context.buffer);
            let result = self.take(&buffer[..count], stamp, context);
            context.buffer = buffer;
            result?;
        }
        if self.begins_tls && self.tls.is_none() {
            // Everything before the TLS client hello is sent in clear text.
            self.flush_clear()?;
            let tls = context.tls.ok_or(Outcome::TlsFailed)?;
            self.tls = Some(tls.connection().map_err(|e| Outcome::from_tls_error(&e, self.speech.version()))?);
            self.push_out()?;
        }
        self.flush_session()
    }

    fn take_encrypted(
        &mut self,
        count: usize,
        stamp: Option<i64>,
        context: &mut ReadContext<'_>,
    ) -> Result<(), Outcome> {
        let Some(mut tls) = self.tls.take() else { return Ok(()) };
        let buffer = std::mem::take(&mut context.buffer);
        let result = self.decrypt(&mut tls, &buffer[..count], stamp, context);
        context.buffer = buffer;
        self.tls = Some(tls);
        result?;
        // Replies of the handshake, or of a close.
        self.push_out().map(|_| ())
    }

    fn decrypt(
        &mut self,
        tls: &mut ClientConnection,
        mut bytes: &[u8],
        stamp: Option<i64>,
        context: &mut ReadContext<'_>,
    ) -> Result<(), Outcome> {
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes).map_err(|_| Outcome::TlsFailed)?;
            let state = tls.process_new_packets().map_err(|e| Outcome::from_tls_error(&e, self.speech.version()))?;
            if matches!(self.stage, Stage::Handshaking(_)) && !tls.is_handshaking() {
                if matches!(self.speech, ProtocolState::Http2(_))
                    && tls.alpn_protocol() != Some(HttpVersion::Http2.alpn())
                {
                    return Err(Outcome::Http2Refused);
                }
                if let ProtocolState::Sql(database) = &mut self.speech {
                    // The login continues from here, over several reads.
                    if std::mem::take(&mut self.begins_tls) {
                        database.session.tls_started();
                    }
                } else {
                    self.stage = Stage::Open;
                }
            }
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let mut reader = tls.reader();
                let Ok(plain) = reader.fill_buf() else { break };
                let length = plain.len();
                if length == 0 {
                    break;
                }
                self.take(plain, stamp, context)?;
                tls.reader().consume(length);
                left -= length;
            }
        }
        Ok(())
    }

    /// The outcome when the server closes before anything could be sent.
    fn closed_early(&self) -> Outcome {
        let is_handshaking = self.tls.as_ref().is_some_and(|tls| tls.is_handshaking());
        if matches!(self.speech, ProtocolState::Sql(_)) && !is_handshaking {
            Outcome::LoginFailed
        } else {
            Outcome::TlsFailed
        }
    }

    fn peer_closed(&mut self, context: &mut ReadContext<'_>) -> ReadResult {
        if let ProtocolState::Http1(parser) = &self.speech
            && parser.closed()
            && self.is_asked
            && self.is_answering
            && let Some(request) = context.slots.get_mut(self.slot)
        {
            // The regular end of a response without a length.
            self.reusable = false;
            self.is_asked = false;
            let at = sys::monotonic_ns();
            finish_http1(parser, self.slot, request, at, &mut context.set_cookies, context.ended);
            return ReadResult::All;
        }
        ReadResult::Broken(match self.stage {
            Stage::Handshaking(_) => self.closed_early(),
            _ if self.is_reset => Outcome::ConnectionReset,
            _ => Outcome::ConnectionClosed,
        })
    }
}
