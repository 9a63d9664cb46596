//! PostgreSQL's protocol, version 3.0: the simple query for plain texts, the extended one for
//! prepared statements and those with parameters, with all messages of a statement sent at once.
//! Parameters and results travel as text. `COPY` from the client is refused, unless the caller gives
//! its data beforehand; the data of a `COPY` to it is skipped.

mod auth;
mod commands;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::database::answer::{Column, Failure, MAX_KEPT_BYTES, StatementAnswer};
use crate::database::cursor::Cursor;
use crate::database::event::{Error, Event, ExecuteError};
use crate::database::inbox::{Events, Frame, HEAD_BYTES, Receive};
use crate::database::job::Job;
use crate::database::login::{IN_THE_CLEAR, Login, TlsMode};
use crate::database::outbox::Outbox;
use crate::database::prepared::Prepared;
use crate::database::statement::{MAX_STATEMENT_BYTES, Statement};
use auth::Step;

/// Most bytes of a message that is neither a row nor its description.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Bytes of a notice that contain its severity: in the server's language, and then in English.
const NOTICE_BYTES: usize = 96;

/// The server's messages, by their first byte.
mod kind {
    pub(super) const AUTHENTICATION: u8 = b'R';
    pub(super) const ERROR: u8 = b'E';
    pub(super) const READY: u8 = b'Z';
    pub(super) const COLUMNS: u8 = b'T';
    pub(super) const ROW: u8 = b'D';
    pub(super) const COMPLETE: u8 = b'C';
    pub(super) const PARSED: u8 = b'1';
    pub(super) const COPY_IN: u8 = b'G';
    pub(super) const NOTICE: u8 = b'N';
    /// Notices, settings, notifications: at any time, and ignored.
    pub(super) const ANY_TIME: &[u8] = b"NSA";
    /// The key for cancelling, a lower version of the protocol.
    pub(super) const LOGIN: &[u8] = b"Kv";
    /// Bound, closed, no columns, types of parameters, empty, suspended; copies to the client and
    /// their end.
    pub(super) const BUSY: &[u8] = b"23ntIsHdc";
}

/// The server's code for being in no transaction.
const NO_TRANSACTION: u8 = b'I';

/// State of the connection.
enum State {
    /// One byte says whether there will be TLS.
    TlsAnswer,
    /// Waiting for the caller to start it.
    Tls,
    /// Authentication is under way.
    Login(Step),
    Idle,
    /// A statement is being executed.
    Busy,
    /// A transaction left open by a failed statement is being rolled back.
    RollingBack,
    /// The session was closed.
    Over,
}

/// One connection.
pub(crate) struct Postgres {
    login: Arc<Login>,
    tls: TlsMode,
    state: State,
    pub(crate) outbox: Outbox,
    job: Job,
    pub(crate) answer: StatementAnswer,
    prepared: Prepared<u64>,
    /// Number in the name of the statement prepared last.
    names: u64,
    /// The statement whose preparation the server has not yet confirmed.
    parsing: Option<u64>,
    /// A statement that is not needed any more, to be closed with the next message.
    stale: Option<u64>,
    /// How the running statement is sent, and (below) whether a copy from the client was refused.
    is_extended: bool,
    has_refused_copy: bool,
    /// Rows for the `COPY` that is running.
    copied: Option<Vec<u8>>,
    transaction: u8,
    /// Do not roll back a transaction that a failed statement left open.
    pub(crate) leaves_transactions: bool,
}

impl Postgres {
    pub(crate) fn new(login: Arc<Login>, tls: TlsMode) -> Self {
        let mut postgres = Self {
            login,
            tls,
            state: State::TlsAnswer,
            outbox: Outbox::default(),
            job: Job::default(),
            answer: StatementAnswer::default(),
            prepared: Prepared::default(),
            names: 0,
            parsing: None,
            stale: None,
            is_extended: false,
            has_refused_copy: false,
            copied: None,
            transaction: NO_TRANSACTION,
            leaves_transactions: false,
        };
        match tls {
            TlsMode::Off => postgres.start_up(),
            TlsMode::On => postgres.ask_for_tls(),
        }
        postgres
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        self.transaction != NO_TRANSACTION
    }

