//! Who waits for whose lock: `sys.innodb_lock_waits`, `sys.schema_table_lock_waits` and the well-known
//! queries on PostgreSQL's views (one row a pair), transactions of InnoDB, metadata locks, and `pg_locks`,
//! alone or joined with the sessions.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text};

use super::pg_units::interval_s;
use super::postgresql;
use super::processlist;
use super::sessions::{at_list, merge};
use super::{Context, Kind, Row, Table, clock, number};

pub(super) const BLOCKED: Kind = Kind::table(
    "sessions that wait for others",
    |columns| columns.has_any(&WAITER) && columns.has_any(&BLOCKER),
    read_blocked,
);

pub(super) const TRANSACTIONS: Kind = Kind::table(
    "innodb_trx",
    |columns| columns.has_any(&["trx_mysql_thread_id", "trx_id"]) && columns.has_any(&["trx_state", "trx_started"]),
    read_transactions,
);

pub(super) const METADATA: Kind =
    Kind::table("metadata_locks", |columns| columns.has(&["LOCK_TYPE", "LOCK_STATUS"]), read_metadata);

pub(super) const ROWS: Kind = Kind::table(
    "waits for row locks",
    |columns| {
        columns.has(&["requesting_trx_id", "blocking_trx_id"])
            || columns.has(&["REQUESTING_ENGINE_TRANSACTION_ID", "BLOCKING_ENGINE_TRANSACTION_ID"])
    },
    read_rows,
);

pub(super) const POSTGRESQL: Kind = Kind::table("pg_locks", |columns| columns.has(&["mode", "granted"]), read_pg_locks);

const WAITER: [&str; 9] = [
    "blocked_pid",
    "waiting_pid",
    "waiting_thread",
    "waiting_session",
    "blocked_session",
    "waiting_id",
    "blocked_id",
    "blocked_thread",
    "waiting_process_id",
];
const BLOCKER: [&str; 9] = [
    "blocking_pid",
    "blocking_thread",
    "blocking_session",
    "blocker_pid",
    "blocking_id",
    "blocker_id",
    "blocker_session",
    "blocker_thread",
    "blocking_process_id",
];

/// What a row says of the session that waits, and of the one that it waits for.
struct Side {
    id: &'static [&'static str],
    query: &'static [&'static str],
    seconds: &'static [&'static str],
    user: &'static [&'static str],
    state: &'static [&'static str],
}

const SIDES: [Side; 2] = [
    Side {
        id: &WAITER,
        query: &["waiting_query", "blocked_query", "blocked_statement", "waiting_statement", "blocked_sql"],
        seconds: &[
            "wait_age_secs",
            "waiting_query_secs",
            "wait_age",
            "waiting_duration",
            "blocked_duration",
            "wait_duration",
            "blocked_age",
            "waited",
            "waiting_age",
        ],
        user: &["blocked_user", "waiting_user", "waiting_account", "blocked_account"],
        state: &["blocked_state", "waiting_state", "waiting_lock_type"],
    },
    Side {
        id: &BLOCKER,
        query: &[
            "blocking_query",
            "blocking_statement",
            "current_statement_in_blocking_process",
            "current_or_recent_query_in_blocking_process",
            "blocking_sql",
            "blocker_query",
            "blocker_statement",
        ],
        seconds: &["blocking_trx_age", "blocking_duration", "blocking_age", "blocker_age", "blocker_duration"],
        user: &["blocking_user", "blocking_account", "blocker_user"],
        state: &["blocking_state", "blocker_state"],
    },
];

/// Columns that only MySQL and MariaDB have there.
const OF_MYSQL: [&str; 12] = [
    "waiting_trx_id",
    "blocking_trx_id",
    "waiting_account",
    "blocking_account",
    "waiting_lock_mode",
    "locked_table",
    "waiting_thread",
    "blocking_thread",
    "sql_kill_blocking_query",
    "sql_kill_blocking_connection",
    "wait_started",
    "object_schema",
];

