//! A connection to the server: its limits, and the mark on its statements. It knows no tables.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdup_sql::{Dialect, digest};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::address::Address;
use super::failure::{ANSWER_BYTES, Failure};
use super::login::{Login, login};
use super::release::{Flavour, Release};
use super::versions::Topic;
use crate::connections::{Connections, Slot};

/// Prefix of every statement that holdup sends, so that the server's records show its origin.
pub(super) const MARKER: &str = "/* holdup */";

/// Time limit of one whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(6);

/// Bytes of a statement's text that are read.
pub(super) const INFO_BYTES: usize = 65_536;

/// Keeps holdup's session from writing and from waiting long for a lock.
const LIMITS: [&str; 3] = ["TRANSACTION READ ONLY", "lock_wait_timeout = 1", "innodb_lock_wait_timeout = 1"];

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
