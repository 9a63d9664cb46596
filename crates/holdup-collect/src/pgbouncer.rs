//! `--watch pgbouncer://USER@HOST:PORT/pgbouncer`: the admin console of PgBouncer, a pool of
//! connections between apps and PostgreSQL. It shows how many clients wait for a server connection,
//! and for how long they waited: time that neither the app nor PostgreSQL can tell apart from the
//! database's.
//!
//! The console accepts no comments, so holdup's commands carry no marker: `SHOW CLIENTS` names them
//! by `application_name`. Columns are found by name, because versions differ.

use holdup_recording::metrics::Metric;
use holdup_recording::{Batch, Coverage, Labels, metrics};

use crate::connections::Connections;
use crate::options::Options;
use crate::postgres::address::{self, Address};
use crate::postgres::connection::{Connection, Failure, Rows};
use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError};

/// PgBouncer's port.
const PORT: u16 = 6432;

/// The console's name as a database. Its own rows are holdup's, and are left out.
const CONSOLE: &str = "pgbouncer";

/// Most pools and databases read, those with the longest queues first.
const ROWS_MAX: usize = 500;

/// Characters kept of a name.
const NAME_CHARACTERS_MAX: usize = 100;

const EXAMPLE: &str = "pgbouncer://USER[:PASSWORD]@HOST[:PORT]/pgbouncer[?sslmode=disable|prefer|require|verify-ca|\
    verify-full, sslrootcert=PATH, password_env=VAR, password_file=PATH, host=/SOCKET/FOLDER]";

/// PgBouncer's words for a user or password that it does not accept.
const REFUSALS: &[&str] = &["authentication failed", "no such user", "auth failed"];

/// Settings that bound pools and waits. Others may contain queries and paths.
const SETTINGS: &[&str] = &[
    "pool_mode",
    "default_pool_size",
    "min_pool_size",
    "reserve_pool_size",
    "reserve_pool_timeout",
    "max_client_conn",
    "max_db_connections",
    "max_user_connections",
    "max_prepared_statements",
    "query_wait_timeout",
    "query_timeout",
    "server_idle_timeout",
    "server_lifetime",
];

/// Columns of `SHOW POOLS`.
const POOLS: &[(&str, Metric)] = &[
    ("cl_active", metrics::pgbouncer::ACTIVE_CLIENTS),
    ("cl_waiting", metrics::pgbouncer::WAITING_CLIENTS),
    ("sv_active", metrics::pgbouncer::ACTIVE_SERVERS),
    ("sv_idle", metrics::pgbouncer::IDLE_SERVERS),
    ("sv_used", metrics::pgbouncer::USED_SERVERS),
    ("sv_login", metrics::pgbouncer::LOGIN_SERVERS),
];

/// Columns of `SHOW STATS` that count.
const COUNTS: &[(&str, Metric)] = &[
    ("total_xact_count", metrics::pgbouncer::TRANSACTIONS),
    ("total_query_count", metrics::pgbouncer::QUERIES),
    ("total_server_assignment_count", metrics::pgbouncer::SERVER_ASSIGNMENTS),
    ("total_received", metrics::pgbouncer::RECEIVED_BYTES),
    ("total_sent", metrics::pgbouncer::SENT_BYTES),
];

/// Columns of `SHOW STATS` in microseconds.
const TIMES: &[(&str, Metric)] = &[
    ("total_wait_time", metrics::pgbouncer::WAIT_TIME),
    ("total_xact_time", metrics::pgbouncer::TRANSACTION_TIME),
    ("total_query_time", metrics::pgbouncer::QUERY_TIME),
];

/// Columns of `SHOW DATABASES`.
const DATABASES: &[(&str, Metric)] =
    &[("pool_size", metrics::pgbouncer::POOL_SIZE), ("current_connections", metrics::pgbouncer::DATABASE_CONNECTIONS)];

/// A PgBouncer as a source.
struct PgBouncer {
    source: String,
    address: Address,
    /// None before the first connection and after a loss.
    console: Option<Connection>,
    connections: Connections,
}

/// Makes the collector for `pgbouncer://…`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the address is not understood, or if a file or variable that it names does not exist.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    match parse(address) {
        Ok(address) => Ok(Box::new(PgBouncer {
            source: format!("pgbouncer://{}:{}", address.host, address.port),
            address,
            console: None,
            connections: Connections::default(),
        })),
        Err(why) => Err(ProbeError::BadAddress(format!("--watch pgbouncer://…: {why}; expected {EXAMPLE}"))),
    }
}

fn parse(address: &str) -> Result<Address, String> {
    let rest = address.strip_prefix("pgbouncer://").ok_or("it does not begin with pgbouncer://")?;
    let mut address = address::read(rest, PORT)?;
    CONSOLE.clone_into(&mut address.database);
    Ok(address)
}

