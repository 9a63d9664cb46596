//! The actions of each session, in order of time. Assembles a log's records to sessions, and counts
//! the statements that are left out, by reason.
//!
//! A session is a connection of the log, with its database, from its first statement (or its logged
//! connect) to its last (or its logged end). If a log does not identify connections, a statement
//! belongs to any free connection of its user.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::digest::event::Kind;
use holdup_sql::{Dialect, Lexer, TokenKind, trace_id};
use memchr::memchr;

use crate::replay::judge::Judgement;
use crate::replay::order::{Order, TimedRecord};
use crate::replay::parameters::parameters;
use crate::replay::shapes::Shapes;
use crate::replay::source::Recorded;

/// The beginning of statements of holdup's own collectors.
const OWN: &[u8] = b"/* holdup */";

/// Why a statement is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It changes something.
    Changes,
    /// It locks what it reads.
    Locks,
    /// It calls functions that are not known to only compute.
    Calls,
    /// It is not known to only read.
    Unclear,
    /// Its parameters are not in the log.
    Values,
    /// The log has only a part of it.
    Cut,
    /// It is not UTF-8.
    Bytes,
    /// It uses another database, but all sessions are to use one.
    Database,
    /// It is written for another kind of server.
    Language,
    /// It comes from holdup's own collectors.
    Own,
}

impl Reason {
    /// In one word, and as it stands behind a count of statements.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Changes => ("changes", "change data, tables or the server (--writes sends them)"),
            Self::Locks => ("locks", "lock the rows that they read (--writes sends them)"),
            Self::Calls => ("calls", "call functions that are not known to only compute (--writes sends them)"),
            Self::Unclear => ("unclear", "are not known to only read (--writes sends them)"),
            Self::Values => ("values", "have parameters whose values are not in the log"),
            Self::Cut => ("cut", "are only partly in the log"),
            Self::Bytes => ("bytes", "are no UTF-8"),
            Self::Database => ("database", "use another database than --database"),
            Self::Language => ("language", "are for another kind of server"),
            Self::Own => ("own", "come from holdup's own collectors"),
        }
    }

    /// In words, as they stand behind a count of statements.
    pub fn words(self) -> &'static str {
        self.texts().1
    }

    /// In one word.
    pub fn name(self) -> &'static str {
        self.texts().0
    }
}

/// Rules for sending.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The dialect of the target.
    pub dialect: Dialect,
    /// Also send statements that are not known to only read.
    pub writes: bool,
    /// Put all sessions into this database, whatever the log says.
    pub database: Option<Arc<str>>,
    /// Most statements.
    pub limit: Option<u64>,
    /// Length of the replayed period from the first statement on, microseconds of the log.
    pub length_us: Option<i64>,
}

/// One action of a session.
#[derive(Clone, Debug)]
pub struct Item {
    /// Number of the session, from 0, in order of appearance.
    pub session: u64,
    /// When, microseconds of the log.
    pub begin_us: i64,
    /// The action.
    pub action: Action,
}

/// The kind of an action.
#[derive(Clone, Debug)]
pub enum Action {
    /// It connected, to that database if it is known.
    Open(Option<Arc<str>>),
    /// It executed a statement.
    Execute(Execution),
    /// It left.
    Close,
}

/// An execution to be sent.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Its number among all statements of the log, from 0, including those that are left out.
    pub number: u64,
    /// Its shape, by number.
    pub shape: u32,
    /// The statement.
    pub text: String,
    /// Its parameters.
    pub parameters: Vec<Option<Vec<u8>>>,
    /// The database of its session at the start, for a session without a logged connect.
    pub entry: Option<Arc<str>>,
    /// Database to switch to first, because the log only shows that the session was in another one.
    pub goes_to: Option<String>,
    /// How long it took, microseconds.
    pub took_us: Option<u64>,
    /// Trace id in its comment.
    pub trace_id: Option<String>,
}

/// A session so far.
#[derive(Clone, Debug)]
struct OpenSession {
    session: u64,
    entry: Option<Arc<str>>,
    /// Its current database.
    database: Option<Arc<str>>,
}

/// Connections of a user whose numbers the log does not have.
type Pool = Vec<(u64, i64)>;

/// Counts of what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Statements, by reason.
    pub statements: BTreeMap<Reason, u64>,
    /// Commands of the protocol that are not statements, such as `Ping`.
    pub commands: u64,
}