fn read_blocked(table: &Table, context: &mut Context) {
    let at = context.instant_of("sessions that wait for others");
    let is_mysql = table.columns.has_any(&OF_MYSQL);
    let source = if is_mysql { processlist::SOURCE } else { postgresql::SOURCE };
    let at = at_list(source, at, context);
    let mut waiters: BTreeMap<i64, Session> = BTreeMap::new();
    let mut blockers: BTreeMap<i64, Session> = BTreeMap::new();
    let is_metadata = table.columns.has_any(&["waiting_lock_type"]) && table.columns.has_any(&["object_name"]);
    for row in table.rows() {
        let [waiter, blocker] = SIDES.each_ref().map(|side| session(side, &row, is_mysql));
        let (Some(mut waiter), blocker) = (waiter, blocker) else { continue };
        waiter.true_state = "lock_wait".into();
        waiter.blocked_by = blocker.as_ref().map(|blocker| blocker.session_id);
        waiter.command = if is_mysql { "Query".into() } else { "active".into() };
        waiter.state = is_metadata.then(|| "Waiting for table metadata lock".into());
        // A session may wait for several: the first is named.
        waiters.entry(waiter.session_id).or_insert(waiter);
        if let Some(blocker) = blocker {
            blockers.entry(blocker.session_id).or_insert(blocker);
        }
    }
    let count = waiters.len();
    blockers.retain(|id, _| !waiters.contains_key(id));
    for session in waiters.into_values().chain(blockers.into_values()) {
        merge(Session { observed_at: at, source: source.into(), ..session }, context);
    }
    put_waiting(is_mysql, count, at, context);
}

fn put_waiting(is_mysql: bool, count: usize, at: i64, context: &mut Context) {
    let (source, metric, label) = match is_mysql {
        true => (processlist::SOURCE, metrics::mysql::SESSIONS, ("command", "Query")),
        false => (postgresql::SOURCE, metrics::postgresql::SESSIONS, ("state", "active")),
    };
    context.out.gauge(at, source, metric.name, Labels::new([label, ("true_state", "lock_wait")]), count as f64);
}

/// One side of a row. Without a statement the session idles in its transaction.
fn session(side: &Side, row: &Row<'_, '_>, is_mysql: bool) -> Option<Session> {
    let id = row.number(side.id).filter(|id| *id >= 1.0)?;
    let dialect = if is_mysql { Dialect::MySql } else { Dialect::PostgreSql };
    let text = row.text(side.query).map(|query| digest_text(query, dialect));
    let seconds = side.seconds.iter().find_map(|name| {
        let text = row.text(&[name])?;
        interval_s(text).or_else(|| number(text)).filter(|seconds| (0.0..1e9).contains(seconds))
    });
    let state = row.text(side.state).filter(|state| state.starts_with("idle"));
    let (command, true_state) = match (is_mysql, state, &text) {
        (true, _, None) => ("Sleep", "idle"),
        (true, ..) => ("Query", "executing"),
        (false, Some(state), _) if state.starts_with("idle in") => (state, "idle_in_transaction"),
        (false, Some(state), _) => (state, "idle"),
        (false, ..) => ("active", "executing"),
    };
    Some(Session {
        session_id: id as i64,
        user: row.text(side.user).map(|user| user.split('@').next().unwrap_or(user).into()),
        command: command.into(),
        true_state: true_state.into(),
        age_ns: seconds.map(|seconds| (seconds * 1e9) as i64),
        digest: text.as_deref().map(|text| digest_of_text(text).into()),
        digest_text: text.map(Text::from),
        ..Session::default()
    })
}

/// Transactions of InnoDB: those that wait for a row, and those that are open.
fn read_transactions(table: &Table, context: &mut Context) {
    let at = context.instant_of("innodb_trx");
    let at = at_list(processlist::SOURCE, at, context);
    let mut waiting = 0;
    for row in table.rows() {
        let is_waiting = row.text(&["trx_state"]).is_some_and(|state| state.eq_ignore_ascii_case("LOCK WAIT"));
        waiting += usize::from(is_waiting);
        let Some(id) = row.number(&["trx_mysql_thread_id"]).filter(|id| *id >= 1.0) else { continue };
        let query = row.text(&["trx_query"]).map(|query| digest_text(query, Dialect::MySql));
        let (command, true_state) = match (is_waiting, &query) {
            (true, _) => ("Query", "lock_wait"),
            (false, Some(_)) => ("Query", "executing"),
            (false, None) => ("Sleep", "idle"),
        };
        let began = row.text(if is_waiting { &["trx_wait_started"] } else { &["trx_started"] });
        let since = began.and_then(|time| clock::leading(time).0).map(|began| at.saturating_sub(began));
        let told = row.text(&["wait_age", "transaction_age"]).and_then(interval_s).map(|age_s| (age_s * 1e9) as i64);
        merge(
            Session {
                observed_at: at,
                source: processlist::SOURCE.into(),
                session_id: id as i64,
                command: command.into(),
                true_state: true_state.into(),
                age_ns: told.or(since).filter(|age| (0..86_400_000_000_000).contains(age)),
                digest: query.as_deref().map(|text| digest_of_text(text).into()),
                digest_text: query.map(Text::from),
                ..Session::default()
            },
            context,
        );
    }
    put_row_waits(waiting, at, context);
}

