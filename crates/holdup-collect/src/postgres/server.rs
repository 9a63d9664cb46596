//! The read-only session with the server: how it is limited and marked. It knows no views.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use holdup_sql::digest;

use super::address::Address;
use super::connection::Connection;
pub(super) use super::connection::Failure;
use crate::connections::Connections;
pub(super) use crate::table::{Row, Rows};

/// Prefix of every statement that holdup sends, so that the server's records show its origin.
pub(super) const MARKER: &str = "/* holdup */";

/// Prefix of the names that holdup's statements give to tables and columns.
const OWN_NAME: &str = " holdup_";

/// Session settings: write nothing, block no other session, resolve names in the catalog only.
const SETTINGS: &str = "SET default_transaction_read_only = on; SET statement_timeout = 2000; SET lock_timeout = 200; \
     SET idle_in_transaction_session_timeout = 10000; SET search_path = pg_catalog; SET standard_conforming_strings = on; SET application_name = 'holdup'";

/// The query for the version as a number.
const VERSION: &str = "SELECT current_setting('server_version_num')";

/// A read-only connection.
pub(super) struct Server {
    connection: RefCell<Connection>,
    /// Digests of holdup's own statements: since 17 the server's counters drop a leading comment.
    /// If the server replaces words as constants, a name that begins with [`OWN_NAME`] tells.
    own: RefCell<HashSet<String>>,
    /// `server_version_num`, e.g. 150018.
    pub(super) version: i64,
    /// Whether a transaction is open.
    in_transaction: Cell<bool>,
}

/// Since this version statistics are in shared memory; before, each transaction loads them as a file.
const SHARED_STATISTICS: i64 = 15;

impl Server {
    /// All of holdup's connections to the server share `connections`.
    pub(super) fn open(address: &Address, connections: &Connections) -> Result<Self, Failure> {
        let mut connection = Connection::open(address, connections)?;
        connection.rows(format!("{MARKER} {SETTINGS}"), false, &[])?;
        let facts = connection.rows(format!("{MARKER} {VERSION}"), false, &[])?;
        let version = facts.rows.first().and_then(|row| row.int(0)).unwrap_or(0);
        let own =
            SETTINGS.split("; ").chain([VERSION]).map(|sql| digest(sql, holdup_sql::Dialect::PostgreSql)).collect();
        Ok(Self {
            connection: RefCell::new(connection),
            own: RefCell::new(own),
            version,
            in_transaction: Cell::new(false),
        })
    }

    /// All rows of one statement, which is sent with the marker.
    pub(super) fn rows(&self, sql: &str) -> Result<Rows, Failure> {
        self.execute(sql, false, &[])
    }

    /// The same for a statement of every sample: it stays prepared on the server, because planning
    /// it takes longer than executing it.
    pub(super) fn rows_again(&self, sql: &str) -> Result<Rows, Failure> {
        self.execute(sql, true, &[])
    }

    /// The same with `values` for `$1`, `$2`, …: for foreign text.
    pub(super) fn rows_with(&self, sql: &str, values: &[&str]) -> Result<Rows, Failure> {
        self.execute(sql, true, values)
    }

    fn execute(&self, sql: &str, is_prepared: bool, values: &[&str]) -> Result<Rows, Failure> {
        self.own.borrow_mut().insert(digest(sql, holdup_sql::Dialect::PostgreSql));
        let answer = self.connection.borrow_mut().rows(format!("{MARKER} {sql}"), is_prepared, values);
        if let Err(Failure::Server(..)) = &answer
            && self.in_transaction.replace(false)
        {
            // Ends the transaction: the next read starts another.
            self.rows("ROLLBACK")?;
            self.begin()?;
        }
        answer
    }

    /// Reads until [`end`](Self::end) share one transaction, if that spares the server loading its
    /// statistics file for each statement. Between statements it holds no snapshot, so it keeps no
    /// dead row from being removed.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        if self.major() < SHARED_STATISTICS {
            self.rows("BEGIN")?;
            self.in_transaction.set(true);
        }
        Ok(())
    }

    /// Ends what [`begin`](Self::begin) started.
    pub(super) fn end(&self) -> Result<(), Failure> {
        if self.in_transaction.replace(false) {
            self.rows("COMMIT")?;
        }
        Ok(())
    }

    /// Whether a statement in the server's counters is holdup's own.
    pub(super) fn is_own(&self, text: &str) -> bool {
        text.trim_start().starts_with(MARKER)
            // The server also replaces words that our lexer keeps: `extract($1 FROM now())`. So
            // some statements are recognized by their names.
            || self.major() >= 17
                && (text.contains(OWN_NAME) || self.own.borrow().contains(&digest(text, holdup_sql::Dialect::PostgreSql)))
    }

    /// The first value of the first row.
    pub(super) fn value(&self, sql: &str) -> Result<Option<String>, Failure> {
        Ok(self.rows(sql)?.rows.first().and_then(|row| row.text(0)).map(str::to_owned))
    }

    /// A setting, if it exists and the account may see it.
    pub(super) fn setting(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.value(&format!("SELECT current_setting('{name}', true)")) {
            // Some are visible only with the right to read all settings.
            Err(Failure::Server(..)) => Ok(None),
            other => other,
        }
    }

    /// Major version, e.g. 15.
    pub(super) fn major(&self) -> i64 {
        self.version / 10_000
    }
}
