//! A connection to the server: how it is made, limited and marked, and what its errors mean to us. It knows
//! nothing of tables.

use std::cell::RefCell;
use std::collections::HashSet;
use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdup_sql::{Dialect, digest};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, SslOpts, Value};

use super::address::{Address, Tls};
use super::versions::Topic;
use crate::database::Trouble;

/// Begins every statement of ours, so that it is known in the server's own records.
pub(super) const MARKER: &str = "/* holdup */";

/// Longest wait for a connection or an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is of no use any more, or there never was one.
    Lost(String),
    /// Nothing came within the time: the server accepts and doesn't speak.
    Silent(String),
    /// The server's error, number and words.
    Server(u16, String),
}

impl Trouble for Failure {
    fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Server(..))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) | Self::Silent(why) => f.write_str(why),
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
                None => Self::Lost(error.to_string()),
            },
            mysql::Error::DriverError(mysql::DriverError::ConnectTimeout) => {
                Self::Lost(format!("no connection within {} s", PATIENCE.as_secs()))
            }
            mysql::Error::DriverError(mysql::DriverError::CouldNotConnect(Some((_, why, _)))) => Self::Lost(why),
            other => Self::Lost(other.to_string()),
        }
    }
}

impl Failure {
    fn io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        if matches!(error.kind(), TimedOut | WouldBlock) {
            return Self::Silent(format!("no answer within {} s", PATIENCE.as_secs()));
        }
        Self::Lost(error.to_string())
    }

    /// Whether it is for want of a privilege: 1142 on a table, 1143 on a column, 1227 in general, 1044 on a database.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Server(1044 | 1142 | 1143 | 1227, _))
    }

    /// Whether the account or password is wrong: 1045 in general, 1698 for a plugin, 1130 for the host, 1251, 1524 and 2059
    /// for a way to log in, 1862 expired, 3118 and 4151 locked.
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
    /// From `@@version` and `@@version_comment`.
    pub(super) fn of(version: &str, comment: &str) -> Self {
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

/// Digests of what we have run, to be left out of the server's records. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Own(Arc<Mutex<HashSet<String>>>);

impl Own {
    fn digests(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that reads only.
pub(super) struct Server {
    conn: RefCell<Conn>,
    own: Own,
    pub(super) release: Release,
    pub(super) connection_id: i64,
    /// The port that was used in the end.
    pub(super) port: u16,
    /// An extra port that did not let us in, and its words.
    pub(super) detour: Option<(u16, String)>,
}

impl Server {
    /// Connects to the extra port if one is known; else to the port, asks for the extra port and goes there. If the extra
    /// port does not let us in the port has to do.
    /// `own` is shared by all connections of ours to the server.
    pub(super) fn connect_sharing(address: &Address, own: &Own) -> Result<Self, Failure> {
        if let Some(extra) = address.extra_port {
            return match Self::open(address, extra, own) {
                Err(failure) if !failure.is_login() => {
                    let detour = Some((extra, failure.to_string()));
                    Self::open(address, address.port, own).map(|server| Self { detour, ..server }).map_err(|_| failure)
                }
                opened => opened,
            };
        }
        let mut first = Self::open(address, address.port, own)?;
        let ask = first.release.has(Topic::ExtraPort);
        if ask.is_empty() {
            return Ok(first);
        }
        let told = first.rows(ask).ok().and_then(|rows| rows.first().and_then(|row| row.int(0)));
        let Some(extra) = told.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0) else {
            return Ok(first);
        };
        match Self::open(address, extra, own) {
            Ok(second) => Ok(second),
            Err(failure) => {
                first.detour = Some((extra, failure.to_string()));
                Ok(first)
            }
        }
    }

    fn open(address: &Address, port: u16, own: &Own) -> Result<Self, Failure> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.host.clone()))
            .tcp_port(port)
            .user(Some(address.user.clone()))
            .pass(address.password.0.clone())
            .prefer_socket(false)
            .tcp_connect_timeout(Some(PATIENCE))
            .read_timeout(Some(PATIENCE))
            .write_timeout(Some(PATIENCE))
            .ssl_opts(match &address.tls {
                Tls::Off => None,
                Tls::Require => {
                    let anybody = SslOpts::default().with_danger_accept_invalid_certs(true);
                    Some(anybody.with_danger_skip_domain_validation(true))
                }
                Tls::Verify(authority) => Some(SslOpts::default().with_root_cert_path(authority.clone())),
            })
            // Given, so that the driver need not ask with a statement that has no marker.
            .max_allowed_packet(Some(64 << 20))
            .stmt_cache_size(0);
        let conn = Conn::new(options)?;
        let release = Release { flavour: Flavour::MySql, version: (0, 0, 0) };
        let mut server =
            Self { conn: RefCell::new(conn), own: own.clone(), release, connection_id: 0, port, detour: None };
        server.rows("SET SESSION TRANSACTION READ ONLY")?;
        let facts = server.rows("SELECT CONNECTION_ID(), @@version, @@version_comment")?;
        let facts = facts.first().ok_or_else(|| Failure::Lost("the server does not say who it is".to_owned()))?;
        server.connection_id = facts.int(0).unwrap_or(0);
        server.release = Release::of(&facts.text(1).unwrap_or_default(), &facts.text(2).unwrap_or_default());
        // Old servers have none: then only our own patience limits a statement.
        let limit = server.release.has(Topic::TimeLimit);
        if !limit.is_empty() {
            let _ = server.rows(&format!("SET SESSION {limit}"));
        }
        Ok(server)
    }

    /// Runs one statement of ours.
    pub(super) fn rows(&self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.own.digests().insert(digest(sql, Dialect::MySql));
        Ok(self.conn.borrow_mut().query(format!("{MARKER} {sql}"))?)
    }

    /// Runs a statement that holds words of others: prepared, of which the server takes one and no more.
    pub(super) fn rows_of_one(&self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.own.digests().insert(digest(sql, Dialect::MySql));
        let mut conn = self.conn.borrow_mut();
        let statement = conn.prep(format!("{MARKER} {sql}"))?;
        let rows = conn.exec(&statement, ());
        conn.close(statement)?;
        Ok(rows?)
    }

    /// Whether a statement of this digest is one of ours.
    pub(super) fn is_own(&self, digest: &str) -> bool {
        self.own.digests().contains(digest)
    }
}

/// Columns of the text protocol as what they are meant to be; `None` for NULL and for what can't be read so.
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
                // Unsigned counters may exceed what a column of ours holds; then the largest it does hold.
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
        let release = Release::of("10.5.10-MariaDB-log", "mariadb.org binary distribution");
        assert_eq!((release.flavour, release.version), (Flavour::MariaDb, (10, 5, 10)));
        assert_eq!(Release::of("8.0.36-28", "Percona Server (GPL)").flavour, Flavour::Percona);
    }
}
