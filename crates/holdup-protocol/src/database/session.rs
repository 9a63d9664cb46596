//! One connection, of any dialect: the interface for the caller.

use std::fmt;
use std::sync::Arc;

use crate::database::address::Dialect;
use crate::database::event::{Error, Event, ExecuteError};
use crate::database::inbox::Inbox;
use crate::database::login::{IN_THE_CLEAR, Login, TlsMode};
use crate::database::mongodb::{Account, Command, CommandQueue};
use crate::database::mysql::Mysql;
use crate::database::postgres::Postgres;
use crate::database::rows::Rows;
use crate::database::statement::Statement;

enum DialectState {
    Mysql(Box<Mysql>),
    Postgres(Box<Postgres>),
    /// Whether it begins with TLS.
    Mongodb(Box<CommandQueue>, TlsMode),
}

/// One connection, from the client's side. The caller sends [`Session::output`] whenever there is
/// any, and feeds what it receives.
pub struct Session {
    speech: DialectState,
    pub(crate) inbox: Inbox,
    dead: Option<Error>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_ready", &self.is_ready()).field("dead", &self.dead).finish_non_exhaustive()
    }
}

/// What both dialects of SQL do, and what MongoDB does instead.
macro_rules! either {
    ($session:expr, $speech:ident => $do:expr, $commands:pat => $other:expr) => {
        match &mut $session.speech {
            DialectState::Mysql($speech) => $do,
            DialectState::Postgres($speech) => $do,
            DialectState::Mongodb($commands, _) => $other,
        }
    };
}

impl Session {
    /// A session on a newly connected socket. It logs in by itself.
    #[must_use]
    pub fn new(dialect: Dialect, login: Arc<Login>, tls: TlsMode) -> Self {
        let speech = match dialect {
            Dialect::Mysql => DialectState::Mysql(Box::new(Mysql::new(login, tls))),
            Dialect::Postgres => DialectState::Postgres(Box::new(Postgres::new(login, tls))),
            Dialect::Mongodb => {
                let account = (!login.user.is_empty()).then(|| Account::new(login));
                DialectState::Mongodb(Box::new(CommandQueue::new(account)), tls)
            }
        };
        Self { speech, inbox: Inbox::default(), dead: None }
    }

