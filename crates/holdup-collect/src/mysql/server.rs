//! A connection to the server: its limits, the mark on its statements, and the meaning of its
//! errors. It knows no tables.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::error::Error as _;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdup_sql::{Dialect, digest};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::address::Address;
use super::login::{Login, login};
use super::versions::Topic;
use crate::connections::{Connections, Slot};
use crate::database::Trouble;

/// Prefix of every statement that holdup sends, so that the server's records show its origin.
pub(super) const MARKER: &str = "/* holdup */";

/// Longest wait for a connection, or for more of an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Time limit and size limit of one whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(6);
pub(super) const ANSWER_BYTES: usize = 32 << 20;

/// Keeps holdup's session from writing and from waiting long for a lock.
const LIMITS: [&str; 3] = ["TRANSACTION READ ONLY", "lock_wait_timeout = 1", "innodb_lock_wait_timeout = 1"];

/// Why a statement has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is lost, or was never made.
    Lost(String),
    /// No answer within the time limit: the server accepts but does not respond.
    Silent(String),
    /// The answer exceeds holdup's size limit.
    Large(String),
    /// Nothing listens there.
    Refused(String),
    /// The server's error, number and message.
    Server(u16, String),
}

impl Trouble for Failure {
    fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    fn is_of_read(&self) -> bool {
        matches!(self, Self::Server(..) | Self::Silent(_) | Self::Large(_))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) | Self::Silent(why) | Self::Large(why) | Self::Refused(why) => f.write_str(why),
            Self::Server(number, words) => write!(f, "error {number}: {words}"),
        }
    }
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(error) => Self::Server(error.code, error.message),
            mysql::Error::IoError(error) => Self::io(&error),
            mysql::Error::CodecError(error) => match error.source().and_then(|source| source.downcast_ref()) {
                Some(error) => Self::io(error),
                // The driver does not export the variants of this error.
                None if error.to_string().starts_with("Packet is larger") => Self::large(),
                None => Self::Lost(error.to_string()),
            },
            mysql::Error::DriverError(mysql::DriverError::ConnectTimeout) => {
                Self::Lost(format!("no connection within {} s", PATIENCE.as_secs()))
            }
            mysql::Error::DriverError(mysql::DriverError::CouldNotConnect(Some((_, why, kind)))) => {
                if kind == std::io::ErrorKind::ConnectionRefused { Self::Refused(why) } else { Self::Lost(why) }
            }
            other => Self::Lost(other.to_string()),
        }
    }
}

impl Failure {
    fn io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        if matches!(error.kind(), TimedOut | WouldBlock) {
            return Self::silent();
        }
        Self::Lost(error.to_string())
    }

    pub(super) fn silent() -> Self {
        Self::Silent(format!("no answer within {} s", PATIENCE.as_secs()))
    }

    fn large() -> Self {
        Self::Large(format!("the answer is larger than {} MiB", ANSWER_BYTES >> 20))
    }

    /// Whether a privilege is missing: 1142 for a table, 1143 for a column, 1227 in general, 1044
    /// for a database.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Server(1044 | 1142 | 1143 | 1227, _))
    }

    /// Whether the account or password is wrong: 1045 in general, 1698 for a plugin, 1130 for the
    /// host, 1251, 1524 and 2059 for the authentication method, 1862 expired, 3118 and 4151 locked.
    pub(super) fn is_login(&self) -> bool {
        matches!(self, Self::Server(1045 | 1130 | 1251 | 1524 | 1698 | 1862 | 2059 | 3118 | 4151, _))
    }
}

/// Kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    MariaDb,
    MySql,
    Percona,
}

/// Kind and version of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) flavour: Flavour,
    pub(super) version: (u16, u16, u16),
}

