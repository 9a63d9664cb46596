//! `SHOW [FULL] PROCESSLIST` and the tables of that name, in every form that clients print, and
//! counts of it grouped by command or state. Literals of statements are replaced by `?`.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::sessions::Sessions;
use super::{Columns, Context, Kind, Row, Table, number};

/// The source of what MySQL and MariaDB say.
pub(super) const SOURCE: &str = "mysql://pasted";

/// Accounts of the server's own threads.
const SYSTEM_USERS: [&str; 2] = ["system user", "event_scheduler"];

/// Columns of the list, each as it is called in `SHOW PROCESSLIST`, `performance_schema.threads` and
/// `sys.session`.
const ID: [&str; 4] = ["Id", "PROCESSLIST_ID", "conn_id", "connection_id"];
const USER: [&str; 2] = ["User", "PROCESSLIST_USER"];
const HOST: [&str; 2] = ["Host", "PROCESSLIST_HOST"];
const DATABASE: [&str; 3] = ["db", "database", "PROCESSLIST_DB"];
const COMMAND: [&str; 2] = ["Command", "PROCESSLIST_COMMAND"];
const TIME: [&str; 2] = ["Time", "PROCESSLIST_TIME"];
const STATE: [&str; 2] = ["State", "PROCESSLIST_STATE"];
const INFO: [&str; 3] = ["Info", "PROCESSLIST_INFO", "current_statement"];

/// Columns that other tables have beside some of these names.
const OF_OTHERS: [&str; 12] = [
    "pid",
    "procpid",
    "usename",
    "datname",
    "query",
    "current_query",
    "wait_event",
    "cl_active",
    "granted",
    "GROUP_ID",
    "hostgroup",
    "status",
];

pub(super) const KIND: Kind = Kind::table(
    "SHOW PROCESSLIST",
    |columns| {
        let has = |all: &[&[&str]]| all.iter().filter(|names| columns.has_any(names)).count();
        let says = has(&[&COMMAND, &TIME, &STATE, &INFO]);
        let all = says + has(&[&ID, &USER, &HOST, &DATABASE]);
        let is_asked = columns.is_from(&["processlist", "session", "threads"]) && all == columns.len().min(all);
        let is_enough = if is_asked { says >= 1 && all >= 2 } else { says >= 2 && all >= 3 };
        is_enough
            && columns.has_any(&[COMMAND, [STATE[0], INFO[0]]].concat())
            && !columns.has_any(&OF_OTHERS)
            && !columns.names.iter().any(|name| is_count(name))
    },
    |table, context| {
        let at = context.instant_of("SHOW PROCESSLIST");
        let mut sessions = Sessions::default();
        let without_id = !table.columns.has_any(&ID);
        table.rows().filter_map(|row| session(&row, at)).for_each(|session| match without_id {
            true => sessions.add_counted(Some(1.0), &session, context),
            false => sessions.add(session, context),
        });
        sessions.put((SOURCE, metrics::mysql::SESSIONS, "command"), "Sleep", at, context);
    },
);

pub(super) const GROUPED: Kind = Kind::table("counts of sessions", is_grouped, read_grouped);

fn is_count(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("count(")
        || name.starts_with("sum(1")
        || matches!(name.as_str(), "count" | "cnt" | "n" | "num" | "sessions" | "c" | "total")
}

fn is_grouped(columns: &Columns<'_>) -> bool {
    columns.len() <= 6
        && (columns.names.iter().any(|name| is_count(name)) || columns.has(&["count"]))
        && columns.has_any(&[COMMAND[0], STATE[0], COMMAND[1], STATE[1]])
        && !columns.has_any(&["wait_event", "wait_event_type", "datname", "usename"])
}

/// What a session really does, as far as the list shows.
fn true_state(command: &str, state: Option<&str>) -> &'static str {
    match command {
        "Queued" => "queued",
        "Sleep" | "Binlog Dump" | "Binlog Dump GTID" => "idle",
        _ if state.is_some_and(is_lock) => "lock_wait",
        _ => "executing",
    }
}