impl PgBouncer {
    /// Takes out the connection, and makes a new one after a loss; [`finish`](Self::finish) puts it
    /// back.
    fn connected(&mut self) -> Result<Connection, Failure> {
        if let Some(console) = self.console.take() {
            return Ok(console);
        }
        self.connections.attempt(|| Connection::open(&self.address, &self.connections))
    }

    /// Runs `read` on the console.
    fn with_console<T>(
        &mut self,
        read: impl FnOnce(&mut Connection, &str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut console = self.connected()?;
        let result = read(&mut console, &self.source);
        match &result {
            Err(failure) if !matches!(failure, Failure::Server(..)) => self.connections.lost(failure.to_string()),
            _ => {
                self.connections.served();
                self.console = Some(console);
            }
        }
        result
    }

    fn unusable(&self, failure: &Failure) -> ProbeError {
        let (source_name, user) = (self.source.clone(), &self.address.user);
        let words = failure.to_string();
        if words.contains("not allowed") {
            let why = format!(
                "its console admits no user {user}: add stats_users = {user} to the section [pgbouncer] of pgbouncer.ini, then reload PgBouncer"
            );
            return ProbeError::Denied { source_name, why };
        }
        // The SQLSTATE is that of a protocol error in some versions.
        if REFUSALS.iter().any(|said| words.contains(said)) {
            let given = if self.address.password.reveal().is_empty() { "not given" } else { "given" };
            return ProbeError::Denied { source_name, why: format!("{words} (user {user}, password {given})") };
        }
        ProbeError::Unreachable { source_name, why: format!("{words}; is PgBouncer running, and is this its port?") }
    }
}

impl Collector for PgBouncer {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let read = self.with_console(|console, source| read_all(console, &mut Out::new(&mut Batch::default(), source)));
        read.map_err(|failure| self.unusable(&failure))?;
        Ok(Coverage::with_parts(&self.source, Vec::new()))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let read = self.with_console(|console, source| {
            let version = show(console, "VERSION")?;
            let version = version.rows.first().and_then(|row| row.text(0)).unwrap_or_default().to_owned();
            let rows = show(console, "CONFIG")?;
            let mut found = vec![("pgbouncer_version".to_owned(), version)];
            found.extend(settings_from(&rows));
            tell(batch, source, found);
            Ok(())
        });
        read.map_err(|failure| ReadError(format!("settings: {failure}")))
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let read = self.with_console(|console, source| read_all(console, &mut Out::new(batch, source)));
        read.map_err(|failure| ReadError(failure.to_string()))
    }
}

fn read_all(console: &mut Connection, out: &mut Out) -> Result<(), Failure> {
    for (what, put) in [("POOLS", put_pools as fn(&Rows, &mut Out)), ("STATS", put_stats), ("DATABASES", put_databases)]
    {
        out.begin();
        put(&show(console, what)?, out);
    }
    Ok(())
}

fn show(console: &mut Connection, what: &str) -> Result<Rows, Failure> {
    console.rows(format!("SHOW {what}"), false, &[])
}

/// Rows of an answer whose columns are found by name.
struct Table<'r> {
    rows: &'r Rows,
    order: Vec<usize>,
}

impl<'r> Table<'r> {
    /// Every row but the console's own, whose database is in the column `database`.
    fn new(rows: &'r Rows, database: &str) -> Self {
        let mut table = Self { rows, order: (0..rows.rows.len()).collect() };
        let is_own = |row: &usize| table.text(*row, database) == Some(CONSOLE);
        table.order = table.order.iter().copied().filter(|row| !is_own(row)).collect();
        table
    }

    fn text(&self, row: usize, column: &str) -> Option<&'r str> {
        let index = self.rows.columns.iter().position(|name| name == column)?;
        self.rows.rows.get(row)?.text(index)
    }

    fn number(&self, row: usize, column: &str) -> Option<f64> {
        self.text(row, column)?.parse().ok().filter(|value: &f64| value.is_finite())
    }

    fn label(&self, row: usize, column: &str) -> String {
        self.text(row, column).unwrap_or_default().chars().take(NAME_CHARACTERS_MAX).collect()
    }

    /// Puts those of `columns` that this version has.
    fn put(&self, out: &mut Out, row: usize, labels: &Labels, columns: &[(&str, Metric)], unit: f64) {
        for (column, metric) in columns {
            if let Some(value) = self.number(row, column) {
                out.put(metric, labels.clone(), value * unit);
            }
        }
    }
}

fn put_pools(rows: &Rows, out: &mut Out) {
    let mut table = Table::new(rows, "database");
    let waiting = |row: usize| table.number(row, "cl_waiting").unwrap_or(0.0);
    let mut order = table.order.clone();
    order.sort_by(|a, b| waiting(*b).total_cmp(&waiting(*a)));
    order.truncate(ROWS_MAX);
    table.order = order;
    for &row in &table.order {
        let labels = Labels::new(["database", "user"].map(|name| (name, table.label(row, name))));
        table.put(out, row, &labels, POOLS, 1.0);
        if let Some(seconds) = table.number(row, "maxwait") {
            let us = table.number(row, "maxwait_us").unwrap_or(0.0);
            out.put(metrics::pgbouncer::LONGEST_WAIT, labels, seconds + us / 1e6);
        }
    }
}

