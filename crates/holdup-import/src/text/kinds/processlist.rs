//! `SHOW [FULL] PROCESSLIST` and the tables of that name, in every form that clients print, and
//! counts of it grouped by command or state. Literals of statements are replaced by `?`.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::super::context::Context;
use super::super::number::number;
use super::super::paste::Line;
use super::super::result_set::{self, ResultSet};
use super::Kind;

/// The source of what MySQL and MariaDB say.
pub(super) const SOURCE: &str = "mysql://pasted";

/// Accounts of the server's own threads.
const SYSTEM_USERS: [&str; 2] = ["system user", "event_scheduler"];

/// Sessions that one table of counts may stand for.
const COUNTED_MAX: f64 = 100_000.0;

pub(super) const KIND: Kind = Kind { name: "SHOW PROCESSLIST", recognises, read };

pub(super) const GROUPED: Kind = Kind { name: "counts of sessions", recognises: is_grouped, read: read_grouped };

fn has(columns: &[String], name: &str) -> bool {
    columns.iter().any(|column| column.eq_ignore_ascii_case(name))
}

fn recognises(lines: &[Line]) -> bool {
    result_set::header(lines)
        .is_some_and(|columns| ["Id", "User", "Command", "Time", "State"].iter().all(|name| has(&columns, name)))
}

fn is_count(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("count(") || matches!(name.as_str(), "count" | "cnt" | "n" | "num" | "sessions" | "c" | "total")
}

fn is_grouped(lines: &[Line]) -> bool {
    result_set::header(lines).is_some_and(|columns| {
        columns.len() <= 6
            && columns.iter().any(|name| is_count(name))
            && (has(&columns, "command") || has(&columns, "state"))
            && !has(&columns, "wait_event")
    })
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

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("SHOW PROCESSLIST");
    let mut counts: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    for row in &set.rows {
        if let Some(session) = session(&set, row, at) {
            *counts.entry((session.command.as_str().to_owned(), static_state(&session))).or_default() += 1.0;
            context.out.batch.sessions.push(session);
        }
    }
    put_counts(counts, at, context);
    set.used
}

fn static_state(session: &Session) -> &'static str {
    true_state(session.command.as_str(), session.state.as_ref().map(Text::as_str))
}

fn session(set: &ResultSet, row: &[Option<String>], at: i64) -> Option<Session> {
    let id = number(set.cell(row, &["Id"])?)?;
    let (user, command) = (set.cell(row, &["User"]), set.cell(row, &["Command"])?);
    let info = set.cell(row, &["Info"]);
    let is_own = info.is_some_and(|info| info.to_ascii_lowercase().contains("processlist"));
    if is_own || command == "Daemon" || user.is_some_and(|user| SYSTEM_USERS.contains(&user)) {
        return None;
    }
    let state = set.cell(row, &["State"]);
    let text = info.map(|info| digest_text(info, Dialect::MySql));
    let seconds = match set.cell(row, &["Time_ms"]).and_then(number) {
        Some(ms) if ms > 0.0 => Some(ms / 1e3),
        _ => set.cell(row, &["Time"]).and_then(number),
    };
    Some(Session {
        observed_at: at,
        source: SOURCE.into(),
        session_id: id as i64,
        user: user.map(Text::from),
        client: set.cell(row, &["Host"]).filter(|host| host.contains(':')).map(Text::from),
        database: set.cell(row, &["db", "database"]).map(Text::from),
        command: command.into(),
        state: state.map(Text::from),
        true_state: true_state(command, state).into(),
        queued_ns: None,
        age_ns: seconds.map(|seconds| (seconds * 1e9) as i64),
        blocked_by: None,
        digest: text.as_deref().map(|text| digest_of_text(text).into()),
        digest_text: text.map(Text::from),
        trace_id: info.and_then(|info| trace_id(info, Dialect::MySql)).map(Text::from),
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

fn put_counts(mut counts: BTreeMap<(String, &'static str), f64>, at: i64, context: &mut Context) {
    // A list without sessions is known to have none.
    counts.entry(("Sleep".to_owned(), "idle")).or_default();
    for ((command, true_state), count) in counts {
        let labels = Labels::new([("command", command.as_str()), ("true_state", true_state)]);
        context.out.gauge(at, SOURCE, metrics::mysql::SESSIONS.name, labels, count);
    }
}

/// Reads counts; each count becomes as many sessions without a number of their own.
fn read_grouped(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("counts of sessions");
    let place = set.columns.iter().position(|name| is_count(name));
    let mut counts: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    let mut id = 0_i64;
    for row in &set.rows {
        let count = place
            .and_then(|place| number(row.get(place)?.as_deref()?))
            .filter(|n| *n >= 0.0 && *n - id as f64 <= COUNTED_MAX);
        let Some(count) = count else { continue };
        let state = set.cell(row, &["state"]);
        let command = set.cell(row, &["command"]).unwrap_or(if state.is_some() { "Query" } else { "Sleep" });
        let true_state = true_state(command, state);
        *counts.entry((command.to_owned(), true_state)).or_default() += count;
        for _ in 0..count as usize {
            id -= 1;
            context.out.batch.sessions.push(Session {
                observed_at: at,
                source: SOURCE.into(),
                session_id: id,
                command: command.into(),
                state: state.map(Text::from),
                true_state: true_state.into(),
                ..Session::default()
            });
        }
    }
    put_counts(counts, at, context);
    set.used
}
