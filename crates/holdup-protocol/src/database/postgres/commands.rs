//! The messages sent to the server.

use std::io::Write as _;

use super::{Postgres, State};
use crate::database::event::Error;
use crate::database::inbox::Events;
use crate::database::job::Current;
use crate::database::login::APPLICATION;
use crate::database::outbox::put_text;
use crate::database::prepared::MAX_TEXT_BYTES;

/// Version 3.0, and the code in its place that requests TLS.
const VERSION: u32 = 3 << 16;
const TLS: u32 = 1234 << 16 | 5679;

/// Kinds of messages.
mod kind {
    pub(super) const QUERY: u8 = b'Q';
    pub(super) const PARSE: u8 = b'P';
    pub(super) const BIND: u8 = b'B';
    pub(super) const DESCRIBE: u8 = b'D';
    pub(super) const EXECUTE: u8 = b'E';
    pub(super) const SYNC: u8 = b'S';
    pub(super) const CLOSE: u8 = b'C';
    pub(super) const COPY_FAIL: u8 = b'f';
    pub(super) const COPY_DATA: u8 = b'd';
    pub(super) const COPY_DONE: u8 = b'c';
    pub(super) const TERMINATE: u8 = b'X';
}

/// Targets of describe and close: a statement or a portal.
const STATEMENT: u8 = b'S';
const PORTAL: u8 = b'P';

/// The statement that needs no closing.
const UNNAMED: u64 = 0;

/// SQLSTATEs: the server, or a pooler in between, has lost the statement; its result would have
/// other columns than before.
const STALE: [&str; 2] = ["26000", "0A000"];

impl Postgres {
    pub(super) fn ask_for_tls(&mut self) {
        self.outbox.postgres(None, |out| out.extend_from_slice(&TLS.to_be_bytes()));
    }

    /// Sends the startup message with the account.
    pub(super) fn start_up(&mut self) {
        let login = &self.login;
        self.outbox.postgres(None, |out| {
            out.extend_from_slice(&VERSION.to_be_bytes());
            let database = login.database.as_ref().map(|database| ("database", database.as_str()));
            let settings =
                [("user", login.user.as_str()), ("application_name", APPLICATION), ("client_encoding", "UTF8")];
            let own = login.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            for (name, value) in settings.into_iter().chain(database).chain(own) {
                put_text(out, name.as_bytes());
                put_text(out, value.as_bytes());
            }
            out.push(0);
        });
        self.state = State::Login(super::Step::Asked);
    }

    pub(super) fn terminate(&mut self) {
        self.message(kind::TERMINATE, |_| ());
    }

    fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.outbox.postgres(Some(kind), write);
    }

    /// Sends the running statement.
    pub(super) fn send(&mut self) {
        let job = std::mem::take(&mut self.job);
        if let Some(statement) = job.current() {
            self.has_refused_copy = false;
            self.parsing = None;
            self.is_extended = statement.count() > 0 || statement.is_prepared;
            if self.is_extended {
                self.send_extended(&statement);
            } else {
                self.query(statement.text);
            }
            self.state = State::Busy;
        }
        self.job = job;
    }

    fn query(&mut self, text: &[u8]) {
        self.message(kind::QUERY, |out| put_text(out, text));
    }

    fn send_extended(&mut self, statement: &Current<'_>) {
        if let Some(stale) = self.stale.take() {
            self.close(stale);
        }
        let is_kept = statement.is_prepared && statement.text.len() <= MAX_TEXT_BYTES;
        let known = if is_kept { self.prepared.find(statement.text) } else { None };
        let name = known.unwrap_or_else(|| self.parse(statement.text, is_kept));
        self.message(kind::BIND, |out| {
            put_text(out, b"");
            put_name(out, name);
            // All parameters are text.
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&(statement.count() as u16).to_be_bytes());
            for value in statement.parameters() {
                out.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
                out.extend_from_slice(value.unwrap_or_default());
            }
            // So are all columns.
            out.extend_from_slice(&[0; 2]);
        });
        if self.answer.wants_row() {
            self.message(kind::DESCRIBE, |out| out.extend_from_slice(&[PORTAL, 0]));
        }
        self.message(kind::EXECUTE, |out| out.extend_from_slice(&[0; 5]));
        self.message(kind::SYNC, |_| ());
    }

    /// Prepares it; returns its name.
    fn parse(&mut self, text: &[u8], is_kept: bool) -> u64 {
        let mut name = UNNAMED;
        if is_kept {
            if let Some(oldest) = self.prepared.make_room() {
                self.close(oldest);
            }
            self.names += 1;
            name = self.names;
            self.parsing = Some(name);
        }
        self.message(kind::PARSE, |out| {
            put_name(out, name);
            put_text(out, text);
            // The server infers the types of the parameters.
            out.extend_from_slice(&[0; 2]);
        });
        name
    }

    fn close(&mut self, name: u64) {
        self.message(kind::CLOSE, |out| {
            out.push(STATEMENT);
            put_name(out, name);
        });
    }

    /// The server has prepared it.
    pub(super) fn parsed(&mut self) {
        if let (Some(name), Some(statement)) = (self.parsing.take(), self.job.current()) {
            self.prepared.keep(statement.text, name);
        }
    }

    /// The server asks for the rows to copy.
    pub(super) fn send_copy(&mut self, rows: &[u8]) {
        self.message(kind::COPY_DATA, |out| out.extend_from_slice(rows));
        self.message(kind::COPY_DONE, |_| ());
    }

    /// The server asks for rows to copy: refuse.
    pub(super) fn refuse_copy(&mut self) -> Result<(), Error> {
        if self.has_refused_copy {
            return Err(Error::Protocol("it asks for a copy that was refused"));
        }
        self.has_refused_copy = true;
        self.message(kind::COPY_FAIL, |out| put_text(out, b"holdup copies nothing to a database"));
        // The Sync sent with the statement was ignored as part of the copy.
        if self.is_extended {
            self.message(kind::SYNC, |_| ());
        }
        Ok(())
    }

    /// The running statement has ended.
    pub(super) fn ended(&mut self, events: &mut Events<'_>) {
        if let Some(failure) = &self.answer.failure {
            let is_stale = STALE.contains(&failure.code.as_str());
            self.forget_stale(is_stale);
            if self.is_in_transaction() && !self.leaves_transactions {
                self.query(b"ROLLBACK");
                self.state = State::RollingBack;
                return;
            }
        } else {
            self.job.at += 1;
            if self.job.current().is_some() {
                self.answer.next_statement();
                self.send();
                return;
            }
        }
        self.finish(events);
    }

    fn forget_stale(&mut self, is_stale: bool) {
        if is_stale
            && self.is_extended
            && let Some(statement) = self.job.current()
        {
            self.stale = self.prepared.forget(statement.text);
        }
    }

    /// Reports how all of them ended.
    pub(super) fn finish(&mut self, events: &mut Events<'_>) {
        self.state = State::Idle;
        self.answer.end(self.job.at, events);
        self.job.clear();
    }

    /// A message of the login.
    pub(super) fn prove(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.message(b'p', write);
    }
}

fn put_name(out: &mut Vec<u8>, name: u64) {
    if name != UNNAMED {
        // Writing to memory does not fail.
        let _ = write!(out, "holdup_{name}");
    }
    out.push(0);
}
