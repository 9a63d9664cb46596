//! One connection: a socket, TLS if the target uses it, and HTTP/1.1, HTTP/2 or SQL on top. It
//! moves bytes and reports which requests ended; the loop decides when and why.

mod giving;
mod taking;
mod talk;

use std::collections::VecDeque;
use std::io::{self, BufRead as _, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use holdup_protocol::database::Login;
use holdup_protocol::http::{Wanted, http1, http2};
use rustls::ClientConnection;

pub use self::giving::Going;
use self::taking::finish_http1;
pub use self::talk::Language;
use self::talk::Talk;
use super::clock::Clock;
use super::cookies::Cookies;
use super::lanes::{InFlight, Lanes};
use super::outcome::Outcome;
use super::plan::Form;
use super::refusals::Refusals;
use super::tls::Tls;
use super::trace::Mark;
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

/// A request that ended.
pub struct Ended {
    /// Its slot.
    pub lane: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When its last byte arrived.
    pub at: i64,
    /// Whether to send it again instead.
    pub again: Again,
}

/// Whether a request that the server did not process may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The server processed it, or does not say.
    No,
    /// The server refused it, and may refuse it again: resend once.
    Once,
    /// The server is closing a connection on which it has answered other requests: a new connection
    /// should work as well.
    Always,
}

/// The result of reading.
pub enum Received {
    /// Everything that had arrived was read.
    All,
    /// There may be more: read again without waiting for an event.
    Some,
    /// The connection is broken; requests still on it ended with this outcome.
    Broken(Outcome),
}

/// Values of `Set-Cookie` headers, each with the slot of the request it answered.
pub type SetCookies = Vec<(u32, Box<[u8]>)>;

/// What the loop lends a connection while it reads.
pub struct Desk<'a> {
    /// The buffer for reading.
    pub buffer: &'a mut [u8],
    /// All slots.
    pub lanes: &'a mut Lanes,
    /// Requests that ended.
    pub ended: &'a mut Vec<Ended>,
    /// `Set-Cookie` headers by slot, if cookies are kept.
    pub set_cookies: Option<&'a mut SetCookies>,
    /// Most bytes of a body.
    pub max_response_bytes: u64,
    /// Turns the kernel's time stamps into moments.
    pub clock: &'a Clock,
    /// TLS, if the target speaks it.
    pub tls: Option<&'a Tls>,
    /// The last response head of each operation; the next is likely to be equal.
    pub memos: &'a mut [http1::HeadMemo],
    /// Texts of the database's refusals.
    pub refusals: &'a mut Refusals,
}

enum Speech {
    Http1(http1::Parser),
    Http2(Box<http2::Session>),
    Sql(Box<Talk>),
}

