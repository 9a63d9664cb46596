//! A connection to the server: its limits, and the mark on its statements. It knows no tables.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use holdup_protocol::database::{self, Login, Statement};
use holdup_sql::{Dialect, digest};

use super::address::Address;
use super::failure::Failure;
use super::release::{Flavour, Release};
use super::versions::Topic;
use crate::connections::Connections;
use crate::line::{Answer, Line, LineError, Place};
use crate::own_thread::lock;
pub(super) use crate::table::Row;
use crate::table::Rows;

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
        lock(&self.0)
    }
}

/// A read-only connection.
pub(super) struct Server {
    line: RefCell<Line>,
    own: OwnDigests,
    pub(super) release: Release,
    pub(super) connection_id: i64,
    /// The port in use.
    pub(super) port: u16,
    /// An extra port that refused the connection, and its error.
    pub(super) detour: Option<(u16, String)>,
}

impl Server {
    /// Connects to the extra port if it is known. Otherwise connects to the main port, queries the
    /// extra port and moves there; if the extra port refuses, the main port is used. All of
    /// holdup's connections to the server share `own` and `connections`.
    pub(super) fn reach(address: &Address, own: &OwnDigests, connections: &Connections) -> Result<Self, Failure> {
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
        let mut server = Self {
            line: RefCell::new(log_in(address, port, connections)?),
            own: own.clone(),
            release: Release { flavour: Flavour::MySql, version: (0, 0, 0) },
            connection_id: 0,
            port,
            detour: None,
        };
        let facts = server.rows("SELECT CONNECTION_ID(), @@version, @@version_comment")?;
        let facts = facts.first().ok_or_else(|| {
            Failure::Lost("the server returned no version: is this a MySQL or MariaDB server?".to_owned())
        })?;
        server.connection_id = facts.int(0).unwrap_or(0);
        server.release = Release::parse(facts.text(1).unwrap_or_default(), facts.text(2).unwrap_or_default());
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

    /// The rows of one statement. The connection does not ask for several statements in a text, so
    /// the server refuses a second one.
    pub(super) fn rows(&self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.table(sql).map(|table| table.rows)
    }

    /// The same with the names of its columns.
    pub(super) fn table(&self, sql: &str) -> Result<Rows, Failure> {
        self.own.digests().insert(digest(sql, Dialect::MySql));
        ask(&mut self.line.borrow_mut(), format!("{MARKER} {sql}"))
    }

    /// Whether a statement with this digest is holdup's own.
    pub(super) fn is_own(&self, digest: &str) -> bool {
        self.own.digests().contains(digest)
    }
}

/// The rows of one statement.
pub(crate) fn ask(line: &mut Line, text: String) -> Result<Rows, Failure> {
    match line.execute(Statement { text, ..Statement::default() }, ANSWER_TIME, false) {
        Ok(Answer::Rows(rows)) => Ok(rows),
        Ok(Answer::Failed(number, words)) => Err(Failure::Server(number.parse().unwrap_or(0), words)),
        Ok(Answer::TooLarge) => Err(Failure::large()),
        Err(error) => {
            // Of these the rest is still being sent.
            if matches!(error, LineError::Late(_) | LineError::Protocol(_)) {
                line.close();
            }
            Err(error.into())
        }
    }
}

/// A logged-in connection to `port`.
pub(crate) fn log_in(address: &Address, port: u16, connections: &Connections) -> Result<Line, LineError> {
    let trust = address.tls.trust("tls_ca");
    let login = Login::new(address.user.clone(), address.password.clone(), None);
    let place = Place::Network(&address.host, port);
    Line::open(&place, (database::Dialect::Mysql, login), trust.as_ref(), connections)
}