    pub(crate) fn tls_started(&mut self) {
        if matches!(self.state, State::Tls) {
            self.start_up();
        }
    }

    pub(crate) fn execute(
        &mut self,
        statements: &[Statement],
        keep_row: bool,
        comment: &[u8],
    ) -> Result<(), ExecuteError> {
        if statements.iter().any(|statement| statement.text.contains('\0')) {
            return Err(ExecuteError::HoldsNul);
        }
        self.job.fill(statements, comment)?;
        self.copied = None;
        self.answer.begin(keep_row);
        self.send();
        Ok(())
    }

    /// Executes a `COPY … FROM STDIN` with these rows.
    pub(crate) fn copy(&mut self, statement: Statement, rows: Vec<u8>) -> Result<(), ExecuteError> {
        if rows.len() > MAX_STATEMENT_BYTES {
            return Err(ExecuteError::TooLarge);
        }
        self.execute(&[statement], false, b"")?;
        self.copied = Some(rows);
        Ok(())
    }

    pub(crate) fn quit(&mut self) {
        if matches!(self.state, State::Idle | State::Busy | State::RollingBack) {
            self.terminate();
        }
        self.state = State::Over;
    }

    fn logging_in(&mut self, step: Step, kind: u8, body: &[u8], events: &mut Events<'_>) -> Result<(), Error> {
        match kind {
            kind::AUTHENTICATION => {
                let step = self.authenticate(step, body)?;
                self.state = State::Login(step);
            }
            kind::ERROR => return Err(Report::read(body)?.failure.refused()),
            kind::READY if matches!(step, Step::Accepted) => {
                self.state = State::Idle;
                events(Event::LoggedIn);
            }
            _ if kind::ANY_TIME.contains(&kind) || kind::LOGIN.contains(&kind) => self.state = State::Login(step),
            _ => return Err(Error::Protocol("an unexpected message in the login")),
        }
        Ok(())
    }

    fn answered(&mut self, kind: u8, body: &[u8], is_whole: bool, events: &mut Events<'_>) -> Result<(), Error> {
        self.state = State::Busy;
        match kind {
            kind::COLUMNS if self.answer.wants_row() => {
                if is_whole {
                    self.describe(body)?;
                } else {
                    self.answer.no_row();
                }
            }
            kind::ROW => {
                self.answer.count_row(body, body.len());
                if self.answer.wants_row() {
                    if is_whole {
                        self.answer.row(self.job.at, &values(body)?, events)?;
                    } else {
                        self.answer.no_row();
                    }
                }
            }
            kind::COMPLETE => self.answer.affected = self.answer.affected.saturating_add(affected(body)),
            kind::PARSED => self.parsed(),
            kind::ERROR => {
                let report = Report::read(body)?;
                if report.is_last {
                    return Err(report.failure.closed());
                }
                self.answer.failure.get_or_insert(report.failure);
            }
            kind::COPY_IN => match self.copied.take() {
                Some(rows) => self.send_copy(&rows),
                None => self.refuse_copy()?,
            },
            kind::READY => {
                self.transaction = Cursor(body).u8()?;
                self.ended(events);
            }
            kind::COLUMNS => {}
            kind::NOTICE => self.answer.warnings += u64::from(is_warning(body)),
            _ if kind::BUSY.contains(&kind) || kind::ANY_TIME.contains(&kind) => {}
            _ => return Err(Error::Protocol("a message that answers no statement")),
        }
        Ok(())
    }

    fn describe(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut cursor = Cursor(body);
        self.answer.columns_begin();
        for _ in 0..cursor.u16_be()? {
            let name = cursor.until_nul()?;
            // Table, column, type, its size and modifier, format.
            cursor.bytes(4 + 2 + 4 + 2 + 4 + 2)?;
            self.answer.column(name, Column { kind: 0, is_unsigned: false, decimals: 0 });
        }
        Ok(())
    }
}