fn put_row_waits(waiting: usize, at: i64, context: &mut Context) {
    let metric = metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS;
    context.out.gauge(at, processlist::SOURCE, metric.name, Labels::none(), waiting as f64);
}

/// Pairs of transactions without their sessions.
fn read_rows(table: &Table, context: &mut Context) {
    let at = context.instant_of("waits for row locks");
    let waiting = ["requesting_trx_id", "REQUESTING_ENGINE_TRANSACTION_ID"];
    let ids: std::collections::BTreeSet<&str> = table.rows().filter_map(|row| row.text(&waiting)).collect();
    put_row_waits(ids.len(), at, context);
}

/// Metadata locks, by status and mode.
fn read_metadata(table: &Table, context: &mut Context) {
    let at = context.instant_of("metadata_locks");
    let mut counts: BTreeMap<[String; 2], f64> = BTreeMap::new();
    counts.insert(["PENDING".to_owned(), String::new()], 0.0);
    for row in table.rows() {
        let cell = |name: &str| row.text(&[name]).map(str::to_ascii_uppercase);
        if let Some(status) = cell("LOCK_STATUS") {
            *counts.entry([status, cell("LOCK_TYPE").unwrap_or_default()]).or_default() += 1.0;
        }
    }
    for ([status, mode], count) in counts {
        let labels = Labels::new([("status", status), ("mode", mode)]);
        context.out.gauge(at, processlist::SOURCE, metrics::mysql::METADATA_LOCKS.name, labels, count);
    }
}

/// Locks by kind, mode and whether they are granted: counted, or as the select counted them. Sessions
/// joined to them are sessions, once each.
fn read_pg_locks(table: &Table, context: &mut Context) {
    let at = context.instant_of("pg_locks");
    let mut locks: BTreeMap<[String; 3], f64> = BTreeMap::new();
    let mut sessions: BTreeMap<i64, Session> = BTreeMap::new();
    let counted = table.columns.has(&["count"]);
    let is_joined = table.columns.has_any(&["state", "query", "current_query", "usename", "query_start"]);
    for row in table.rows() {
        let cell = |name: &str| row.text(&[name]).unwrap_or_default().to_owned();
        let granted = match cell("granted").as_str() {
            "t" | "true" | "1" => "1",
            "f" | "false" | "0" => "0",
            _ => continue,
        };
        let count = if counted { row.number(&["count"]).unwrap_or(0.0) } else { 1.0 };
        *locks.entry([cell("locktype"), cell("mode"), granted.to_owned()]).or_default() += count;
        let pid = row.number(&["pid", "procpid"]).filter(|pid| *pid >= 1.0 && (is_joined || granted == "0"));
        if let Some(pid) = pid {
            let mut session = postgresql::session(&row, pid as i64, at_list(postgresql::SOURCE, at, context));
            if granted == "0" {
                session.true_state = "lock_wait".into();
                let kind = Some(cell("locktype")).filter(|kind| !kind.is_empty());
                session.state = session.state.or_else(|| kind.map(|kind| format!("Lock:{kind}").into()));
                sessions.insert(session.session_id, session);
            } else {
                sessions.entry(session.session_id).or_insert(session);
            }
        }
    }
    for ([kind, mode, granted], count) in locks {
        let labels = Labels::new([("kind", kind), ("mode", mode), ("granted", granted)]);
        context.out.gauge(at, postgresql::SOURCE, metrics::postgresql::LOCKS.name, labels, count);
    }
    for session in sessions.into_values() {
        merge(session, context);
    }
}
