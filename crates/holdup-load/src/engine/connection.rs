//! One connection: a socket, TLS if the target uses it, and the driver of its protocol. It moves
//! bytes and reports which requests ended; the loop decides when and why.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use holdup_protocol::database::Login;
use holdup_protocol::http::WantedParts;
use rustls::ClientConnection;

use super::cookies::Cookies;
use super::driver::{Driver, OutgoingRequest};
use super::intake::Intake;
use super::link::Link;
use super::outcome::Outcome;
use super::slots::Slots;
use super::tls::Tls;
use crate::scenario::HttpVersion;
use crate::sys;

/// Buffers read from one connection before the others get their turn.
const MOST_READS: usize = 16;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Without a socket.
    Closed,
    /// The kernel is connecting since this time.
    Connecting(i64),
    /// The TLS handshake is under way; connecting began at this time.
    Handshaking(i64),
    /// Requests can be sent.
    Open,
}

/// The result of reading.
pub enum ReadResult {
    /// Everything that had arrived was read.
    All,
    /// There may be more: read again without waiting for an event.
    Some,
    /// The connection is broken; requests still on it ended with this outcome.
    Broken(Outcome),
}

/// One of the loop's connections: at most one socket at a time, and what it speaks.
pub struct Connection {
    link: Link,
    stage: Stage,
    /// Increases with every socket, so that late events of an earlier one are recognised.
    generation: u32,
    /// What is spoken on it.
    pub driver: Driver,
    /// Whether a socket carries further requests after the first, and whether it has carried one.
    keeps_alive: bool,
    is_used: bool,
    /// Free slots that are unused because the server allows no more streams now.
    pub spare: Vec<u32>,
    /// Slots whose requests wait for the server to allow more streams.
    pub waiting: VecDeque<u32>,
    /// The cookies of the user who has this connection.
    pub cookies: Option<Box<Cookies>>,
}

impl Connection {
    /// Without a socket. A socket carries one request unless `keeps_alive`.
    pub fn new(driver: Driver, keeps_alive: bool) -> Self {
        Self {
            link: Link::default(),
            stage: Stage::Closed,
            generation: 0,
            driver,
            keeps_alive,
            is_used: false,
            spare: Vec::new(),
            waiting: VecDeque::new(),
            cookies: None,
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

    /// Whether further requests can be sent on it.
    pub fn is_reusable(&self) -> bool {
        (self.keeps_alive || !self.is_used) && self.driver.is_reusable()
    }

    /// Starts to connect; `token` identifies it in the epoll set.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connect(&mut self, address: &SocketAddr, epoll: &sys::Epoll, token: u64, now: i64) -> io::Result<()> {
        let socket = sys::connect(address)?;
        epoll.add(&socket, token)?;
        self.link.socket = Some(socket);
        self.stage = Stage::Connecting(now);
        Ok(())
    }

    /// Checks whether the kernel has connected, and starts TLS if it is used. True if requests can
    /// be sent.
    ///
    /// # Errors
    /// How connecting failed.
    pub fn connected(&mut self, tls: Option<&Tls>, streams: u32, wanted: WantedParts) -> Result<bool, Outcome> {
        let (Some(socket), Stage::Connecting(since)) = (&self.link.socket, self.stage) else { return Ok(false) };
        if let Some(error) = sys::connect_error(socket) {
            return Err(Outcome::from_connect_error(&error));
        }
        self.driver.connect(streams, wanted);
        if let Some(tls) = tls.filter(|_| self.driver.begins_encrypted()) {
            self.stage = Stage::Handshaking(since);
            self.begin_tls(tls)?;
            return Ok(false);
        }
        self.stage = if self.driver.logs_in() { Stage::Handshaking(since) } else { Stage::Open };
        self.flush()?;
        Ok(self.stage == Stage::Open)
    }

    fn begin_tls(&mut self, tls: &Tls) -> Result<(), Outcome> {
        let encrypted = tls.connection().map_err(|e| Outcome::from_tls_error(&e, self.driver.version()))?;
        self.link.tls = Some(encrypted);
        self.link.push_out().map(drop)
    }

    /// The next socket uses this account.
    pub fn log_in_as(&mut self, login: &Arc<Login>) {
        if let Some(database) = self.driver.database() {
            database.login = Arc::clone(login);
        }
    }

    /// Ends the database session properly; servers count connections that close without it.
    pub fn say_goodbye(&mut self) {
        if let (Some(database), Stage::Open) = (self.driver.database(), self.stage) {
            database.session.quit();
            // Do not wait for what cannot be written at once.
            let _ = self.flush();
        }
    }

    /// Closes the socket.
    pub fn close(&mut self) {
        // Dropping the socket closes it and takes it out of the epoll set.
        self.link = Link::default();
        self.driver.close();
        self.stage = Stage::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.is_used = false;
        self.spare.clear();
        self.waiting.clear();
    }

    /// Begins to execute the request of `slot`. HTTP/2 collects frames until [`Self::flush`].
    ///
    /// # Errors
    /// How the connection broke.
    pub fn start(&mut self, slot: u32, what: &OutgoingRequest<'_>, scratch: &mut Vec<u8>) -> Result<(), Outcome> {
        self.is_used = true;
        self.driver.execute(slot, what)?;
        match self.driver {
            Driver::Http2(_) => Ok(()),
            Driver::Http1(_) | Driver::Database(_) => self.send(what, scratch),
        }
    }

    /// Sends as much of a request as the socket takes.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn send(&mut self, what: &OutgoingRequest<'_>, scratch: &mut Vec<u8>) -> Result<(), Outcome> {
        self.driver.send(&mut self.link, what, scratch)
    }