impl Release {
    /// Parses `@@version` and `@@version_comment`.
    pub(super) fn parse(version: &str, comment: &str) -> Self {
        let flavour = if version.contains("MariaDB") || comment.to_ascii_lowercase().contains("mariadb") {
            Flavour::MariaDb
        } else if comment.contains("Percona") {
            Flavour::Percona
        } else {
            Flavour::MySql
        };
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self { flavour, version: (next(), next(), next()) }
    }

    pub(super) fn is_mariadb(self) -> bool {
        self.flavour == Flavour::MariaDb
    }
}

/// Digests of holdup's own statements, excluded from the server's records. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnDigests(Arc<Mutex<HashSet<String>>>);

impl OwnDigests {
    fn digests(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read-only connection.
pub(super) struct Server {
    conn: RefCell<Conn>,
    socket: TcpStream,
    /// Whether the server still owes an answer that holdup no longer waits for.
    is_silent: Cell<bool>,
    own: OwnDigests,
    pub(super) release: Release,
    pub(super) connection_id: i64,
    /// The port in use.
    pub(super) port: u16,
    /// An extra port that refused the connection, and its error.
    pub(super) detour: Option<(u16, String)>,
    /// Returned last.
    slot: Option<Slot>,
}

impl Server {
    /// Connects to the extra port if it is known. Otherwise connects to the main port, queries the
    /// extra port and moves there; if the extra port refuses, the main port is used. All of
    /// holdup's connections to the server share `own` and `connections`.
    pub(super) fn connect_sharing(
        address: &Address,
        own: &OwnDigests,
        connections: &Connections,
    ) -> Result<Self, Failure> {
        connections.may_try().map_err(Failure::Lost)?;
        let opened = Self::reach(address, own, connections);
        match &opened {
            Ok(_) => connections.opened(),
            Err(failure) => connections.failed(failure.to_string(), matches!(failure, Failure::Refused(_))),
        }
        opened
    }

    fn reach(address: &Address, own: &OwnDigests, connections: &Connections) -> Result<Self, Failure> {
        if let Some(extra) = address.extra_port {
            return match Self::open(address, extra, own, connections) {
                Err(failure) if !failure.is_login() => {
                    let detour = Some((extra, failure.to_string()));
                    let mut server = Self::open(address, address.port, own, connections).map_err(|_| failure)?;
                    server.detour = detour;
                    Ok(server)
                }
                opened => opened,
            };
        }
        let mut first = Self::open(address, address.port, own, connections)?;
        let ask = first.release.has(Topic::ExtraPort);
        if ask.is_empty() {
            return Ok(first);
        }
        let told = first.rows(ask).ok().and_then(|rows| rows.first().and_then(|row| row.int(0)));
        let Some(extra) = told.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0) else {
            return Ok(first);
        };
        match Self::open(address, extra, own, connections) {
            Ok(second) => Ok(second),
            Err(failure) => {
                first.detour = Some((extra, failure.to_string()));
                Ok(first)
            }
        }
    }

    fn open(address: &Address, port: u16, own: &OwnDigests, connections: &Connections) -> Result<Self, Failure> {
        let Login { conn, socket, slot } = login(address, port, connections.take_slot().map_err(Failure::Lost)?)?;
        let mut server = Self {
            conn: RefCell::new(conn),
            socket,
            is_silent: Cell::new(false),
            own: own.clone(),
            release: Release { flavour: Flavour::MySql, version: (0, 0, 0) },
            connection_id: 0,
            port,
            detour: None,
            slot: Some(slot),
        };
        let facts = server.rows("SELECT CONNECTION_ID(), @@version, @@version_comment")?;
        let facts = facts.first().ok_or_else(|| {
            Failure::Lost("the server returned no version: is this a MySQL or MariaDB server?".to_owned())
        })?;
        server.connection_id = facts.int(0).unwrap_or(0);
        server.release = Release::parse(&facts.text(1).unwrap_or_default(), &facts.text(2).unwrap_or_default());
        for limit in LIMITS.into_iter().chain([server.release.has(Topic::TimeLimit)]) {
            if limit.is_empty() {
                continue;
            }
            match server.rows(&format!("SET SESSION {limit}")) {
                // A server without InnoDB lacks its lock limit, and old ones lack the time limit:
                // then PATIENCE applies.
                Err(Failure::Server(..)) if !limit.ends_with("READ ONLY") => {}
                other => drop(other?),
            }
        }
        Ok(server)
    }

    /// Runs one statement.
    pub(super) fn rows(&self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.own.digests().insert(digest(sql, Dialect::MySql));
        let answer = self.answer(&format!("{MARKER} {sql}"));
        match &answer {
            Err(Failure::Silent(_)) => self.is_silent.set(true),
            Err(Failure::Large(_)) => drop(self.socket.shutdown(Shutdown::Both)),
            _ => {}
        }
        answer
    }

    /// All rows of an answer, within its limits.
    fn answer(&self, sql: &str) -> Result<Vec<Row>, Failure> {
        let deadline = Instant::now() + ANSWER_TIME;
        let mut conn = self.conn.borrow_mut();
        let answer = conn.query_iter(sql)?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for row in answer {
            let row = row?;
            bytes += (0..row.len()).filter_map(|at| row.as_ref(at)).map(size).sum::<usize>();
            let is_late = Instant::now() > deadline;
            if bytes > ANSWER_BYTES || is_late {
                // The driver would read the rest before it closes.
                let _ = self.socket.shutdown(Shutdown::Both);
                let late = || Failure::Lost(format!("no complete answer within {} s", ANSWER_TIME.as_secs()));
                return Err(if is_late { late() } else { Failure::large() });
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Runs a statement that contains foreign text: prepared, because then the server accepts only
    /// one statement.
    pub(super) fn rows_of_single(&self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.own.digests().insert(digest(sql, Dialect::MySql));
        let mut conn = self.conn.borrow_mut();
        let statement = conn.prep(format!("{MARKER} {sql}"))?;
        let rows = conn.exec(&statement, ());
        conn.close(statement)?;
        Ok(rows?)
    }

    /// Whether a statement with this digest is holdup's own.
    pub(super) fn is_own(&self, digest: &str) -> bool {
        self.own.digests().contains(digest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take()
            && self.is_silent.get()
            && let Ok(socket) = self.socket.try_clone()
        {
            slot.keep(socket.into());
        }
    }
}

/// Bytes of a value in memory.
fn size(value: &Value) -> usize {
    if let Value::Bytes(bytes) = value { bytes.len() } else { size_of::<Value>() }
}

/// Typed access to columns of the text protocol; `None` for NULL and for values of another type.
pub(super) trait Columns {
    fn text(&self, index: usize) -> Option<String>;
    fn float(&self, index: usize) -> Option<f64>;
    fn int(&self, index: usize) -> Option<i64>;
}

impl Columns for Row {
    fn text(&self, index: usize) -> Option<String> {
        match self.as_ref(index)? {
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Value::Int(number) => Some(number.to_string()),
            Value::UInt(number) => Some(number.to_string()),
            Value::Float(number) => Some(number.to_string()),
            Value::Double(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn float(&self, index: usize) -> Option<f64> {
        match self.as_ref(index)? {
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
            _ => self.text(index)?.parse().ok(),
        }
    }

    fn int(&self, index: usize) -> Option<i64> {
        match self.as_ref(index)? {
            Value::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes).ok()?;
                // Unsigned counters may exceed i64; then its maximum is used.
                text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|_| i64::MAX))
            }
            _ => self.text(index)?.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        let release = Release::parse("10.5.10-MariaDB-log", "mariadb.org binary distribution");
        assert_eq!((release.flavour, release.version), (Flavour::MariaDb, (10, 5, 10)));
        assert_eq!(Release::parse("8.0.36-28", "Percona Server (GPL)").flavour, Flavour::Percona);
    }
}