/// See the module.
pub struct Mix<I> {
    order: Order<I>,
    rules: Rules,
    /// The statements, by shape.
    pub shapes: Shapes,
    seats: HashMap<u64, OpenSession>,
    pools: HashMap<(Vec<u8>, Vec<u8>), Pool>,
    sessions: u64,
    connections: u64,
    number: u64,
    sent: u64,
    first_us: Option<i64>,
    ready: VecDeque<Item>,
    /// Number of the last statement of each session, if already known.
    lasts: Option<Arc<Vec<u64>>>,
    is_over: bool,
    /// Whether the limit ended it.
    pub is_limited: bool,
    /// What was left out so far.
    pub left_out: LeftOut,
}

impl<I: Iterator<Item = Recorded>> Mix<I> {
    /// The mix of `order` under `rules`. With a survey's `lasts`, a session leaves behind its last
    /// statement.
    pub fn new(order: Order<I>, rules: Rules, lasts: Option<Arc<Vec<u64>>>) -> Self {
        Self {
            shapes: Shapes::new(rules.dialect),
            order,
            rules,
            seats: HashMap::new(),
            pools: HashMap::new(),
            sessions: 0,
            connections: 0,
            number: 0,
            sent: 0,
            first_us: None,
            ready: VecDeque::new(),
            lasts,
            is_over: false,
            is_limited: false,
            left_out: LeftOut::default(),
        }
    }

    /// Its source.
    pub fn order(&self) -> &Order<I> {
        &self.order
    }

    /// Statements of the log so far, including those left out.
    pub fn statements(&self) -> u64 {
        self.number
    }

    fn give(&mut self, session: u64, begin_us: i64, action: Action) {
        self.ready.push_back(Item { session, begin_us, action });
    }

    fn name(bytes: &[u8]) -> Option<Arc<str>> {
        std::str::from_utf8(bytes).ok().filter(|name| !name.is_empty()).map(Arc::from)
    }

    /// The database in a record.
    fn database(&self, recorded: &Recorded) -> Option<Arc<str>> {
        self.rules.database.clone().or_else(|| Self::name(&recorded.database))
    }

    fn open(&mut self, connection: u64, entry: Option<Arc<str>>) -> u64 {
        let session = self.sessions;
        self.sessions += 1;
        self.seats.insert(connection, OpenSession { session, database: entry.clone(), entry });
        session
    }

    fn close(&mut self, connection: u64, begin_us: i64) {
        if let Some(seat) = self.seats.remove(&connection) {
            self.give(seat.session, begin_us, Action::Close);
        }
    }

    fn take(&mut self, timed: TimedRecord) {
        let TimedRecord { begin_us, recorded } = timed;
        let first_us = *self.first_us.get_or_insert(begin_us);
        if self.rules.length_us.is_some_and(|length| begin_us - first_us >= length)
            || self.rules.limit.is_some_and(|limit| self.sent >= limit)
        {
            (self.is_over, self.is_limited) = (true, true);
            return;
        }
        match recorded.kind {
            Kind::Parse | Kind::Bind => {}
            Kind::Command => self.command(begin_us, &recorded),
            Kind::Shaped => *self.left_out.statements.entry(Reason::Language).or_default() += 1,
            Kind::Statement => {
                let number = self.number;
                self.number += 1;
                if let Err(reason) = self.statement(begin_us, number, recorded) {
                    *self.left_out.statements.entry(reason).or_default() += 1;
                }
            }
        }
    }

    fn command(&mut self, begin_us: i64, recorded: &Recorded) {
        let connection = recorded.connection;
        match recorded.sql.as_slice() {
            // A refused login is logged without an account, and opens no session.
            b"Connect" | b"Change user" if !recorded.user.is_empty() => {
                self.close(connection, begin_us);
                let entry = self.database(recorded);
                let session = self.open(connection, entry.clone());
                self.give(session, begin_us, Action::Open(entry));
            }
            b"Quit" => self.close(connection, begin_us),
            // The next statement carries the new database, and the session switches then.
            b"Init DB" => {}
            _ => self.left_out.commands += 1,
        }
    }

