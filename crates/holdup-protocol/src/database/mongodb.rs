//! MongoDB's protocol from the client's side: `OP_MSG` alone, which every server since 3.6 speaks, one
//! command at a time. The session says hello, logs in with SCRAM-SHA-256, and passes answers on.
//!
//! Which commands are sent is the caller's affair; the session only adds the database. Deliberately
//! absent: compression, exhaust cursors, unacknowledged writes, `OP_QUERY`, and the older SCRAM-SHA-1,
//! whose key is an MD5 digest of the password.

mod command_queue;
mod message;
mod row;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use holdup_mongodb::{Document, Element, Writer};

use self::message::Inbox;
use crate::database::event::{Error, shortened};
use crate::database::login::{APPLICATION, Login};
use crate::database::scram::{self, Proof, Scram};

pub(crate) use self::command_queue::CommandQueue;
pub use self::command_queue::{COMMAND_BYTES_MAX, Command};
pub use self::message::MESSAGE_BYTES_MAX;

/// The database that commands on the whole server go to.
pub const ADMIN: &str = "admin";

/// The server's code for a command that it does not know.
pub const COMMAND_NOT_FOUND: i64 = 59;

/// Most bytes of a SCRAM message.
const PAYLOAD_BYTES_MAX: usize = 4 << 10;

/// An account, and the database that keeps it.
#[derive(Clone, Debug)]
pub struct Account {
    /// Name and password.
    pub login: Arc<Login>,
    /// `authSource`.
    pub source: String,
}

impl Account {
    /// An account that is kept where [`Login::accounts`] says; if it does not, in the login's own database.
    #[must_use]
    pub fn new(login: Arc<Login>) -> Self {
        let source = login.accounts.clone().or_else(|| login.database.clone());
        Self { source: source.unwrap_or_else(|| ADMIN.to_owned()), login }
    }
}

/// What happened.
#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    /// The login succeeded, or none was needed; commands can be sent.
    LoggedIn,
    /// The answer to the last command, errors included: see [`failure`].
    Answer(Document<'a>),
}

enum State {
    /// `hello` was sent, or where the server does not know it, `isMaster`.
    Hello {
        is_old: bool,
    },
    /// The first message of SCRAM was sent.
    Scram(Box<Scram>),
    /// The second was sent; the server has to prove itself, too.
    Proved(Box<Proof>),
    /// The server has proved itself; the conversation has yet to end.
    Ending,
    Idle,
    Busy,
}

/// One connection.
pub struct Session {
    /// What the server calls `appName`.
    application: &'static str,
    account: Option<Account>,
    state: State,
    inbox: Inbox,
    outbox: Vec<u8>,
    request: i32,
    /// The server is a member of a replica set, or a mongos.
    has_transactions: bool,
    dead: Option<Error>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_ready", &self.is_ready()).field("dead", &self.dead).finish_non_exhaustive()
    }
}

impl Session {
    /// A session on a newly connected socket, encrypted or not. It logs in by itself if there is an
    /// account. No answer may have more than `answer_bytes`.
    #[must_use]
    pub fn new(account: Option<Account>, answer_bytes: usize) -> Self {
        Self::called(APPLICATION, account, answer_bytes)
    }

    /// The same under another name than a source has, which leaves out what it does itself.
    pub(super) fn called(application: &'static str, account: Option<Account>, answer_bytes: usize) -> Self {
        let mut session = Self {
            application,
            account,
            state: State::Hello { is_old: false },
            inbox: Inbox::new(answer_bytes),
            outbox: Vec::new(),
            request: 0,
            has_transactions: false,
            dead: None,
        };
        session.hello("hello");
        session
    }

