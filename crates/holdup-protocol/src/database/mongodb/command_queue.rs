//! Commands as load: one after the other on one connection, cursors read to their end, in a transaction if
//! wanted, and one event for all of them. It sends a command once: what drivers call retryable reads and
//! writes is left out, because a second attempt would hide the first.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use holdup_mongodb::{Document, Element, Writer};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::row::Row;
use super::{ADMIN, Account, MESSAGE_BYTES_MAX, Session, failure, integer};
use crate::database::event::{Error, Event, ExecuteError, shortened};

/// Largest command: a message without its frame and what is added to it.
pub const COMMAND_BYTES_MAX: usize = MESSAGE_BYTES_MAX - (16 << 10);

/// Commands that take a comment since 4.4, and that may be load.
const COMMENTED: [&str; 9] =
    ["find", "aggregate", "insert", "update", "delete", "findAndModify", "findandmodify", "count", "distinct"];

/// The name of these connections. A source has another one: by its own name it knows what to leave out.
const APPLICATION: &str = "holdup load";

/// The kind of bytes that a UUID is.
const UUID: u8 = 4;

/// One command.
#[derive(Clone, Default, PartialEq)]
pub struct Command {
    /// The database that it goes to.
    pub database: String,
    /// Its name, which is that of its first value.
    pub name: String,
    /// The number of documents that a cursor's further batches have, if it says that.
    pub batch: Option<i32>,
    /// It has a comment of its own.
    pub has_comment: bool,
    /// Its values.
    pub document: Writer,
}

impl Command {
    /// Whether a comment can be added to it.
    #[must_use]
    pub fn takes_comment(&self) -> bool {
        !self.has_comment && COMMENTED.contains(&self.name.as_str())
    }
}

/// Shows no values: they may contain secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("name", &self.name)
            .field("bytes", &self.document.size())
            .finish_non_exhaustive()
    }
}

/// What is awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaited {
    #[default]
    Nothing,
    /// The answer to a command, or to the request for more of its documents.
    Command,
    Commit,
    Abort,
}

/// What follows from an answer.
enum Next {
    /// The cursor has more documents: its id, database and collection.
    More(i64, String, String),
    /// The next command, or the end.
    Command,
    Failed,
}

/// The answer to the commands executed last.
#[derive(Default)]
struct Work {
    queue: VecDeque<Command>,
    /// The command whose answer is awaited.
    current: Command,
    index: usize,
    awaited: Awaited,
    comment: String,
    keeps_row: bool,
    keeps_every_row: bool,
    wants_row: bool,
    /// The number of the transaction, and whether its first command has been sent.
    transaction: Option<(i64, bool)>,
    rows: u64,
    affected: u64,
    bytes: u64,
    failure: Option<(usize, String, String)>,
}

/// A connection that executes commands.
pub(crate) struct CommandQueue {
    wire: Session,
    work: Work,
    /// The name of the connection's logical session, which transactions need, and their number so far.
    logical: Option<([u8; 16], i64)>,
    keeps_every_row: bool,
}

impl CommandQueue {
    pub(crate) fn new(account: Option<Account>) -> Self {
        Self {
            wire: Session::called(APPLICATION, account, MESSAGE_BYTES_MAX),
            work: Work::default(),
            logical: None,
            keeps_every_row: false,
        }
    }

    pub(crate) fn output(&self) -> &[u8] {
        self.wire.output()
    }

    pub(crate) fn consumed(&mut self, count: usize) {
        self.wire.consumed(count);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.wire.is_ready() && self.work.awaited == Awaited::Nothing
    }

    pub(crate) fn keep_every_row(&mut self) {
        self.keeps_every_row = true;
    }

    pub(crate) fn has_transactions(&self) -> bool {
        self.wire.has_transactions()
    }

