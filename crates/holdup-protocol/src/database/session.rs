//! One connection, of either dialect: what the caller drives.

use std::fmt;
use std::sync::Arc;

use crate::database::address::Dialect;
use crate::database::event::{Error, Event, Refused};
use crate::database::inbox::Inbox;
use crate::database::login::{Login, TlsWish};
use crate::database::mysql::Mysql;
use crate::database::postgres::Postgres;
use crate::database::rows::Rows;
use crate::database::statement::Statement;

/// What is said if the server does not wait for TLS.
pub(crate) const IN_THE_CLEAR: &str = "it goes on in the clear where TLS begins";

enum Speech {
    Mysql(Box<Mysql>),
    Postgres(Box<Postgres>),
}

/// One connection, from the client's side. The caller sends what is in [`Session::output`] whenever there is something,
/// and feeds what it receives.
pub struct Session {
    speech: Speech,
    pub(crate) inbox: Inbox,
    dead: Option<Error>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_ready", &self.is_ready()).field("dead", &self.dead).finish_non_exhaustive()
    }
}

macro_rules! either {
    ($session:expr, $speech:ident => $do:expr) => {
        match &mut $session.speech {
            Speech::Mysql($speech) => $do,
            Speech::Postgres($speech) => $do,
        }
    };
}

impl Session {
    /// A session on a socket that has just been connected. It logs in by itself.
    #[must_use]
    pub fn new(dialect: Dialect, login: Arc<Login>, tls: TlsWish) -> Self {
        let speech = match dialect {
            Dialect::Mysql => Speech::Mysql(Box::new(Mysql::new(login, tls))),
            Dialect::Postgres => Speech::Postgres(Box::new(Postgres::new(login, tls))),
        };
        Self { speech, inbox: Inbox::default(), dead: None }
    }

    /// What is to be sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        match &self.speech {
            Speech::Mysql(mysql) => mysql.outbox.waiting(),
            Speech::Postgres(postgres) => postgres.outbox.waiting(),
        }
    }

    /// So many bytes of it were sent.
    pub fn consumed(&mut self, count: usize) {
        either!(self, speech => speech.outbox.consumed(count));
    }

    /// Takes what was received, cut anyhow. What it leads to is in the events and in the output.
    ///
    /// # Errors
    /// The connection is of no more use; every further call says so again.
    pub fn feed(&mut self, bytes: &[u8], events: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        if let Some(error) = &self.dead {
            return Err(error.clone());
        }
        either!(self, speech => self.inbox.feed(bytes, &mut **speech, events)).inspect_err(|error| {
            self.dead = Some(error.clone());
        })
    }

    /// TLS was begun after [`Event::StartTls`]: what is in the output from now on is to be encrypted.
    pub fn tls_started(&mut self) {
        // The beginning of a message in the clear would become that of an encrypted one: somebody in between may have
        // put it there (CVE-2021-23222 was that in PostgreSQL's own client).
        if !self.inbox.is_empty() {
            self.dead = Some(Error::Protocol(IN_THE_CLEAR));
            return;
        }
        either!(self, speech => speech.tls_started());
    }

    /// Whether it is logged in and nothing is being executed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.dead.is_none()
            && match &self.speech {
                Speech::Mysql(mysql) => mysql.is_idle(),
                Speech::Postgres(postgres) => postgres.is_idle(),
            }
    }

    /// Whether a transaction is open that the statements executed so far have begun and not ended. Fit to ask when it
    /// is ready.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        match &self.speech {
            Speech::Mysql(mysql) => mysql.is_in_transaction(),
            Speech::Postgres(postgres) => postgres.is_in_transaction(),
        }
    }

    /// Executes statements, each when the one before has ended. One [`Event::Done`] or [`Event::Failed`] will tell of
    /// all of them; for a transaction the caller gives `BEGIN` and `COMMIT` as statements, too. If one fails, those
    /// after it are not sent, and a transaction that is open, since whenever, is rolled back before the failure is
    /// told. With `keep_row` the first row of each statement is handed on.
    ///
    /// # Errors
    /// They were not taken; nothing is sent.
    pub fn execute(&mut self, statements: &[Statement], keep_row: bool) -> Result<(), Refused> {
        self.execute_with(statements, keep_row, b"")
    }

    /// The same with `comment` before the text of those that the server does not keep prepared, such as
    /// `/*traceparent='…'*/ `: it is another for each request, while what is kept is found again by its text. It is the
    /// caller's to see that it is a comment.
    ///
    /// # Errors
    /// They were not taken; nothing is sent.
    pub fn execute_with(&mut self, statements: &[Statement], keep_row: bool, comment: &[u8]) -> Result<(), Refused> {
        if !self.is_ready() {
            return Err(Refused::NotReady);
        }
        either!(self, speech => speech.execute(statements, keep_row, comment))
    }

    /// From now on, where rows are asked for, every row of PostgreSQL is handed on that is at most 1 MiB: for who reads the server's
    /// own tables. Memory is the caller's to bound.
    pub fn keep_every_row(&mut self) {
        if let Speech::Postgres(postgres) = &mut self.speech {
            postgres.keep_every_row();
        }
    }

    /// From now on rows become that.
    pub fn take_rows(&mut self, rows: Rows) {
        either!(self, speech => speech.take_rows(rows));
    }

    /// From now on a failed statement leaves a transaction as the server left it: for who plays what an application once said,
    /// which decides itself.
    pub fn leave_transactions(&mut self) {
        either!(self, speech => speech.leave_transactions());
    }

    /// Says goodbye. The caller sends the rest of the output and closes the socket; nothing can be executed any more.
    pub fn quit(&mut self) {
        either!(self, speech => speech.quit());
    }
}
