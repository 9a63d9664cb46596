//! `--watch pgbouncer://USER@HOST:PORT/pgbouncer`: the admin console of PgBouncer, a pool of
//! connections between apps and PostgreSQL. It shows how many clients wait for a server connection,
//! and for how long they waited: time that neither the app nor PostgreSQL can tell apart from the
//! database's.
//!
//! The console accepts no comments, so holdup's commands carry no marker: `SHOW CLIENTS` names them
//! by `application_name`. Columns are found by name, because versions differ.

use holdup_recording::metrics::pgbouncer as metric;
use holdup_recording::{Batch, Coverage, Labels};

use crate::database::Link;
use crate::options::Options;
use crate::postgres::address::{self, Address};
use crate::postgres::connection::{Connection, Failure};
use crate::reading::{Out, tell};
use crate::table::{NamedRow, Rows};
use crate::{Collector, ProbeError, ReadError};

/// PgBouncer's port.
const PORT: u16 = 6432;

/// The console's name as a database. Its own rows are holdup's, and are left out.
const CONSOLE: &str = "pgbouncer";

/// Most pools and databases read, those with the longest queues first.
const ROWS_MAX: usize = 500;

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

/// A PgBouncer as a source.
struct PgBouncer {
    source: String,
    address: Address,
    link: Link<Connection>,
}

/// Makes the collector for `pgbouncer://…`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let address = parse(rest).map_err(|why| format!("{why}; expected {EXAMPLE}"))?;
    let source = format!("pgbouncer://{}:{}", address.host, address.port);
    Ok(Box::new(PgBouncer { source, address, link: Link::default() }))
}

fn parse(rest: &str) -> Result<Address, String> {
    let rest = rest.strip_prefix("//").ok_or("it does not begin with pgbouncer://")?;
    let mut address = address::read(rest, PORT)?;
    CONSOLE.clone_into(&mut address.database);
    Ok(address)
}

impl PgBouncer {
    /// Runs `read` on the console, after a loss over a new connection.
    fn with_console<T>(
        &mut self,
        read: impl FnOnce(&mut Connection, &str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connections = &self.link.connections;
        let mut console = match self.link.server.take() {
            Some(console) => console,
            None => connections.attempt(|| Connection::open(&self.address, connections))?,
        };
        let result = read(&mut console, &self.source);
        match &result {
            Err(failure) if !matches!(failure, Failure::Server(..)) => connections.lost(failure.to_string()),
            _ => {
                connections.served();
                self.link.server = Some(console);
            }
        }
        result
    }

    fn unusable(&self, failure: &Failure) -> ProbeError {
        let user = &self.address.user;
        let words = failure.to_string();
        if words.contains("not allowed") {
            let why = format!(
                "its console admits no user {user}: add stats_users = {user} to the section [pgbouncer] of pgbouncer.ini, then reload PgBouncer"
            );
            return ProbeError::denied(&self.source, why);
        }
        // The SQLSTATE is that of a protocol error in some versions.
        if REFUSALS.iter().any(|said| words.contains(said)) {
            let given = if self.address.password.reveal().is_empty() { "not given" } else { "given" };
            return ProbeError::denied(&self.source, format!("{words} (user {user}, password {given})"));
        }
        ProbeError::unreachable(&self.source, format!("{words}; is PgBouncer running, and is this its port?"))
    }
}

impl Collector for PgBouncer {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.link.connections.forget_failures();
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

/// Every row but the console's own, whose database is in the column `database`.
fn foreign<'r>(rows: impl IntoIterator<Item = NamedRow<'r>>, database: &str) -> impl Iterator<Item = NamedRow<'r>> {
    rows.into_iter().filter(move |row| row.text(database) != Some(CONSOLE)).take(ROWS_MAX)
}

fn put_pools(rows: &Rows, out: &mut Out) {
    for row in foreign(rows.named_by("cl_waiting"), "database") {
        let labels = Labels::new(["database", "user"].map(|name| (name, row.name(name))));
        row.put(out, &labels, metric::POOLS);
        let longest = row.number("maxwait").map(|seconds| seconds + row.number("maxwait_us").unwrap_or(0.0) / 1e6);
        out.put_known(&labels, [(metric::LONGEST_WAIT, longest)]);
    }
}

fn put_stats(rows: &Rows, out: &mut Out) {
    for row in foreign(rows.named(), "database") {
        row.put(out, &Labels::new([("database", row.name("database"))]), metric::STATS);
    }
}

fn put_databases(rows: &Rows, out: &mut Out) {
    for row in foreign(rows.named(), "name") {
        row.put(out, &Labels::new([("database", row.name("name"))]), metric::DATABASES);
    }
}

fn settings_from(rows: &Rows) -> Vec<(String, String)> {
    let known = rows.named().filter_map(|row| Some((row.text("key")?, row.text("value")?)));
    known.filter(|(name, _)| SETTINGS.contains(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;
    use holdup_recording::metrics::Metric;

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
        assert_eq!(value(&batch, metric::WAITING_CLIENTS, &shop), Some(5.0));
        assert_eq!(value(&batch, metric::LONGEST_WAIT, &shop), Some(7.0));
        assert_eq!(value(&batch, metric::WAITING_CLIENTS, &mart), Some(4.0));
        assert_eq!(value(&batch, metric::LONGEST_WAIT, &mart), Some(1.25));
        assert_eq!(value(&batch, metric::IDLE_SERVERS, &mart), None, "a column that is missing is no 0");
        assert_eq!(value(&batch, metric::WAIT_TIME, &[]), Some(2.5));
        assert_eq!(value(&batch, metric::SERVER_ASSIGNMENTS, &[]), Some(8.0));
        assert_eq!(value(&batch, metric::ACTIVE_CLIENTS, &[("database", "pgbouncer")]), None);
    }

    #[test]
    fn of_many_pools_those_with_a_queue_are_kept() {
        let lines: Vec<String> = (0..2_000).map(|n| format!("d{n} u {}", u8::from(n == 1_999))).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut batch = Batch::default();
        put_pools(&rows("database user cl_waiting", &lines), &mut Out::new(&mut batch, "pgbouncer://x"));
        assert_eq!(batch.samples.len(), ROWS_MAX);
        assert_eq!(value(&batch, metric::WAITING_CLIENTS, &[("database", "d1999")]), Some(1.0));
    }

    #[test]
    fn addresses_and_settings() {
        let short = parse("//me:canary@h").unwrap();
        assert_eq!((short.port, short.database.as_str()), (6432, "pgbouncer"));
        for bad in ["pgbouncer:", "pgbouncer://:canary@h", "pgbouncer://me:canary@h:0", "pgbouncer://me:canary@h?x=1"] {
            let error = crate::watch::collector(bad, &Options::default()).err().unwrap().to_string();
            assert!(error.contains("pgbouncer://USER") && !error.contains("canary"), "{error}");
        }
        let found = settings_from(&rows("key value default", &["pool_mode session session", "auth_query SELECT x"]));
        assert_eq!(found, [("pool_mode".to_owned(), "session".to_owned())]);
    }
}
