//! The commands sent to the server: texts, statements to prepare, prepared ones to execute or to
//! close.

use super::phase::{Handle, Phase};
use super::{Mysql, State};
use crate::database::answer::Failure;
use crate::database::inbox::Events;
use crate::database::job::Current;
use crate::database::prepared::MAX_TEXT_BYTES;

pub(super) const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// The type of all parameters: a string.
const STRING: u16 = 0xfe;

/// Error codes: unknown statement (it was lost), and statement that has to be prepared again.
const STALE: [&str; 2] = ["1243", "1615"];

/// SQLSTATE for a wrong number of parameters, which has no specific error code.
const WRONG_COUNT: &str = "07001";

impl Mysql {
    /// Writes a command; the numbering of packets starts with it.
    pub(super) fn command(&mut self, command: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.outbox.mysql(0, |out| {
            out.push(command);
            write(out);
        });
        self.sequence = 1;
    }

    /// Closes a statement at the server, which does not reply.
    fn close(&mut self, id: u32) {
        self.command(CLOSE, |out| out.extend_from_slice(&id.to_le_bytes()));
    }

    /// Sends the running statement.
    pub(super) fn send(&mut self) {
        let job = std::mem::take(&mut self.job);
        if let Some(statement) = job.current() {
            self.begin(&statement);
        }
        self.job = job;
    }

    fn begin(&mut self, statement: &Current<'_>) {
        let phase = if statement.count() == 0 && !statement.is_prepared {
            self.command(QUERY, |out| out.extend_from_slice(statement.text));
            Phase::Answer { is_binary: false }
        } else {
            let known = if is_kept(statement) { self.prepared.find(statement.text) } else { None };
            if let Some(handle) = known
                && usize::from(handle.parameters) == statement.count()
            {
                self.execute_prepared(handle.id, statement);
                Phase::Answer { is_binary: true }
            } else {
                if is_kept(statement) && known.is_none() {
                    let oldest = self.prepared.make_room();
                    oldest.into_iter().for_each(|oldest| self.close(oldest.id));
                }
                self.command(PREPARE, |out| out.extend_from_slice(statement.text));
                Phase::Prepare
            }
        };
        self.state = State::Busy(phase);
    }

    fn execute_prepared(&mut self, id: u32, statement: &Current<'_>) {
        self.command(EXECUTE, |out| {
            out.extend_from_slice(&id.to_le_bytes());
            // No cursor, one iteration.
            out.extend_from_slice(&[0, 1, 0, 0, 0]);
            if statement.count() == 0 {
                return;
            }
            let nulls = out.len();
            out.resize(nulls + statement.count().div_ceil(8), 0);
            out.push(1);
            (0..statement.count()).for_each(|_| out.extend_from_slice(&STRING.to_le_bytes()));
            for (number, value) in statement.parameters().enumerate() {
                match value {
                    None => out[nulls + number / 8] |= 1 << (number % 8),
                    Some(value) => put_packed(out, value),
                }
            }
        });
    }

    /// The server has prepared the statement.
    pub(super) fn prepared(&mut self, handle: Handle, events: &mut Events<'_>) {
        let job = std::mem::take(&mut self.job);
        let mut failure = None;
        if let Some(statement) = job.current() {
            let is_known = is_kept(&statement) && self.prepared.find(statement.text).is_some();
            if is_kept(&statement) && !is_known {
                self.prepared.keep(statement.text, handle);
            } else {
                self.loose = Some(handle.id);
            }
            if usize::from(handle.parameters) == statement.count() {
                self.execute_prepared(handle.id, &statement);
                self.state = State::Busy(Phase::Answer { is_binary: true });
            } else {
                let (wanted, given) = (handle.parameters, statement.count());
                let message = format!("the statement has {wanted} parameters, and {given} were given");
                failure = Some(Failure::new(WRONG_COUNT.to_owned(), message.as_bytes()));
            }
        }
        self.job = job;
        if let Some(failure) = failure {
            self.failed(failure, events);
        }
    }

    /// The running statement has been executed.
    pub(super) fn ended(&mut self, events: &mut Events<'_>) {
        self.close_loose();
        self.job.at += 1;
        if self.job.current().is_some() {
            self.answer.next_statement();
            self.send();
        } else {
            self.finish(events);
        }
    }

    /// The running statement failed; those after it are not executed.
    pub(super) fn failed(&mut self, failure: Failure, events: &mut Events<'_>) {
        self.close_loose();
        if STALE.contains(&failure.code.as_str())
            && let Some(statement) = self.job.current()
            && let Some(stale) = self.prepared.forget(statement.text)
        {
            self.close(stale.id);
        }
        self.answer.failure = Some(failure);
        if self.is_in_transaction() && !self.leaves_transactions {
            self.command(QUERY, |out| out.extend_from_slice(b"ROLLBACK"));
            self.state = State::RollingBack;
        } else {
            self.finish(events);
        }
    }

    /// Reports how all of them ended.
    pub(super) fn finish(&mut self, events: &mut Events<'_>) {
        self.state = State::Idle;
        self.answer.end(self.job.at, events);
        self.job.clear();
    }

    fn close_loose(&mut self) {
        if let Some(id) = self.loose.take() {
            self.close(id);
        }
    }
}

/// Whether the server keeps it prepared for the next time.
fn is_kept(statement: &Current<'_>) -> bool {
    statement.is_prepared && statement.text.len() <= MAX_TEXT_BYTES
}

/// Writes bytes, preceded by their number.
fn put_packed(out: &mut Vec<u8>, value: &[u8]) {
    let length = value.len() as u32;
    match length {
        ..=0xfa => out.push(length as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&length.to_le_bytes()[..2]);
        }
        _ => {
            out.push(0xfd);
            out.extend_from_slice(&length.to_le_bytes()[..3]);
        }
    }
    out.extend_from_slice(value);
}
