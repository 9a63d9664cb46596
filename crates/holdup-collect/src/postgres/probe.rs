//! Finds out what this account can read from the server, and how to enable the rest. It only reads
//! and switches nothing on.

use holdup_recording::Coverage;

use super::address::Address;
use super::log::{self, Prefix};
use super::readings::{NEWEST, OLDEST, Right};
use super::server::{Failure, Server};
use super::{catalogs, plans};
use crate::coverage::{Line as _, complete, part};
use crate::database::Found;

/// The readable parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// Whether other sessions show their activity.
    pub(super) sessions: bool,
    /// The account's rights.
    pub(super) rights: Rights,
    /// The connected database, the only one whose tables are visible.
    pub(super) database: String,
    /// `track_activity_query_size`: bytes that sessions show of a statement, plus one.
    pub(super) query_size: usize,
    /// Where `pg_stat_statements` is installed.
    pub(super) statements: Option<Extension>,
    /// Whether plans are requested.
    pub(super) plans: bool,
    /// Whether the catalogs may be read.
    pub(super) catalogs: bool,
    /// The format of its log.
    pub(super) log: Option<log::Form>,
}

/// The rights of an account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rights {
    statistics: bool,
    monitor: bool,
}

impl Rights {
    /// Whether data that needs `right` can be read.
    pub(super) fn allow(self, right: Right) -> bool {
        match right {
            Right::Anyone => true,
            Right::Statistics => self.statistics,
            Right::Monitor => self.monitor,
        }
    }
}

/// The extension `pg_stat_statements`.
#[derive(Clone, Debug)]
pub(super) struct Extension {
    /// Its schema, quoted.
    pub(super) schema: String,
    /// The second part of its version, e.g. 10 of 1.10.
    pub(super) minor: i64,
}

const STATEMENTS: &str = "pg_stat_statements";
const TEXTS: &str = "statement texts";
const TABLES: &str = "tables";
const FILES: &str = "files";
const TIMING: &str = "i/o timing";
const LOG: &str = "log";
const PLANS: &str = "plans";

/// Probes the server.
pub(super) fn find(server: &Server, address: &Address) -> Result<Found<Parts>, Failure> {
    let source = address.source();
    let account = server.value("SELECT quote_ident(current_user)")?.unwrap_or_default();
    let may = server.rows(
        "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), pg_has_role(current_user, 'pg_monitor', 'USAGE'), \
         current_database()",
    )?;
    let row = may.rows.first();
    let is_true = |index| row.is_some_and(|row| row.text(index) == Some("t"));
    let rights = Rights { statistics: is_true(0), monitor: is_true(1) };
    let database = row.and_then(|row| row.text(2)).unwrap_or_default().to_owned();
    let mut parts = Parts { sessions: rights.statistics, rights, database, ..Parts::default() };
    let mut own = complete(&source);
    let mut missing = None;
    if !parts.sessions {
        let grant = format!("GRANT pg_monitor TO {account};");
        let why = format!(
            "the account {account} lacks pg_monitor (or pg_read_all_stats): it sees neither the activity nor the statements of other sessions"
        );
        own = own.partial(&why).enable(&grant);
        missing = Some((why, grant));
    } else if !(OLDEST..=NEWEST).contains(&server.major()) {
        own = own.note(format!(
            "PostgreSQL {} is outside the supported versions ({OLDEST} to {NEWEST}; tested with 13, 15 and 18): some figures may be missing",
            server.major()
        ));
    }
    let statements = statements(server, &source, &mut parts)?;
    let texts = texts(server, &source, &mut parts)?;
    let tables = tables(server, &source, &parts)?;
    let (objects, may_read) = catalogs::find(server, &source, &account)?;
    parts.catalogs = may_read;
    let files = files(&source, rights, &account);
    let timing = timing(server, &source)?;
    let log = log(server, address, &source, &mut parts)?;
    let (plans, may_ask) = plans::find(server, address, part(&source, PLANS))?;
    parts.plans = may_ask && parts.sessions;
    Ok(Found { parts, coverage: vec![own, statements, texts, tables, objects, files, timing, log, plans], missing })
}