    /// Sends the first of `commands`.
    pub(crate) fn execute(
        &mut self,
        commands: &[Command],
        is_transaction: bool,
        keeps_row: bool,
        comment: &[u8],
    ) -> Result<(), ExecuteError> {
        if commands.is_empty() {
            return Err(ExecuteError::Empty);
        }
        if commands.iter().any(|command| command.document.size() > COMMAND_BYTES_MAX) {
            return Err(ExecuteError::TooLarge);
        }
        let mut transaction = None;
        if is_transaction {
            if !self.has_transactions() {
                return Err(ExecuteError::NoTransactions);
            }
            let (_, number) = match &mut self.logical {
                Some(logical) => logical,
                none => none.insert((new_uuid()?, 0)),
            };
            *number += 1;
            transaction = Some((*number, false));
        }
        self.work = Work {
            queue: commands.iter().cloned().collect(),
            comment: String::from_utf8_lossy(comment).into_owned(),
            keeps_row,
            keeps_every_row: self.keeps_every_row,
            transaction,
            ..Work::default()
        };
        self.next().map_err(|_| ExecuteError::NotReady)
    }

    /// Takes received bytes, split anyhow.
    pub(crate) fn feed(&mut self, bytes: &[u8], events: &mut dyn FnMut(Event<'_>)) -> Result<(), Error> {
        let Self { wire, work, .. } = self;
        work.bytes += bytes.len() as u64;
        let mut next = None;
        wire.feed(bytes, &mut |event| match event {
            super::Event::LoggedIn => events(Event::LoggedIn),
            super::Event::Answer(document) => next = Some(work.answered(document, events)),
        })?;
        match next {
            None => return Ok(()),
            Some(Next::More(id, database, collection)) => {
                let mut more = Writer::new().long("getMore", id).text("collection", &collection);
                if let Some(batch) = work.current.batch {
                    more = more.int("batchSize", batch);
                }
                let more = self.in_transaction(more);
                return self.wire.send(&database, more);
            }
            Some(Next::Command) => self.next()?,
            Some(Next::Failed) => self.failed()?,
        }
        if self.work.awaited == Awaited::Nothing {
            self.work.end(events);
        }
        Ok(())
    }

    /// Ends the logical session: a server keeps it for half an hour otherwise.
    pub(crate) fn quit(&mut self) {
        if let Some((name, _)) = self.logical.take() {
            let session = Writer::new().binary_of(UUID, "id", &name);
            let sessions = Writer::list(|list| list.document("0", session));
            self.wire.send_last(ADMIN, Writer::new().list_of("endSessions", sessions));
        }
    }

    /// Sends the next command, or the end of the transaction; with neither, nothing is awaited.
    fn next(&mut self) -> Result<(), Error> {
        let work = &mut self.work;
        let Some(command) = work.queue.pop_front() else {
            if work.transaction.is_some() && work.awaited == Awaited::Command {
                return self.end_transaction("commitTransaction", Awaited::Commit);
            }
            work.awaited = Awaited::Nothing;
            return Ok(());
        };
        work.index += usize::from(work.awaited != Awaited::Nothing);
        work.awaited = Awaited::Command;
        work.wants_row = work.keeps_row;
        let mut document = command.document.clone();
        if !work.comment.is_empty() && command.takes_comment() {
            document = document.text("comment", &work.comment);
        }
        let database = command.database.clone();
        // Its values are not needed any more.
        work.current = Command { document: Writer::new(), ..command };
        let document = self.in_transaction(document);
        self.wire.send(&database, document)
    }

    /// A command failed: the transaction, if there is one, is rolled back first.
    fn failed(&mut self) -> Result<(), Error> {
        if self.work.transaction.is_some() && self.work.awaited == Awaited::Command {
            return self.end_transaction("abortTransaction", Awaited::Abort);
        }
        self.work.awaited = Awaited::Nothing;
        Ok(())
    }

    fn end_transaction(&mut self, name: &str, awaited: Awaited) -> Result<(), Error> {
        self.work.awaited = awaited;
        let command = self.in_transaction(Writer::new().int(name, 1));
        self.wire.send(ADMIN, command)
    }

    /// A command with the names of its session and transaction.
    fn in_transaction(&mut self, command: Writer) -> Writer {
        let (Some((name, _)), Some((number, has_begun))) = (&self.logical, &mut self.work.transaction) else {
            return command;
        };
        let session = Writer::new().binary_of(UUID, "id", name);
        let command = command.document("lsid", session).long("txnNumber", *number).bool("autocommit", false);
        match std::mem::replace(has_begun, true) {
            true => command,
            false => command.bool("startTransaction", true),
        }
    }
}

impl Work {
    fn answered(&mut self, answer: Document<'_>, events: &mut dyn FnMut(Event<'_>)) -> Next {
        // The server may have rolled back by itself; the first failure is the one that counts.
        if self.awaited == Awaited::Abort {
            return Next::Failed;
        }
        let failed = failure(answer).or_else(|| write_failure(answer));
        if let Some((code, message)) = failed {
            self.failure = Some((self.index, code.to_string(), message));
            return Next::Failed;
        }
        if self.awaited == Awaited::Commit {
            return Next::Command;
        }
        if let Some(Element::Map(cursor)) = answer.get("cursor") {
            return self.batch(cursor, events);
        }
        let found = match answer.get("value") {
            Some(Element::Map(found)) if self.current.name.eq_ignore_ascii_case("findAndModify") => {
                self.rows += 1;
                found
            }
            _ => answer,
        };
        if ["insert", "update", "delete"].contains(&self.current.name.as_str()) {
            self.affected += answer.get("n").and_then(integer).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        }
        self.row(found, events);
        Next::Command
    }

