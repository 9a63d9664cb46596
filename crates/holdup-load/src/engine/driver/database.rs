//! A session with a database: its account, the statements it runs before anything else, and then one
//! request at a time: statements of SQL, or commands of MongoDB.

use std::sync::Arc;

use holdup_protocol::database::{Address, Error, Event, Login, Session};

use crate::engine::intake::{EndedRequest, Intake, Resend};
use crate::engine::link::Output;
use crate::engine::outcome::Outcome;
use crate::engine::prepared::{Commands, Form};
use crate::engine::refusals;
use crate::engine::slots::{InFlight, NEVER, Slots};
use crate::engine::trace::Mark;
use crate::schedule::played::MixSettings;

/// See the module.
pub struct Database {
    address: Arc<Address>,
    /// The account that the next socket uses.
    pub login: Arc<Login>,
    /// How the sessions of a recorded mix behave.
    manner: Option<Arc<MixSettings>>,
    pub session: Session,
    slot: u32,
    /// The database agreed to TLS.
    pub begins_tls: bool,
    /// The login succeeded.
    is_logged_in: bool,
    /// The login succeeded, and the initial statements are running.
    is_opening: bool,
    /// A request is out.
    is_asked: bool,
}

impl Database {
    /// For a socket that is being connected, on the connection of this slot.
    pub fn new(address: Arc<Address>, login: Arc<Login>, manner: Option<Arc<MixSettings>>, slot: u32) -> Self {
        let mut session = Session::new(address.dialect, Arc::clone(&login), address.tls);
        if let Some(manner) = &manner {
            session.take_rows(manner.rows);
            session.leave_transactions();
        }
        let (begins_tls, is_logged_in, is_opening, is_asked) = (false, false, false, false);
        Self { address, login, manner, session, slot, begins_tls, is_logged_in, is_opening, is_asked }
    }

    /// The same for a new socket.
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.address), Arc::clone(&self.login), self.manner.clone(), self.slot)
    }

    /// The socket is gone.
    pub fn close(&mut self) {
        self.begins_tls = false;
        self.is_asked = false;
    }

    /// The login succeeded. True if the session can be used now; otherwise its initial statements
    /// have to run first.
    fn let_in(&mut self) -> bool {
        self.is_logged_in = true;
        let opening = self.manner.as_ref().map_or(&[][..], |manner| &manner.opening);
        self.is_opening = !opening.is_empty() && self.session.execute(opening, false).is_ok();
        !self.is_opening
    }

    /// Begins to execute statements or commands.
    ///
    /// # Errors
    /// If they were not accepted.
    pub fn execute(&mut self, form: &Form, mark: Option<&Mark>) -> Result<(), Outcome> {
        let taken = match form {
            Form::Sql(statements, keeps_row) => {
                let comment = mark.map(Mark::comment);
                let comment = comment.as_ref().map_or(&[][..], |comment| comment);
                self.session.execute_with(statements, *keeps_row, comment)
            }
            Form::Mongodb(Commands { list, is_transaction, keeps_row }) => {
                let comment = mark.map(Mark::key_and_text);
                let comment = comment.as_ref().map_or(&[][..], |comment| comment);
                self.session.execute_commands(list, *is_transaction, *keeps_row, comment)
            }
            Form::Http1(..) | Form::Http2(_) => return Err(Outcome::BadResponse),
        };
        taken.map_err(|_| Outcome::StatementFailed)?;
        self.is_asked = true;
        Ok(())
    }

    /// Takes bytes of the server. True if requests can be sent from now on.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn take(
        &mut self,
        bytes: &[u8],
        stamp: Option<i64>,
        slots: &mut Slots,
        intake: &mut Intake<'_>,
    ) -> Result<bool, Outcome> {
        let slot = self.slot;
        let sent = slots.get(slot).map_or(NEVER, |r| r.sent);
        let at = intake.clock.moment(stamp, sent);
        if self.is_asked
            && let Some(request) = slots.answered(slot, at)
        {
            request.bytes += bytes.len() as u64;
            if request.bytes > intake.most_bytes {
                return Err(Outcome::ResponseTooLarge);
            }
        }
        let mut read = Read::default();
        let fed = self.session.feed(bytes, &mut |event| read.event(event, slots.get_mut(slot)));
        self.begins_tls |= read.begins_tls;
        let opened = if self.is_opening { read.is_over.take() } else { None };
        self.is_opening &= opened.is_none();
        let is_open = opened == Some(Outcome::Ok) || read.let_in && self.let_in();
        let is_shut_out = opened.is_some_and(|opened| opened != Outcome::Ok);
        let outcome = fed.as_ref().err().map(|error| outcome_of(error, self.is_logged_in)).or(read.is_over);
        let outcome = if is_shut_out { Some(Outcome::LoginFailed) } else { outcome };
        if let Err(Error::LoginRefused { code, message } | Error::ClosedByServer { code, message }) = &fed {
            read.refused = Some((0, code.clone(), message.clone()));
        }
        if let (Some((statement, code, message)), Some(outcome)) = (read.refused, outcome)
            && let Some(request) = slots.get(slot)
        {
            refusals::note(&mut intake.refusals, (request.operation, outcome), statement, &code, &message);
        }
        if let Some(outcome) = read.is_over {
            self.is_asked = false;
            intake.ended.push(EndedRequest { slot, outcome, at, again: Resend::No });
        }
        fed.map_err(|error| outcome_of(&error, self.is_logged_in))?;
        if is_shut_out { Err(Outcome::LoginFailed) } else { Ok(is_open) }
    }
}