    fn statement(&mut self, begin_us: i64, number: u64, recorded: Recorded) -> Result<(), Reason> {
        if recorded.sql.trim_ascii_start().starts_with(OWN) {
            return Err(Reason::Own);
        }
        let is_postgres = self.rules.dialect == Dialect::PostgreSql;
        if recorded.dialect.is_some_and(|dialect| (dialect == Dialect::PostgreSql) != is_postgres) {
            return Err(Reason::Language);
        }
        if recorded.is_cut {
            return Err(Reason::Cut);
        }
        let database = self.database(&recorded);
        let mut found = self.shapes.classify(&recorded.sql);
        if let Some(shape) = self.shapes.all.get_mut(found.shape as usize) {
            shape.calls += 1;
        }
        match found.judgement {
            Judgement::Use if self.rules.database.is_some() => return Err(Reason::Database),
            Judgement::Reads | Judgement::Session | Judgement::Use => {}
            _ if self.rules.writes => {}
            Judgement::Changes => return Err(Reason::Changes),
            Judgement::Locks => return Err(Reason::Locks),
            Judgement::Calls => return Err(Reason::Calls),
            Judgement::Unclear => return Err(Reason::Unclear),
        }
        let parameters = values(&recorded, self.rules.dialect)?;
        let trace_id = memchr(b'*', &recorded.sql).and_then(|_| trace_id(&recorded.sql, self.rules.dialect));
        let mut text = String::from_utf8(recorded.sql).map_err(|_| Reason::Bytes)?;
        let connection = match recorded.connection {
            0 => self.free((recorded.user, recorded.host), begin_us, recorded.took_us),
            connection => connection,
        };
        if !self.seats.contains_key(&connection) {
            self.open(connection, database.clone());
        }
        let Some(seat) = self.seats.get_mut(&connection) else { return Ok(()) };
        let mut goes_to = None;
        if found.judgement == Judgement::Use {
            if let Some(name) = &database {
                // A slow log has the name in another field.
                text = format!("USE {}", quoted(name));
                seat.database.clone_from(&database);
                found = self.shapes.classify(text.as_bytes());
            }
        } else if !is_postgres && database.is_some() && seat.database != database {
            seat.database.clone_from(&database);
            goes_to = database.as_deref().map(|name| format!("USE {}", quoted(name)));
        }
        let took_us = recorded.took_us;
        self.shapes.count_sent(found, took_us.unwrap_or(0));
        let shape = found.shape;
        let (session, entry) = (seat.session, seat.entry.clone());
        self.sent += 1;
        self.give(
            session,
            begin_us,
            Action::Execute(Execution { number, shape, text, parameters, entry, goes_to, took_us, trace_id }),
        );
        let is_last = self.lasts.as_ref().is_some_and(|lasts| {
            usize::try_from(session).ok().and_then(|session| lasts.get(session)).is_some_and(|last| *last == number)
        });
        if is_last {
            self.close(connection, begin_us);
        }
        Ok(())
    }

    /// A connection of a user that was free at `begin_us`, for a log that does not identify
    /// connections.
    fn free(&mut self, who: (Vec<u8>, Vec<u8>), begin_us: i64, took_us: Option<u64>) -> u64 {
        let until = begin_us.saturating_add(took_us.and_then(|took| i64::try_from(took).ok()).unwrap_or(0));
        let pool = self.pools.entry(who).or_default();
        if let Some((connection, busy_until)) = pool.iter_mut().find(|(_, busy_until)| *busy_until <= begin_us) {
            *busy_until = until;
            return *connection;
        }
        self.connections += 1;
        // Above all numbers that servers assign.
        let connection = 1 << 63 | self.connections;
        pool.push((connection, until));
        connection
    }
}

impl<I: Iterator<Item = Recorded>> Iterator for Mix<I> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.is_over {
                return None;
            }
            let timed = self.order.next()?;
            self.take(timed);
        }
    }
}

/// A name in MySQL's quotes.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The parameter for each `$n` or `?`.
fn values(recorded: &Recorded, dialect: Dialect) -> Result<Vec<Option<Vec<u8>>>, Reason> {
    if recorded.parameters.is_empty() {
        let mark = if dialect == Dialect::PostgreSql { b'$' } else { b'?' };
        let is_place =
            |token: holdup_sql::Token| token.kind == TokenKind::Parameter && token.text.first() == Some(&mark);
        let has_places = memchr(mark, &recorded.sql).is_some() && Lexer::new(&recorded.sql, dialect).any(is_place);
        return if has_places { Err(Reason::Values) } else { Ok(Vec::new()) };
    }
    parameters(&recorded.parameters).ok_or(Reason::Values)
}

#[cfg(test)]
mod tests;
