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

pub(super) const KIND: Kind = Kind::table(
    "SHOW PROCESSLIST",
    |columns| columns.has(&["Id", "User", "Command", "Time", "State"]),
    |table, context| {
        let at = context.instant_of("SHOW PROCESSLIST");
        let mut sessions = Sessions::default();
        table.rows().filter_map(|row| session(&row, at)).for_each(|session| sessions.add(session, context));
        sessions.put((SOURCE, metrics::mysql::SESSIONS, "command"), "Sleep", at, context);
    },
);

pub(super) const GROUPED: Kind = Kind::table("counts of sessions", is_grouped, read_grouped);

fn is_count(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("count(") || matches!(name.as_str(), "count" | "cnt" | "n" | "num" | "sessions" | "c" | "total")
}

fn is_grouped(columns: &Columns<'_>) -> bool {
    columns.len() <= 6
        && columns.names.iter().any(|name| is_count(name))
        && columns.has_any(&["command", "state"])
        && !columns.has_any(&["wait_event"])
}

/// What a session really does, as far as the list shows.
fn true_state(command: &str, state: Option<&str>) -> &'static str {
    let is_lock = |state: &str| {
        state.starts_with("Waiting for") && state.ends_with("lock") || matches!(state, "User lock" | "Locked")
    };
    match command {
        "Queued" => "queued",
        "Sleep" | "Binlog Dump" | "Binlog Dump GTID" => "idle",
        _ if state.is_some_and(is_lock) => "lock_wait",
        _ => "executing",
    }
}

fn session(row: &Row<'_, '_>, at: i64) -> Option<Session> {
    let id = row.number(&["Id"])?;
    let (user, command) = (row.text(&["User"]), row.text(&["Command"])?);
    let info = row.text(&["Info"]);
    let is_own = info.is_some_and(|info| info.to_ascii_lowercase().contains("processlist"));
    if is_own || command == "Daemon" || user.is_some_and(|user| SYSTEM_USERS.contains(&user)) {
        return None;
    }
    let state = row.text(&["State"]);
    let text = info.map(|info| digest_text(info, Dialect::MySql));
    let in_ms = row.number(&["Time_ms"]).filter(|ms| *ms > 0.0).map(|ms| ms / 1e3);
    let seconds = in_ms.or_else(|| row.number(&["Time"]));
    Some(Session {
        observed_at: at,
        source: SOURCE.into(),
        session_id: id as i64,
        user: user.map(Text::from),
        client: row.text(&["Host"]).filter(|host| host.contains(':')).map(Text::from),
        database: row.text(&["db", "database"]).map(Text::from),
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

fn read_grouped(table: &Table, context: &mut Context) {
    let at = context.instant_of("counts of sessions");
    let mut sessions = Sessions::default();
    for row in table.rows() {
        let count = row.cells().find(|(name, _)| is_count(name)).and_then(|(_, count)| number(count?));
        let state = row.text(&["state"]);
        let command = row.text(&["command"]).unwrap_or(if state.is_some() { "Query" } else { "Sleep" });
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