    /// Sends as much of what its driver has collected as the socket takes.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn flush(&mut self) -> Result<(), Outcome> {
        match self.stage {
            Stage::Open => self.driver.flush(&mut self.link),
            Stage::Handshaking(_) if self.driver.logs_in() => self.driver.flush(&mut self.link),
            // The output belongs to the old socket and must not be sent on the next.
            _ => Ok(()),
        }
    }

    /// The socket has room again, and no request is to be sent: sends what else there is.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn push_on(&mut self) -> Result<(), Outcome> {
        self.flush()?;
        self.link.push_out().map(drop)
    }

    /// Whether something is left to send.
    pub fn has_output(&self) -> bool {
        self.driver.has_output() || self.link.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Gives up the request of `slot` and keeps the connection, if the protocol allows that.
    pub fn cancel(&mut self, slot: u32) -> bool {
        if !self.driver.cancel(slot) {
            return false;
        }
        self.waiting.retain(|waiting| *waiting != slot);
        self.stage == Stage::Open && self.keeps_alive
    }

    /// Reads what has arrived; with `to_end`, until the end of the stream, which is known to
    /// follow. If it contained the last handshake message, the stage is open afterwards.
    pub fn receive(&mut self, slots: &mut Slots, intake: &mut Intake<'_>, to_end: bool) -> ReadResult {
        let mut buffer = std::mem::take(&mut intake.buffer);
        let result = self.receive_with(&mut buffer, slots, intake, to_end);
        intake.buffer = buffer;
        result.unwrap_or_else(ReadResult::Broken)
    }

    fn receive_with(
        &mut self,
        buffer: &mut [u8],
        slots: &mut Slots,
        intake: &mut Intake<'_>,
        to_end: bool,
    ) -> Result<ReadResult, Outcome> {
        for _ in 0..MOST_READS {
            let Some(socket) = &self.link.socket else { return Ok(ReadResult::All) };
            let (count, stamp) = match sys::receive(socket, buffer) {
                Ok(read) => read,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(ReadResult::All),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) if self.driver.logs_in() && matches!(self.stage, Stage::Handshaking(_)) => {
                    return Err(self.closed_early());
                }
                Err(e) => return Err(Outcome::from_io_error(&e)),
            };
            if count == 0 {
                return self.peer_closed(slots, intake);
            }
            if self.link.tls.is_some() {
                self.take_encrypted(&buffer[..count], stamp, slots, intake)?;
            } else {
                self.take(&buffer[..count], stamp, slots, intake)?;
            }
            if self.driver.logs_in() {
                self.reply(intake.tls)?;
            }
            // The epoll set reports every change, so a read that did not fill the buffer took
            // everything.
            if count < buffer.len() && !to_end {
                return Ok(ReadResult::All);
            }
        }
        Ok(ReadResult::Some)
    }

    fn take(
        &mut self,
        bytes: &[u8],
        stamp: Option<i64>,
        slots: &mut Slots,
        intake: &mut Intake<'_>,
    ) -> Result<(), Outcome> {
        if self.driver.take(bytes, stamp, slots, intake)? {
            self.stage = Stage::Open;
        }
        Ok(())
    }

    /// Sends a database the replies of its protocol, and begins TLS if both agreed to it.
    fn reply(&mut self, tls: Option<&Tls>) -> Result<(), Outcome> {
        if self.link.tls.is_none() && self.driver.database().is_some_and(|database| database.begins_tls) {
            // Everything before the TLS client hello is sent in clear text.
            self.driver.flush(&mut self.link)?;
            self.begin_tls(tls.ok_or(Outcome::TlsFailed)?)?;
        }
        self.flush()
    }

    fn take_encrypted(
        &mut self,
        bytes: &[u8],
        stamp: Option<i64>,
        slots: &mut Slots,
        intake: &mut Intake<'_>,
    ) -> Result<(), Outcome> {
        let Some(mut tls) = self.link.tls.take() else { return Ok(()) };
        let result = self.decrypt(&mut tls, bytes, stamp, slots, intake);
        self.link.tls = Some(tls);
        result?;
        // Replies of the handshake, or of a close.
        self.link.push_out().map(drop)
    }

    fn decrypt(
        &mut self,
        tls: &mut ClientConnection,
        mut bytes: &[u8],
        stamp: Option<i64>,
        slots: &mut Slots,
        intake: &mut Intake<'_>,
    ) -> Result<(), Outcome> {
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes).map_err(|_| Outcome::TlsFailed)?;
            let state = tls.process_new_packets().map_err(|e| Outcome::from_tls_error(&e, self.driver.version()))?;
            if matches!(self.stage, Stage::Handshaking(_)) && !tls.is_handshaking() {
                let is_http2 = self.driver.version() == HttpVersion::Http2;
                if is_http2 && tls.alpn_protocol() != Some(HttpVersion::Http2.alpn()) {
                    return Err(Outcome::Http2Refused);
                }
                match self.driver.database() {
                    // The login continues from here, over several reads.
                    Some(database) => {
                        if std::mem::take(&mut database.begins_tls) {
                            database.session.tls_started();
                        }
                    }
                    None => self.stage = Stage::Open,
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
                self.take(plain, stamp, slots, intake)?;
                tls.reader().consume(length);
                left -= length;
            }
        }
        Ok(())
    }

    /// The outcome when the server closes before anything could be sent.
    fn closed_early(&self) -> Outcome {
        if self.driver.logs_in() && !self.link.is_handshaking() { Outcome::LoginFailed } else { Outcome::TlsFailed }
    }

    fn peer_closed(&mut self, slots: &mut Slots, intake: &mut Intake<'_>) -> Result<ReadResult, Outcome> {
        if self.driver.peer_closed(slots, intake) {
            return Ok(ReadResult::All);
        }
        Err(match self.stage {
            Stage::Handshaking(_) => self.closed_early(),
            _ if self.link.is_reset => Outcome::ConnectionReset,
            _ => Outcome::ConnectionClosed,
        })
    }
}
