//! MySQL's protocol, version 10, with MariaDB's authentication beside MySQL's own. Results end with
//! the classic EOF packet, not with the newer OK (`CLIENT_DEPRECATE_EOF`): every server of either
//! kind supports it, so that one way is enough.

mod auth;
mod commands;
mod ed25519;
mod greeting;
mod phase;
mod response;
pub(crate) mod row;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::database::answer::{Failure, StatementAnswer};
use crate::database::cursor::Cursor;
use crate::database::event::{Error, Event, ExecuteError};
use crate::database::inbox::{Events, Frame, HEAD_BYTES, Receive};
use crate::database::job::Job;
use crate::database::login::{IN_THE_CLEAR, Login, TlsMode};
use crate::database::outbox::Outbox;
use crate::database::prepared::Prepared;
use crate::database::statement::Statement;
use auth::Plugin;
use greeting::Greeting;
use phase::{Handle, Phase};

/// Bytes before a packet's payload: three for its length, one for its number.
const HEADER_BYTES: usize = 4;

/// A payload of this length continues in the next packet.
const FULL_PAYLOAD: usize = 0xff_ffff;

/// Most bytes of a packet that is neither a row nor the definition of a column.
const MAX_PACKET_BYTES: usize = 64 << 10;

/// Status flags of the server.
mod status {
    pub(super) const IN_TRANSACTION: u16 = 1;
    pub(super) const MORE_RESULTS: u16 = 8;
}

/// First bytes of answers.
mod head {
    pub(super) const OK: u8 = 0;
    pub(super) const MORE_DATA: u8 = 1;
    pub(super) const LOCAL_FILE: u8 = 0xfb;
    pub(super) const EOF: u8 = 0xfe;
    pub(super) const ERROR: u8 = 0xff;
}

/// State of the connection.
enum State {
    /// The server speaks first.
    Greeting,
    /// Waiting for the caller to start TLS.
    Tls(Box<Greeting>),
    /// Authentication is under way.
    Login(Plugin),
    Idle,
    /// A statement is being executed.
    Busy(Phase),
    /// A transaction left open by a failed statement is being rolled back.
    RollingBack,
    /// The session was closed.
    Over,
}

/// One connection.
pub(crate) struct Mysql {
    login: Arc<Login>,
    tls: TlsMode,
    state: State,
    pub(crate) outbox: Outbox,
    job: Job,
    pub(crate) answer: StatementAnswer,
    prepared: Prepared<Handle>,
    /// A statement that was prepared for one use.
    loose: Option<u32>,
    /// Number of the next packet, of either side.
    sequence: u8,
    /// The last packet was full: this one continues it.
    goes_on: bool,
    status: u16,
    /// Do not roll back a transaction that a failed statement left open.
    pub(crate) leaves_transactions: bool,
}