fn put_stats(rows: &Rows, out: &mut Out) {
    let table = Table::new(rows, "database");
    for &row in table.order.iter().take(ROWS_MAX) {
        let labels = Labels::new([("database", table.label(row, "database"))]);
        table.put(out, row, &labels, COUNTS, 1.0);
        table.put(out, row, &labels, TIMES, 1e-6);
    }
}

fn put_databases(rows: &Rows, out: &mut Out) {
    let table = Table::new(rows, "name");
    for &row in table.order.iter().take(ROWS_MAX) {
        table.put(out, row, &Labels::new([("database", table.label(row, "name"))]), DATABASES, 1.0);
    }
}

fn settings_from(rows: &Rows) -> Vec<(String, String)> {
    let table = Table::new(rows, "key");
    let known = table.order.iter().filter_map(|&row| Some((table.text(row, "key")?, table.text(row, "value")?)));
    known.filter(|(name, _)| SETTINGS.contains(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::connection::Row;

    fn rows(columns: &str, values: &[&str]) -> Rows {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let row = |line: &&str| Row(words(line).into_iter().map(Some).collect());
        Rows { columns: words(columns), rows: values.iter().map(row).collect(), ..Rows::default() }
    }

    fn value(batch: &Batch, metric: Metric, labels: &[(&str, &str)]) -> Option<f64> {
        batch.samples.iter().find(|s| s.metric == metric.name && s.labels.contains(labels)).map(|s| s.value)
    }

    #[test]
    fn columns_of_old_and_new_versions_are_found_by_name() {
        let mut batch = Batch::default();
        let mut out = Out::new(&mut batch, "pgbouncer://x");
        let old = "database user cl_active cl_waiting sv_active sv_idle sv_used sv_tested sv_login maxwait pool_mode";
        put_pools(
            &rows(old, &["shop me 3 5 2 0 0 0 0 7 session", "pgbouncer pgbouncer 1 0 0 0 0 0 0 0 statement"]),
            &mut out,
        );
        let new =
            "database user cl_active cl_active_cancel_req cl_waiting maxwait_us maxwait sv_active load_balance_hosts";
        put_pools(&rows(new, &["mart me 3 9 4 250000 1 2 disable"]), &mut out);
        put_stats(&rows("database total_wait_time total_server_assignment_count", &["mart 2500000 8"]), &mut out);
        let shop = [("database", "shop"), ("user", "me")];
        let mart = [("database", "mart"), ("user", "me")];
        assert_eq!(value(&batch, metrics::pgbouncer::WAITING_CLIENTS, &shop), Some(5.0));
        assert_eq!(value(&batch, metrics::pgbouncer::LONGEST_WAIT, &shop), Some(7.0));
        assert_eq!(value(&batch, metrics::pgbouncer::WAITING_CLIENTS, &mart), Some(4.0));
        assert_eq!(value(&batch, metrics::pgbouncer::LONGEST_WAIT, &mart), Some(1.25));
        assert_eq!(value(&batch, metrics::pgbouncer::IDLE_SERVERS, &mart), None, "a column that is missing is no 0");
        assert_eq!(value(&batch, metrics::pgbouncer::WAIT_TIME, &[]), Some(2.5));
        assert_eq!(value(&batch, metrics::pgbouncer::SERVER_ASSIGNMENTS, &[]), Some(8.0));
        assert_eq!(value(&batch, metrics::pgbouncer::ACTIVE_CLIENTS, &[("database", "pgbouncer")]), None);
    }

    #[test]
    fn of_many_pools_those_with_a_queue_are_kept() {
        let lines: Vec<String> = (0..2_000).map(|n| format!("d{n} u {}", u8::from(n == 1_999))).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut batch = Batch::default();
        put_pools(&rows("database user cl_waiting", &lines), &mut Out::new(&mut batch, "pgbouncer://x"));
        assert_eq!(batch.samples.len(), ROWS_MAX);
        assert_eq!(value(&batch, metrics::pgbouncer::WAITING_CLIENTS, &[("database", "d1999")]), Some(1.0));
    }

    #[test]
    fn addresses_and_settings() {
        let short = parse("pgbouncer://me:canary@h").unwrap();
        assert_eq!((short.port, short.database.as_str()), (6432, "pgbouncer"));
        for bad in ["pgbouncer:", "pgbouncer://:canary@h", "pgbouncer://me:canary@h:0", "pgbouncer://me:canary@h?x=1"] {
            let error = make(bad, &Options::default()).err().unwrap().to_string();
            assert!(error.contains("pgbouncer://USER") && !error.contains("canary"), "{error}");
        }
        let found = settings_from(&rows("key value default", &["pool_mode session session", "auth_query SELECT x"]));
        assert_eq!(found, [("pool_mode".to_owned(), "session".to_owned())]);
    }
}