    /// The bytes to send.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.outbox
    }

    /// This many of them were sent.
    pub fn consumed(&mut self, count: usize) {
        self.outbox.drain(..count.min(self.outbox.len()));
    }

    /// Whether it is logged in and no command is running.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.dead.is_none() && matches!(self.state, State::Idle)
    }

    /// Whether the server has transactions, by its greeting.
    #[must_use]
    pub fn has_transactions(&self) -> bool {
        self.has_transactions
    }

    /// Sends a last command, whose answer is not awaited.
    pub(super) fn send_last(&mut self, database: &str, command: Writer) {
        if self.is_ready() {
            self.put(database, command);
            self.state = State::Busy;
        }
    }

    /// Sends a command to `database`.
    ///
    /// # Errors
    /// If it is not ready: nothing is sent.
    pub fn send(&mut self, database: &str, command: Writer) -> Result<(), Error> {
        if !self.is_ready() {
            return Err(self.dead.clone().unwrap_or(Error::Protocol("a command before the last one was answered")));
        }
        self.put(database, command);
        self.state = State::Busy;
        Ok(())
    }

    /// Takes received bytes, split anyhow.
    ///
    /// # Errors
    /// If the connection is broken; every further call repeats the error.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        if let Some(error) = &self.dead {
            return Err(error.clone());
        }
        let fed = loop {
            match self.inbox.take(&mut bytes, self.request) {
                Ok(None) => break Ok(()),
                Ok(Some(message)) => {
                    let answered = match message::body(&message) {
                        Ok(document) => self.answered(document, events),
                        Err(error) => Err(error),
                    };
                    if let Err(error) = answered {
                        break Err(error);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        fed.inspect_err(|error| self.dead = Some(error.clone()))
    }

    fn answered(&mut self, document: Document<'_>, events: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Hello { is_old } => self.met(document, is_old, events),
            State::Scram(scram) => {
                let (conversation, said) = step(document)?;
                let login = self.account.as_ref().map(|account| Arc::clone(&account.login));
                let login = login.ok_or(Error::Protocol("a login without an account"))?;
                let (second, proof) = scram.second(said, &login)?;
                self.state = State::Proved(Box::new(proof));
                self.go_on(conversation, second.as_bytes());
                Ok(())
            }
            State::Proved(proof) => {
                let (conversation, said) = step(document)?;
                proof.check(said)?;
                if is_true(document.get("done")) {
                    events(Event::LoggedIn);
                } else {
                    self.state = State::Ending;
                    self.go_on(conversation, b"");
                }
                Ok(())
            }
            State::Ending => {
                step(document)?;
                if !is_true(document.get("done")) {
                    return Err(Error::Protocol("a login that does not end"));
                }
                events(Event::LoggedIn);
                Ok(())
            }
            State::Busy => {
                events(Event::Answer(document));
                Ok(())
            }
            State::Idle => Err(Error::Protocol("an answer to no command")),
        }
    }

    /// The server has answered the greeting.
    fn met(&mut self, document: Document<'_>, is_old: bool, events: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        if let Some((code, message)) = failure(document) {
            if code == COMMAND_NOT_FOUND && !is_old {
                self.state = State::Hello { is_old: true };
                self.hello("isMaster");
                return Ok(());
            }
            return Err(Error::ClosedByServer { code: code.to_string(), message });
        }
        let is_router = document.get("msg") == Some(Element::Text(b"isdbgrid"));
        self.has_transactions = is_router || document.get("setName").is_some();
        let Some(account) = &self.account else {
            events(Event::LoggedIn);
            return Ok(());
        };
        if let Some(Element::List(offered)) = document.get("saslSupportedMechs") {
            let mut names = offered.elements().filter_map(|element| match element {
                Ok((_, Element::Text(name))) => Some(name),
                _ => None,
            });
            if !names.clone().any(|name| name == scram::NAME.as_bytes()) {
                return Err(Error::UnsupportedAuth(shortened(names.next().unwrap_or(b"none".as_slice()))));
            }
        }
        let scram = Scram::new(&account.login.user, scram::FEWEST_ITERATIONS)?;
        let command = Writer::new()
            .int("saslStart", 1)
            .text("mechanism", scram::NAME)
            .binary("payload", scram.first().as_bytes())
            .document("options", Writer::new().bool("skipEmptyExchange", true));
        let source = account.source.clone();
        self.state = State::Scram(Box::new(scram));
        self.put(&source, command);
        Ok(())
    }

    fn hello(&mut self, name: &str) {
        let application = Writer::new().text("name", self.application);
        let driver = Writer::new().text("name", APPLICATION).text("version", env!("CARGO_PKG_VERSION"));
        let client = Writer::new()
            .document("application", application)
            .document("driver", driver)
            .document("os", Writer::new().text("type", std::env::consts::OS));
        let mut command = Writer::new().int(name, 1).document("client", client);
        if let Some(account) = &self.account {
            command = command.text("saslSupportedMechs", &format!("{}.{}", account.source, account.login.user));
        }
        self.put(ADMIN, command);
    }

    /// The next message of the login.
    fn go_on(&mut self, conversation: i32, payload: &[u8]) {
        let source = self.account.as_ref().map_or_else(String::new, |account| account.source.clone());
        let command =
            Writer::new().int("saslContinue", 1).int("conversationId", conversation).binary("payload", payload);
        self.put(&source, command);
    }

    fn put(&mut self, database: &str, command: Writer) {
        self.request = self.request.wrapping_add(1);
        message::put(self.request, &command.text("$db", database).finish(), &mut self.outbox);
    }
}

/// A step of the login: the conversation's number and the server's message.
fn step(document: Document<'_>) -> Result<(i32, &[u8]), Error> {
    if let Some((code, message)) = failure(document) {
        return Err(Error::LoginRefused { code: code.to_string(), message });
    }
    match (document.get("conversationId"), document.get("payload")) {
        (Some(conversation), Some(Element::Binary(payload))) if payload.len() <= PAYLOAD_BYTES_MAX => {
            Ok((integer(conversation).unwrap_or(0) as i32, payload))
        }
        _ => Err(Error::Protocol("a step of the login without its message")),
    }
}

/// The server's code and message if an answer is an error.
#[must_use]
pub fn failure(answer: Document<'_>) -> Option<(i64, String)> {
    if is_true(answer.get("ok")) {
        return None;
    }
    let code = answer.get("code").and_then(integer).unwrap_or(0);
    let message = match answer.get("errmsg") {
        Some(Element::Text(text)) => shortened(text),
        _ => "an answer that is neither a result nor an error".to_owned(),
    };
    Some((code, message))
}

fn integer(element: Element<'_>) -> Option<i64> {
    match element {
        Element::Int(number) => Some(i64::from(number)),
        Element::Long(number) => Some(number),
        Element::Double(number) => Some(number as i64),
        _ => None,
    }
}

/// Servers answer `ok` and `done` as any kind of number, or as a boolean.
fn is_true(element: Option<Element<'_>>) -> bool {
    match element {
        Some(Element::Bool(is_true)) => is_true,
        Some(other) => integer(other).is_some_and(|number| number != 0),
        None => false,
    }
}