impl Receive for Postgres {
    fn frame(&self, head: &[u8]) -> Result<Option<Frame>, Error> {
        if matches!(self.state, State::TlsAnswer) {
            return Ok(Some(Frame::new(1, 1)));
        }
        let &[kind, a, b, c, d, ..] = head else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]);
        if !(4..=i32::MAX as u32).contains(&length) {
            return Err(Error::Protocol("a message has an impossible length (is it PostgreSQL?)"));
        }
        let whole = 1 + length as usize;
        let keep = match kind {
            kind::COLUMNS if self.answer.wants_row() && whole <= MAX_KEPT_BYTES => whole,
            kind::ROW if self.answer.looks_at_rows() && whole <= MAX_KEPT_BYTES => whole,
            kind::NOTICE => whole.min(NOTICE_BYTES),
            kind::AUTHENTICATION if whole > MAX_MESSAGE_BYTES => return Err(Error::TooLarge("a message of the login")),
            kind::AUTHENTICATION | kind::ERROR | kind::READY | kind::COMPLETE => whole.min(MAX_MESSAGE_BYTES),
            _ => 0,
        };
        Ok(Some(Frame::new(whole, keep)))
    }

    fn receive(&mut self, kept: &[u8], length: usize, events: &mut Events<'_>) -> Result<(), Error> {
        if matches!(self.state, State::TlsAnswer) {
            if kept != b"S" {
                return Err(Error::TlsNotOffered);
            }
            self.state = State::Tls;
            events(Event::StartTls);
            return Ok(());
        }
        let (&[kind, ..], body) =
            kept.split_first_chunk::<HEAD_BYTES>().ok_or(Error::Protocol("a message ends too early"))?;
        self.answer.bytes += length as u64;
        match std::mem::replace(&mut self.state, State::Over) {
            State::Tls => Err(Error::Protocol(IN_THE_CLEAR)),
            State::Login(step) => self.logging_in(step, kind, body, events),
            State::Idle => {
                self.state = State::Idle;
                match kind {
                    kind::ERROR => Err(Report::read(body)?.failure.closed()),
                    _ if kind::ANY_TIME.contains(&kind) => Ok(()),
                    _ => Err(Error::Protocol("an unexpected message")),
                }
            }
            State::Busy => self.answered(kind, body, kept.len() == length, events),
            State::RollingBack => {
                if kind == kind::READY {
                    self.transaction = Cursor(body).u8()?;
                    self.finish(events);
                } else {
                    self.state = State::RollingBack;
                }
                Ok(())
            }
            State::TlsAnswer | State::Over => Ok(()),
        }
    }
}

/// Whether a notice is a warning.
fn is_warning(body: &[u8]) -> bool {
    let mut cursor = Cursor(body);
    while let Ok(field @ 1..) = cursor.u8() {
        let Ok(text) = cursor.until_nul() else { return false };
        if field == b'V' {
            return text == b"WARNING";
        }
    }
    false
}

/// The content of an error message.
struct Report {
    failure: Failure,
    /// The connection ends with it.
    is_last: bool,
}

impl Report {
    fn read(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor(body);
        let (mut severity, mut code, mut message) = (&b""[..], &b""[..], &b""[..]);
        // A long message is cut; its important fields come first.
        while let Ok(field @ 1..) = cursor.u8() {
            let Ok(text) = cursor.until_nul() else { break };
            match field {
                // The untranslated severity comes after the translated one.
                b'S' | b'V' => severity = text,
                b'C' => code = text,
                b'M' => message = text,
                _ => {}
            }
        }
        let code = String::from_utf8_lossy(&code[..code.len().min(5)]).into_owned();
        Ok(Self { failure: Failure::new(code, message), is_last: matches!(severity, b"FATAL" | b"PANIC") })
    }
}

/// The values of a row.
fn values(body: &[u8]) -> Result<Vec<Option<&[u8]>>, Error> {
    let mut cursor = Cursor(body);
    let count = cursor.u16_be()?;
    let value = |_| match usize::try_from(cursor.i32_be()?) {
        Ok(length) => cursor.bytes(length).map(Some),
        Err(_) => Ok(None),
    };
    (0..count).map(value).collect()
}

/// `INSERT 0 3` -> 3. Statements that only read affect no rows.
fn affected(tag: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(tag);
    let mut words = tag.trim_end_matches('\0').split(' ');
    match words.next() {
        Some("INSERT" | "UPDATE" | "DELETE" | "MERGE") => words.next_back().and_then(|count| count.parse().ok()),
        _ => None,
    }
    .unwrap_or(0)
}