    /// The bytes to send.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        match &self.speech {
            DialectState::Mysql(mysql) => mysql.outbox.waiting(),
            DialectState::Postgres(postgres) => postgres.outbox.waiting(),
            DialectState::Mongodb(commands, _) => commands.output(),
        }
    }

    /// This many of them were sent.
    pub fn consumed(&mut self, count: usize) {
        either!(self, speech => speech.outbox.consumed(count), commands => commands.consumed(count));
    }

    /// Takes received bytes, split anyhow. The results are events and output.
    ///
    /// # Errors
    /// If the connection is broken; every further call repeats the error.
    pub fn feed(&mut self, bytes: &[u8], events: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        if let Some(error) = &self.dead {
            return Err(error.clone());
        }
        let fed = either!(
            self,
            speech => self.inbox.feed(bytes, &mut **speech, events),
            commands => commands.feed(bytes, events)
        );
        fed.inspect_err(|error| self.dead = Some(error.clone()))
    }

    /// Whether TLS begins before anything is said, and not after [`Event::StartTls`].
    #[must_use]
    pub fn begins_encrypted(&self) -> bool {
        matches!(self.speech, DialectState::Mongodb(_, TlsMode::On))
    }

    /// TLS was started after [`Event::StartTls`]: the output from now on has to be encrypted.
    pub fn tls_started(&mut self) {
        // Otherwise clear text would become the start of an encrypted message: a man in the middle
        // may have put it there (CVE-2021-23222 was this bug in PostgreSQL's own client).
        if !self.inbox.is_empty() {
            self.dead = Some(Error::Protocol(IN_THE_CLEAR));
            return;
        }
        either!(self, speech => speech.tls_started(), _ => {});
    }

    /// Whether it is logged in and no statement is running.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.dead.is_none()
            && match &self.speech {
                DialectState::Mysql(mysql) => mysql.is_idle(),
                DialectState::Postgres(postgres) => postgres.is_idle(),
                DialectState::Mongodb(commands, _) => commands.is_ready(),
            }
    }

    /// Whether the statements so far have left a transaction open. Valid when it is ready.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        match &self.speech {
            DialectState::Mysql(mysql) => mysql.is_in_transaction(),
            DialectState::Postgres(postgres) => postgres.is_in_transaction(),
            DialectState::Mongodb(..) => false,
        }
    }

    /// Executes statements, each when the one before has ended. A single [`Event::Done`] or
    /// [`Event::Failed`] reports on all of them; for a transaction the caller includes `BEGIN` and
    /// `COMMIT`. If one fails, those after it are not sent, and any open transaction is rolled back
    /// before the failure is reported. With `keep_row` the first row of each statement is passed
    /// on.
    ///
    /// # Errors
    /// If they were not accepted; nothing is sent.
    pub fn execute(&mut self, statements: &[Statement], keep_row: bool) -> Result<(), ExecuteError> {
        self.execute_with(statements, keep_row, b"")
    }

    /// The same with `comment` before the text of those that the server does not keep prepared,
    /// such as `/*traceparent='…'*/ `: it differs for each request, while kept statements are found
    /// by their text. The caller ensures that it is a comment.
    ///
    /// # Errors
    /// If they were not accepted; nothing is sent.
    pub fn execute_with(
        &mut self,
        statements: &[Statement],
        keep_row: bool,
        comment: &[u8],
    ) -> Result<(), ExecuteError> {
        if !self.is_ready() {
            return Err(ExecuteError::NotReady);
        }
        either!(self, speech => speech.execute(statements, keep_row, comment), _ => Err(ExecuteError::OtherKind))
    }

    /// Executes MongoDB's commands, each when the one before has ended, in one transaction if
    /// `is_transaction`; the events are those of statements. A cursor is read to its end: its documents are
    /// the rows. `comment`, if not empty, becomes the comment of commands that have none.
    ///
    /// # Errors
    /// If they were not accepted; nothing is sent.
    pub fn execute_commands(
        &mut self,
        given: &[Command],
        is_transaction: bool,
        keep_row: bool,
        comment: &[u8],
    ) -> Result<(), ExecuteError> {
        if !self.is_ready() {
            return Err(ExecuteError::NotReady);
        }
        let DialectState::Mongodb(commands, _) = &mut self.speech else { return Err(ExecuteError::OtherKind) };
        commands.execute(given, is_transaction, keep_row, comment)
    }

    /// Executes PostgreSQL's `COPY … FROM STDIN` with these rows, in the server's text form.
    ///
    /// # Errors
    /// If it was not accepted; nothing is sent.
    pub fn copy(&mut self, statement: Statement, rows: Vec<u8>) -> Result<(), ExecuteError> {
        match &mut self.speech {
            _ if self.dead.is_some() => Err(ExecuteError::NotReady),
            DialectState::Postgres(postgres) if !postgres.is_idle() => Err(ExecuteError::NotReady),
            DialectState::Postgres(postgres) => postgres.copy(statement, rows),
            DialectState::Mysql(_) | DialectState::Mongodb(..) => Err(ExecuteError::OtherKind),
        }
    }

    /// Whether the server, which has answered, has transactions: MongoDB has them only in replica sets.
    #[must_use]
    pub fn has_transactions(&self) -> bool {
        match &self.speech {
            DialectState::Mysql(_) | DialectState::Postgres(_) => true,
            DialectState::Mongodb(commands, _) => commands.has_transactions(),
        }
    }

    /// From now on, where rows are requested, every row is passed on: for reading the server's own
    /// tables. The caller has to bound memory. A larger row of PostgreSQL than 1 MiB is skipped. A
    /// row of MySQL that fills a packet (16 MiB) ends the connection with [`Error::TooLarge`]: it
    /// may be a session, whose statement is part of the row.
    pub fn keep_every_row(&mut self) {
        either!(self, speech => speech.answer.keeps_every_row = true, commands => commands.keep_every_row());
    }

    /// Sets how rows are handled from now on.
    pub fn take_rows(&mut self, rows: Rows) {
        either!(self, speech => speech.answer.hashed = rows, _ => {});
    }

    /// From now on a failed statement leaves a transaction as the server left it: for replaying
    /// what an application sent, which decides itself.
    pub fn leave_transactions(&mut self) {
        either!(self, speech => speech.leaves_transactions = true, _ => {});
    }

    /// Ends the session. The caller sends the rest of the output and closes the socket; no more
    /// statements can be executed.
    pub fn quit(&mut self) {
        either!(self, speech => speech.quit(), commands => commands.quit());
    }
}