/// The entry of the counters by statement.
fn statements(server: &Server, source: &str, parts: &mut Parts) -> Result<Coverage, Failure> {
    let entry = part(source, STATEMENTS);
    let found = server.rows(
        "SELECT quote_ident(nspname), extversion FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace \
         WHERE extname = 'pg_stat_statements'",
    )?;
    let database = server.value("SELECT quote_ident(current_database())")?.unwrap_or_default();
    let create = format!("CREATE EXTENSION pg_stat_statements; (in database {database})");
    let preloaded = server.setting("shared_preload_libraries")?;
    // An account that may not see the setting can still try.
    if let Some(libraries) = preloaded.filter(|libraries| !libraries.contains("pg_stat_statements")) {
        let all = if libraries.is_empty() { String::new() } else { format!("{libraries}, ") };
        let enable = format!(
            "ALTER SYSTEM SET shared_preload_libraries = '{all}pg_stat_statements'; restart the server; {create}"
        );
        let why = "the server does not load the extension, so the time per statement is unknown";
        return Ok(entry.absent(why).enable(enable));
    }
    let Some(row) = found.rows.first() else {
        let why = format!("the extension is not installed in the database {database}");
        return Ok(entry.absent(why).enable(create));
    };
    let schema = row.text(0).unwrap_or("public").to_owned();
    let version = row.text(1).unwrap_or_default();
    let minor: i64 = version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or(0);
    // A version 2 would have all columns of the last 1.x.
    let minor = if version.starts_with("1.") { minor } else { i64::MAX };
    let has_plan_times = minor >= 8;
    match server.rows(&format!("SELECT 1 FROM {schema}.pg_stat_statements(false) LIMIT 1")) {
        Ok(_) => {}
        Err(failure @ Failure::Server(..)) => {
            let account = server.value("SELECT quote_ident(current_user)")?.unwrap_or_default();
            let enable = format!("GRANT pg_read_all_stats TO {account}; {create}");
            return Ok(entry.absent(failure.to_string()).enable(enable));
        }
        Err(failure) => return Err(failure),
    }
    if !parts.sessions {
        let account = server.value("SELECT quote_ident(current_user)")?.unwrap_or_default();
        let why = "the account may not read other users' statements";
        return Ok(entry.absent(why).enable(format!("GRANT pg_monitor TO {account};")));
    }
    parts.statements = Some(Extension { schema, minor });
    if has_plan_times && server.setting("pg_stat_statements.track_planning")?.as_deref() != Some("on") {
        let why = "the time of planning is not counted (pg_stat_statements.track_planning is off)";
        return Ok(entry.note(why));
    }
    Ok(entry)
}

/// The entry of the sessions' statement texts.
fn texts(server: &Server, source: &str, parts: &mut Parts) -> Result<Coverage, Failure> {
    let mut entry = part(source, TEXTS);
    if server.setting("track_activities")?.as_deref() == Some("off") {
        let why = "track_activities is off: sessions do not show their statements";
        return Ok(entry.absent(why).enable("ALTER SYSTEM SET track_activities = on; SELECT pg_reload_conf();"));
    }
    let size = server.value("SELECT setting FROM pg_settings WHERE name = 'track_activity_query_size'")?;
    parts.query_size = size.and_then(|size| size.parse().ok()).unwrap_or(1024);
    if parts.query_size < 4096 {
        let why = format!(
            "the server keeps {} bytes of a session's statement: a trace id after that is cut off (put it first, see docs/trace-ids.md)",
            parts.query_size.saturating_sub(1)
        );
        entry = entry.partial(why).enable("ALTER SYSTEM SET track_activity_query_size = '16kB'; restart the server");
    }
    if server.major() >= 14 && server.setting("compute_query_id")?.as_deref() == Some("off") {
        let why = "compute_query_id is off: a truncated statement cannot be identified by its id";
        entry = entry.partial(why).enable("ALTER SYSTEM SET compute_query_id = auto; SELECT pg_reload_conf();");
    }
    Ok(entry)
}

/// The entry of tables and indexes, of which the server shows only one database.
fn tables(server: &Server, source: &str, parts: &Parts) -> Result<Coverage, Failure> {
    let entry = part(source, TABLES);
    if server.setting("track_counts")?.as_deref() == Some("off") {
        let why = "track_counts is off: tables have no counters, and autovacuum does not run";
        return Ok(entry.absent(why).enable("ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf();"));
    }
    // Ignores the maintenance database, which normally holds no tables.
    let others = server.value(
        "SELECT string_agg(datname, ', ' ORDER BY datname) FROM (SELECT datname FROM pg_database WHERE datallowconn \
         AND NOT datistemplate AND datname NOT IN (current_database(), 'postgres') ORDER BY datname LIMIT 20) AS holdup_d",
    )?;
    let Some(others) = others else { return Ok(entry) };
    let database = &parts.database;
    let why =
        format!("tables and indexes of the database {database} only: this connection cannot see those of {others}");
    Ok(entry.partial(why).enable(format!("name another database in the address ({source}/DATABASE)")))
}