/// What the events of one read mean for the connection.
#[derive(Default)]
struct Read {
    let_in: bool,
    begins_tls: bool,
    /// The outcome of the request, if it has ended.
    is_over: Option<Outcome>,
    /// The database's refusal: the statement's number, the code, and the message.
    refused: Option<(usize, String, String)>,
}

impl Read {
    /// Takes an event; `request` is the one that the connection has.
    fn event(&mut self, event: Event<'_>, request: Option<&mut InFlight>) {
        match event {
            Event::LoggedIn => self.let_in = true,
            Event::StartTls => self.begins_tls = true,
            Event::Row { columns, values, .. } => {
                // For a transaction, the row of the last statement is kept.
                if let Some(kept) = request.and_then(|r| r.kept.as_mut()) {
                    let pairs = columns.iter().zip(values);
                    kept.fields = pairs.map(|(c, v)| (c.as_bytes().into(), v.map(Into::into))).collect();
                }
            }
            Event::Done { rows, affected, warnings, hash, .. } => {
                if let Some(request) = request {
                    if let Some(execution) = &mut request.execution {
                        (execution.rows, execution.affected, execution.warnings) = (rows, affected, warnings);
                        execution.hash = execution.hash.map(|_| hash);
                    }
                    if let Some(kept) = &mut request.kept {
                        kept.rows = rows;
                    }
                }
                self.is_over = Some(Outcome::Ok);
            }
            Event::Failed { statement, code, message } => {
                if let Some(execution) = request.and_then(|r| r.execution.as_mut()) {
                    execution.error = Some(code.into());
                }
                self.refused = Some((statement, code.to_owned(), message.to_owned()));
                self.is_over = Some(Outcome::StatementFailed);
            }
        }
    }
}

/// The outcome for an error that ends a session.
fn outcome_of(error: &Error, is_logged_in: bool) -> Outcome {
    match error {
        Error::TlsNotOffered => Outcome::TlsFailed,
        Error::Protocol(_) | Error::TooLarge(_) | Error::Refused(_) => Outcome::BadResponse,
        _ if is_logged_in => Outcome::ConnectionClosed,
        _ => Outcome::LoginFailed,
    }
}

impl Output for Session {
    fn waiting(&mut self) -> &[u8] {
        self.output()
    }

    fn sent(&mut self, count: usize) {
        self.consumed(count);
    }
}