    /// A batch of a cursor's documents.
    fn batch(&mut self, cursor: Document<'_>, events: &mut dyn FnMut(Event<'_>)) -> Next {
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
        if let Some(Element::List(batch)) = batch {
            for (_, element) in batch.elements().map_while(Result::ok) {
                self.rows += 1;
                if let (true, Element::Map(document)) = (self.wants_row, element) {
                    self.row(document, events);
                }
            }
        }
        let id = cursor.get("id").and_then(integer).unwrap_or(0);
        let Some(Element::Text(namespace)) = cursor.get("ns") else { return Next::Command };
        let namespace = String::from_utf8_lossy(namespace);
        match namespace.split_once('.') {
            Some((database, collection)) if id != 0 => Next::More(id, database.to_owned(), collection.to_owned()),
            _ => Next::Command,
        }
    }

    /// Passes on the first row of the present command, or every row.
    fn row(&mut self, document: Document<'_>, events: &mut dyn FnMut(Event<'_>)) {
        let is_wanted = self.wants_row;
        self.wants_row &= self.keeps_every_row;
        if is_wanted {
            let row = Row::new(document);
            let values: Vec<Option<&[u8]>> = row.values.iter().map(Option::as_deref).collect();
            events(Event::Row { statement: self.index, columns: &row.names, values: &values });
        }
    }

    fn end(&mut self, events: &mut dyn FnMut(Event<'_>)) {
        match self.failure.take() {
            Some((statement, code, message)) => events(Event::Failed { statement, code: &code, message: &message }),
            None => events(Event::Done {
                rows: self.rows,
                affected: self.affected,
                bytes: self.bytes,
                warnings: 0,
                hash: 0,
            }),
        }
    }
}

/// The first document that a write refused, or why it was not acknowledged as asked: such an answer is `ok`.
fn write_failure(answer: Document<'_>) -> Option<(i64, String)> {
    let refused = match answer.get("writeErrors") {
        Some(Element::List(errors)) => errors.elements().map_while(Result::ok).next().map(|(_, error)| error),
        _ => None,
    };
    let Element::Map(error) = refused.or_else(|| answer.get("writeConcernError"))? else { return None };
    let message = match error.get("errmsg") {
        Some(Element::Text(text)) => shortened(text),
        _ => String::new(),
    };
    Some((error.get("code").and_then(integer).unwrap_or(0), message))
}

/// A name for a logical session: a random UUID.
fn new_uuid() -> Result<[u8; 16], ExecuteError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ExecuteError::NoRandomNumbers)?;
    let [.., version, _, variant, _, _, _, _, _, _, _] = &mut bytes;
    *version = *version & 0x0f | 0x40;
    *variant = *variant & 0x3f | 0x80;
    Ok(bytes)
}