/// The entry of the server's WAL and temporary files.
fn files(source: &str, rights: Rights, account: &str) -> Coverage {
    let entry = part(source, FILES);
    if rights.monitor {
        return entry;
    }
    let why = "the account may not list the server's WAL and temporary files";
    entry.absent(why).enable(format!("GRANT pg_monitor TO {account};"))
}

/// The entry of I/O timing.
fn timing(server: &Server, source: &str) -> Result<Coverage, Failure> {
    let entry = part(source, TIMING);
    if server.setting("track_io_timing")?.as_deref() != Some("off") {
        return Ok(entry);
    }
    let why = "track_io_timing is off: read and write times are always 0";
    Ok(entry.absent(why).enable("ALTER SYSTEM SET track_io_timing = on; SELECT pg_reload_conf();"))
}

/// Statements that take at least this long are logged; none if no time is set.
fn statement_threshold_ms(server: &Server) -> Result<Option<f64>, Failure> {
    let value = server.value("SELECT setting FROM pg_settings WHERE name = 'log_min_duration_statement'")?;
    Ok(value.and_then(|value| value.parse::<f64>().ok()).filter(|value| *value >= 0.0))
}

/// The entry of single executions, which only the log contains.
fn log(server: &Server, address: &Address, source: &str, parts: &mut Parts) -> Result<Coverage, Failure> {
    let entry = part(source, LOG);
    let setting = |name: &str| server.setting(name).map(Option::unwrap_or_default);
    let (minimum, sample, plans) = (
        setting("log_min_duration_statement")?,
        setting("log_min_duration_sample")?,
        setting("auto_explain.log_min_duration")?,
    );
    let is_on = |value: &str| !value.is_empty() && value != "-1";
    const SWITCH_ON: &str = "ALTER SYSTEM SET log_min_duration_statement = '100ms'; SELECT pg_reload_conf();";
    let Some(path) = &address.log else {
        let why = "no log was named: single executions, their times and trace ids cannot be read";
        let place = server.setting("log_directory")?.unwrap_or_else(|| "hidden from this account".to_owned());
        let switch = if is_on(&minimum) || is_on(&plans) { "" } else { SWITCH_ON };
        let enable = format!("{switch} add ?log=FILE to the address (log_directory is {place})");
        return Ok(entry.absent(why).enable(enable.trim()));
    };
    let prefix = setting("log_line_prefix")?;
    // The present offset of the log's clock from UTC, seconds.
    let zone = server.value(
        "SELECT extract(epoch FROM (now() AT TIME ZONE current_setting('log_timezone')) - (now() AT TIME ZONE 'UTC'))::bigint",
    )?;
    let threshold_ms = statement_threshold_ms(server)?;
    let form = log::Form {
        prefix: Prefix::parse(&prefix),
        zone_seconds: zone.and_then(|zone| zone.parse().ok()).unwrap_or(0),
        statement_threshold_ms: threshold_ms,
    };
    if let Err(error) = log::newest(path) {
        let enable = "run holdup on the server's machine, as a user who may read its log";
        return Ok(entry.absent(format!("{}: {error}", path.display())).enable(enable));
    }
    let is_text = log::is_text(path);
    let mut lacks = Vec::new();
    let mut enable = Vec::new();
    if !is_on(&minimum) && !is_on(&plans) && !is_on(&sample) {
        lacks.push("log_min_duration_statement and auto_explain are off: the log contains no executions".to_owned());
        enable.push(SWITCH_ON);
    }
    if is_text && !(form.prefix.has_time() && form.prefix.has_pid()) {
        lacks.push(format!("log_line_prefix is '{prefix}': without %m and %p executions have no time or no session"));
        enable.push("ALTER SYSTEM SET log_line_prefix = '%m [%p] %q%u@%d '; SELECT pg_reload_conf();");
    }
    let language = setting("lc_messages")?;
    if !(language.is_empty()
        || language.starts_with("C")
        || language.starts_with("POSIX")
        || language.starts_with("en"))
    {
        lacks.push(format!("lc_messages is {language}: holdup reads only English messages"));
        enable.push("ALTER SYSTEM SET lc_messages = 'C'; SELECT pg_reload_conf();");
    }
    parts.log = Some(form);
    Ok(match threshold_ms.filter(|threshold| *threshold > 0.0) {
        _ if !lacks.is_empty() => entry.partial(lacks.join("; ")).enable(enable.join(" ")),
        Some(threshold) => entry.note(format!(
            "executions of {threshold} ms or more (log_min_duration_statement); shorter ones are incomplete"
        )),
        None => entry,
    })
}