impl Speech {
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
    speech: Speech,
    /// HTTP/1: the slot, and how much of its request has been written.
    lane: u32,
    written: usize,
    is_written: bool,
    reusable: bool,
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
    /// Without a socket; its first slot is `lane`.
    pub fn new(lane: u32, language: &Language) -> Self {
        let speech = match language {
            Language::Sql(address, login, manner) => {
                Speech::Sql(Box::new(Talk::new(Arc::clone(address), Arc::clone(login), manner.clone())))
            }
            Language::Http(HttpVersion::Http1) => Speech::Http1(http1::Parser::new()),
            Language::Http(HttpVersion::Http2) => Speech::Http2(Box::new(http2::Session::new(http2::Config {
                max_streams: 1,
                wanted: Wanted::default(),
            }))),
        };
        Self {
            socket: None,
            stage: Stage::Closed,
            generation: 0,
            tls: None,
            speech,
            lane,
            written: 0,
            is_written: true,
            reusable: true,
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
            Speech::Http1(parser) => Some(parser),
            Speech::Http2(_) | Speech::Sql(_) => None,
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
    pub fn connected(&mut self, tls: Option<&Tls>, streams: u32, wanted: Wanted) -> Result<bool, Outcome> {
        let (Some(socket), Stage::Connecting(since)) = (&self.socket, self.stage) else { return Ok(false) };
        if let Some(error) = sys::connect_error(socket) {
            return Err(Outcome::of_connecting(&error));
        }
        self.reusable = true;
        if let Speech::Http2(session) = &mut self.speech {
            **session = http2::Session::new(http2::Config { max_streams: streams, wanted });
        }
        if let Speech::Sql(talk) = &mut self.speech {
            **talk = talk.again();
            // It is open only after the login.
            self.stage = Stage::Handshaking(since);
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
                self.tls = Some(tls.connection().map_err(|e| Outcome::of_tls(&e, self.speech.version()))?);
                self.stage = Stage::Handshaking(since);
                self.push_out()?;
                Ok(false)
            }
        }
    }

    /// The next socket uses this account.
    pub fn log_in_as(&mut self, login: &Arc<Login>) {
        if let Speech::Sql(talk) = &mut self.speech {
            talk.login = Arc::clone(login);
        }
    }

    /// Ends the database session properly; servers count connections that close without it.
    pub fn say_goodbye(&mut self) {
        if let (Speech::Sql(talk), Stage::Open) = (&mut self.speech, self.stage) {
            talk.session.quit();
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
        self.is_asked = false;
        self.has_answered = false;
        self.is_reset = false;
        self.spare.clear();
        self.waiting.clear();
    }

    /// Whether further requests can be sent on it.
    pub fn is_reusable(&self) -> bool {
        match &self.speech {
            Speech::Http1(_) | Speech::Sql(_) => self.reusable,
            // A session without room although no stream is open accepts no more: the server has
            // announced that it closes.
            Speech::Http2(session) => session.room() > 0 || session.open_streams() > 0,
        }
    }

    /// How many more requests can be sent now.
    pub fn room(&self) -> u32 {
        match &self.speech {
            Speech::Http1(_) | Speech::Sql(_) => 1,
            Speech::Http2(session) => session.room(),
        }
    }

    /// Whether a request that was on the connection when it broke may be sent again on another. The
    /// connection must have answered a request before, so that the server most likely closed it as
    /// idle, and no byte of a response may have come. RFC 9110, section 9.2.2, allows it for
    /// requests that change nothing, and for those that were never sent.
    pub fn may_repeat(&self, request: &InFlight, method: &str) -> bool {
        let (is_untouched, is_unsent) = match &self.speech {
            Speech::Http1(_) => (!self.is_answering, self.is_asked && self.written == 0),
            Speech::Http2(_) => (request.status == 0, request.is_waiting),
            // The statement may have run before the connection broke.
            Speech::Sql(_) => (false, false),
        };
        self.has_answered && is_untouched && (is_unsent || matches!(method, "GET" | "HEAD"))
    }

    /// Begins to send the request of `lane`. HTTP/2 collects frames until [`Self::flush_session`].
    ///
    /// # Errors
    /// How the connection broke.
    pub fn start(&mut self, lane: u32, what: &Going<'_>, scratch: &mut Vec<u8>) -> Result<(), Outcome> {
        let Going { form, mark, is_head, wanted } = *what;
        match (&mut self.speech, form) {
            (Speech::Http1(parser), Form::Http1(bytes, _)) => {
                parser.begin(is_head, wanted);
                self.written = 0;
                self.is_written = false;
                self.is_asked = true;
                self.is_answering = false;
                self.write(bytes, mark, scratch)
            }
            (Speech::Http2(session), Form::Http2(template)) => {
                if session.send_marked(template, lane, mark.map(|mark| (mark.at, mark.text()))) {
                    Ok(())
                } else {
                    Err(Outcome::StreamReset)
                }
            }
            (Speech::Sql(talk), Form::Sql(statements, keeps)) => {
                let comment = mark.map(Mark::comment);
                let comment = comment.as_ref().map_or(&[][..], |comment| comment);
                let taken = talk.session.execute_with(statements, *keeps, comment);
                taken.map_err(|_| Outcome::StatementFailed)?;
                self.is_asked = true;
                self.flush_session()
            }
            _ => Err(Outcome::BadResponse),
        }
    }

    /// Gives up the request of `lane` and keeps the connection, if the protocol allows that.
    pub fn cancel(&mut self, lane: u32) -> bool {
        match &mut self.speech {
            Speech::Http1(_) | Speech::Sql(_) => false,
            Speech::Http2(session) => {
                session.cancel(lane);
                self.waiting.retain(|waiting| *waiting != lane);
                self.stage == Stage::Open
            }
        }
    }

    /// Reads what has arrived; with `to_end`, until the end of the stream, which is known to
    /// follow. If it contained the last handshake message, the stage is open afterwards.
    pub fn receive(&mut self, desk: &mut Desk<'_>, to_end: bool) -> Received {
        for _ in 0..MOST_READS {
            let Some(socket) = &self.socket else { return Received::All };
            let (count, stamp) = match sys::receive(socket, desk.buffer) {
                Ok(read) => read,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Received::All,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) if matches!((&self.speech, self.stage), (Speech::Sql(_), Stage::Handshaking(_))) => {
                    return Received::Broken(self.closed_early());
                }
                Err(e) => return Received::Broken(Outcome::of_broken(&e)),
            };
            if count == 0 {
                return self.peer_closed(desk);
            }
            let result = if matches!(self.speech, Speech::Sql(_)) {
                self.take_sql_bytes(count, stamp, desk)
            } else if self.tls.is_some() {
                self.take_encrypted(count, stamp, desk)
            } else {
                let buffer = std::mem::take(&mut desk.buffer);
                let result = self.take(&buffer[..count], stamp, desk);
                desk.buffer = buffer;
                result
            };
            if let Err(outcome) = result {
                return Received::Broken(outcome);
            }
            // The epoll set reports every change, so a read that did not fill the buffer took
            // everything.
            if count < desk.buffer.len() && !to_end {
                return Received::All;
            }
        }
        Received::Some
    }

    /// Takes bytes of a database, encrypted or not, and sends the replies of the protocol.
    fn take_sql_bytes(&mut self, count: usize, stamp: Option<i64>, desk: &mut Desk<'_>) -> Result<(), Outcome> {
        if self.tls.is_some() {
            self.take_encrypted(count, stamp, desk)?;
        } else {
            let buffer = std::mem::take(&mut desk.buffer);
            let result = self.take(&buffer[..count], stamp, desk);
            desk.buffer = buffer;
            result?;
        }
        if self.begins_tls && self.tls.is_none() {
            // Everything before the TLS client hello is sent in clear text.
            self.flush_clear()?;
            let tls = desk.tls.ok_or(Outcome::TlsFailed)?;
            self.tls = Some(tls.connection().map_err(|e| Outcome::of_tls(&e, self.speech.version()))?);
            self.push_out()?;
        }
        self.flush_session()
    }

    fn take_encrypted(&mut self, count: usize, stamp: Option<i64>, desk: &mut Desk<'_>) -> Result<(), Outcome> {
        let Some(mut tls) = self.tls.take() else { return Ok(()) };
        let buffer = std::mem::take(&mut desk.buffer);
        let result = self.decrypt(&mut tls, &buffer[..count], stamp, desk);
        desk.buffer = buffer;
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
        desk: &mut Desk<'_>,
    ) -> Result<(), Outcome> {
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes).map_err(|_| Outcome::TlsFailed)?;
            let state = tls.process_new_packets().map_err(|e| Outcome::of_tls(&e, self.speech.version()))?;
            if matches!(self.stage, Stage::Handshaking(_)) && !tls.is_handshaking() {
                if matches!(self.speech, Speech::Http2(_)) && tls.alpn_protocol() != Some(HttpVersion::Http2.alpn()) {
                    return Err(Outcome::Http2Refused);
                }
                if let Speech::Sql(talk) = &mut self.speech {
                    // The login continues from here, over several reads.
                    if std::mem::take(&mut self.begins_tls) {
                        talk.session.tls_started();
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
                self.take(plain, stamp, desk)?;
                tls.reader().consume(length);
                left -= length;
            }
        }
        Ok(())
    }

    /// The outcome when the server closes before anything could be sent.
    fn closed_early(&self) -> Outcome {
        let is_handshaking = self.tls.as_ref().is_some_and(|tls| tls.is_handshaking());
        if matches!(self.speech, Speech::Sql(_)) && !is_handshaking { Outcome::LoginFailed } else { Outcome::TlsFailed }
    }

    fn peer_closed(&mut self, desk: &mut Desk<'_>) -> Received {
        if let Speech::Http1(parser) = &self.speech
            && parser.closed()
            && self.is_asked
            && self.is_answering
            && let Some(request) = desk.lanes.get_mut(self.lane)
        {
            // The regular end of a response without a length.
            self.reusable = false;
            self.is_asked = false;
            let at = sys::monotonic_ns();
            finish_http1(parser, self.lane, request, at, &mut desk.set_cookies, desk.ended);
            return Received::All;
        }
        Received::Broken(match self.stage {
            Stage::Handshaking(_) => self.closed_early(),
            _ if self.is_reset => Outcome::ConnectionReset,
            _ => Outcome::ConnectionClosed,
        })
    }
}