/// Whether a state is a wait for a lock. A flush of tables waits for the statements that use them, and
/// others wait for the flush.
fn is_lock(state: &str) -> bool {
    const OTHERS: [&str; 5] =
        ["User lock", "Locked", "Waiting for table flush", "Waiting for table", "Waiting for tables"];
    state.starts_with("Waiting for") && state.ends_with("lock") || OTHERS.contains(&state)
}

fn session(row: &Row<'_, '_>, at: i64) -> Option<Session> {
    let id = if row.has_any(&ID) { row.number(&ID)? } else { 0.0 };
    let (user, info, state) = (row.text(&USER), row.text(&INFO), row.text(&STATE));
    let works = if state.is_some() || info.is_some() { "Query" } else { "Sleep" };
    let command = if row.has_any(&COMMAND) { row.text(&COMMAND)? } else { works };
    let is_own = info.is_some_and(|info| {
        let info = info.to_ascii_lowercase();
        info.contains("processlist") || info.contains("performance_schema.threads")
    });
    if is_own || command == "Daemon" || user.is_some_and(|user| SYSTEM_USERS.contains(&user)) {
        return None;
    }
    let text = info.map(|info| digest_text(info, Dialect::MySql));
    let in_ms = row.number(&["Time_ms"]).filter(|ms| *ms > 0.0).map(|ms| ms / 1e3);
    let seconds = in_ms.or_else(|| row.number(&TIME)).filter(|seconds| (0.0..4e9).contains(seconds));
    Some(Session {
        observed_at: at,
        source: SOURCE.into(),
        session_id: id as i64,
        user: user.map(Text::from),
        client: row.text(&HOST).filter(|host| host.contains(':')).map(Text::from),
        database: row.text(&DATABASE).map(Text::from),
        command: command.into(),
        state: state.map(Text::from),
        true_state: true_state(command, state).into(),
        age_ns: seconds.map(|seconds| (seconds * 1e9) as i64),
        digest: text.as_deref().map(|text| digest_of_text(text).into()),
        digest_text: text.map(Text::from),
        trace_id: info.and_then(|info| trace_id(info, Dialect::MySql)).map(Text::from),
        ..Session::default()
    })
}

/// What the list hides and another output of the server shows: sessions that wait.
pub(super) struct Waiting {
    /// Connection ids, each with the nanoseconds it has waited if that is known.
    pub ids: BTreeMap<i64, Option<i64>>,
    /// How the list shows them.
    pub command: &'static str,
    /// What they really do.
    pub true_state: &'static str,
}

/// Corrects the sessions of the list before, and counts those that wait.
pub(super) fn correct(waiting: &Waiting, at: i64, context: &mut Context) {
    let Waiting { ids, command, true_state } = waiting;
    let sessions = &mut context.out.batch.sessions;
    let Some(last) = sessions.iter().filter(|s| s.source == SOURCE).map(|s| s.observed_at).max() else { return };
    let of_list = sessions.iter_mut().filter(|s| s.source == SOURCE && s.observed_at == last);
    for session in of_list.filter(|s| s.command == *command) {
        if let Some(waited_ns) = ids.get(&session.session_id) {
            session.true_state = (*true_state).into();
            session.queued_ns = waited_ns.filter(|_| *true_state == "queued");
        }
    }
    let labels = Labels::new([("command", *command), ("true_state", *true_state)]);
    context.out.gauge(at, SOURCE, metrics::mysql::SESSIONS.name, labels, ids.len() as f64);
}

pub(super) fn read_grouped(table: &Table, context: &mut Context) {
    let at = context.instant_of("counts of sessions");
    let mut sessions = Sessions::default();
    for row in table.rows() {
        let count = row.cells().find(|(name, _)| is_count(name)).and_then(|(_, count)| number(count?));
        let count = count.or_else(|| row.number(&["count"]));
        let state = row.text(&STATE);
        let command = row.text(&COMMAND).unwrap_or(if state.is_some() { "Query" } else { "Sleep" });
        let session = Session {
            observed_at: at,
            source: SOURCE.into(),
            command: command.into(),
            state: state.map(Text::from),
            true_state: true_state(command, state).into(),
            ..Session::default()
        };
        sessions.add_counted(count, &session, context);
    }
    sessions.put((SOURCE, metrics::mysql::SESSIONS, "command"), "Sleep", at, context);
}