impl Mysql {
    pub(crate) fn new(login: Arc<Login>, tls: TlsMode) -> Self {
        Self {
            login,
            tls,
            state: State::Greeting,
            outbox: Outbox::default(),
            job: Job::default(),
            answer: StatementAnswer::default(),
            prepared: Prepared::default(),
            loose: None,
            sequence: 0,
            goes_on: false,
            status: 0,
            leaves_transactions: false,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        self.status & status::IN_TRANSACTION != 0
    }

    pub(crate) fn tls_started(&mut self) {
        if let State::Tls(greeting) = std::mem::replace(&mut self.state, State::Over) {
            self.answer_greeting(&greeting, true);
        }
    }

    pub(crate) fn execute(
        &mut self,
        statements: &[Statement],
        keep_row: bool,
        comment: &[u8],
    ) -> Result<(), ExecuteError> {
        self.job.fill(statements, comment)?;
        self.answer.begin(keep_row);
        self.send();
        Ok(())
    }

    pub(crate) fn quit(&mut self) {
        if matches!(self.state, State::Idle | State::Busy(_) | State::RollingBack) {
            self.command(commands::QUIT, |_| ());
        }
        self.state = State::Over;
    }

    /// Replies to the server's packet, with the next number.
    fn reply(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.outbox.mysql(self.sequence, write);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn log_in(
        &mut self,
        payload: &[u8],
        is_secure: bool,
        plugin: Plugin,
        events: &mut Events<'_>,
    ) -> Result<(), Error> {
        match payload.first() {
            Some(&head::OK) => {
                self.status = response::Ok::read(payload)?.status;
                self.state = State::Idle;
                events(Event::LoggedIn);
                Ok(())
            }
            Some(&head::ERROR) => Err(failure(payload)?.refused()),
            Some(&head::EOF) if !plugin.was_switched => {
                let (plugin, proof) = Plugin::switched(&payload[1..], &self.login, is_secure)?;
                self.reply(|out| out.extend_from_slice(&proof));
                self.state = State::Login(plugin);
                Ok(())
            }
            Some(&head::MORE_DATA) => {
                let (plugin, proof) = plugin.more(&payload[1..], &self.login)?;
                if let Some(proof) = proof {
                    self.reply(|out| out.extend_from_slice(&proof));
                }
                self.state = State::Login(plugin);
                Ok(())
            }
            _ => Err(Error::Protocol("an unexpected packet in the login")),
        }
    }
}

impl Receive for Mysql {
    fn frame(&self, head: &[u8]) -> Result<Option<Frame>, Error> {
        let &[a, b, c, _, ref payload @ ..] = head else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let whole = HEADER_BYTES + length;
        if self.goes_on {
            return Ok(Some(Frame::new(whole, 0)));
        }
        let Some(&first) = payload.first() else {
            return Ok((length == 0).then(|| Frame::new(whole, whole)));
        };
        let keep = match &self.state {
            State::Busy(phase) => phase.keep(length, first, &self.answer),
            _ => length.min(MAX_PACKET_BYTES),
        };
        if keep > 0 && length == FULL_PAYLOAD {
            return Err(Error::TooLarge("a packet"));
        }
        if matches!(self.state, State::Greeting | State::Login(_)) && length > MAX_PACKET_BYTES {
            return Err(Error::TooLarge("a packet of the login"));
        }
        Ok(Some(Frame::new(whole, HEADER_BYTES + keep)))
    }

    fn receive(&mut self, kept: &[u8], length: usize, events: &mut Events<'_>) -> Result<(), Error> {
        let mut cursor = Cursor(kept);
        let [.., sequence] = cursor.array::<HEADER_BYTES>()?;
        let payload = cursor.0;
        self.answer.bytes += length as u64;
        if matches!(self.state, State::Idle) {
            // Unasked, the server only announces that it closes, with any packet number.
            return Err(match payload.first() {
                Some(&head::ERROR) => failure(payload)?.closed(),
                _ => Error::Protocol("an unexpected packet"),
            });
        }
        if sequence != self.sequence && !matches!(self.state, State::Over) {
            return Err(Error::Protocol("packets are out of order"));
        }
        self.sequence = sequence.wrapping_add(1);
        let is_full = length == HEADER_BYTES + FULL_PAYLOAD;
        if std::mem::replace(&mut self.goes_on, is_full) {
            return Ok(());
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Greeting => self.greeted(payload, events),
            State::Tls(_) => Err(Error::Protocol(IN_THE_CLEAR)),
            State::Login(plugin) => {
                let is_secure = self.tls == TlsMode::On;
                self.log_in(payload, is_secure, plugin, events)
            }
            State::Busy(phase) => self.answered(phase, payload, length - HEADER_BYTES, events),
            State::RollingBack => {
                if let Some(&head::OK) = payload.first() {
                    self.status = response::Ok::read(payload)?.status;
                } else {
                    self.status &= !status::IN_TRANSACTION;
                }
                self.finish(events);
                Ok(())
            }
            State::Idle | State::Over => Ok(()),
        }
    }
}

/// Number and message of an error packet. Before the login it has no SQLSTATE.
fn failure(payload: &[u8]) -> Result<Failure, Error> {
    let mut cursor = Cursor(payload);
    cursor.u8()?;
    let number = cursor.u16_le()?;
    let message = match cursor.0 {
        [b'#', _, _, _, _, _, message @ ..] => message,
        message => message,
    };
    Ok(Failure::new(number.to_string(), message))
}

const _: () = assert!(HEAD_BYTES > HEADER_BYTES, "the first byte of a packet says what it is");
