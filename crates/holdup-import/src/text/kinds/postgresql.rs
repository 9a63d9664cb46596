//! Selects from `pg_stat_activity` and `pg_settings`, and `SHOW ALL`, in every form of `psql`.
//! Literals of statements are replaced by `?`.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::secret::settings::is_secret_in_postgresql;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::pg_units::interval_s;
use super::sessions::Sessions;
use super::{Columns, Context, Kind, Row, Table, clock, number, processlist};

/// The source of what PostgreSQL says.
pub(super) const SOURCE: &str = "postgresql://pasted";

/// States of sessions.
const STATES: [&str; 6] =
    ["active", "idle", "idle in transaction", "idle in transaction (aborted)", "fastpath function call", "disabled"];

/// Columns with the time since a statement began, as people name them.
const AGES: [&str; 13] = [
    "dur",
    "query_age",
    "age",
    "duration",
    "runtime",
    "running_for",
    "query_duration",
    "query_time",
    "elapsed",
    "running_time",
    "run_time",
    "execution_time",
    "running_since",
];

/// Columns as they are called since 9.2 and before.
const PID: [&str; 2] = ["pid", "procpid"];
const QUERY: [&str; 3] = ["query", "current_query", "q"];

/// Columns with the sessions that one waits for.
const BLOCKED_BY: [&str; 3] = ["pg_blocking_pids", "blocked_by", "blocking_pids"];

/// Columns that only lists of PostgreSQL's sessions have.
const OF_SESSIONS: [&str; 12] = [
    "usename",
    "datname",
    "application_name",
    "client_addr",
    "backend_start",
    "xact_start",
    "query_start",
    "state_change",
    "wait_event",
    "wait_event_type",
    "backend_type",
    "waiting",
];

pub(super) const ACTIVITY: Kind = Kind::table("pg_stat_activity", is_activity, read_activity);

fn is_activity(columns: &Columns<'_>) -> bool {
    let of_sessions = OF_SESSIONS.iter().filter(|name| columns.has_any(&[name])).count();
    let says = ["state", "query", "current_query", "wait_event"].iter().filter(|name| columns.has_any(&[name])).count();
    let is_asked = columns.is_from(&["pg_stat_activity"]);
    let is_other = columns.is_from(&["pg_stat_replication", "pg_stat_statements"])
        || columns.has_any(&["calls", "phase", "granted", "sync_state", "relname", "count", "cl_waiting"]);
    let has_pid = columns.has_any(&PID);
    let is_enough = match has_pid {
        true if columns.has_any(&BLOCKED_BY) => true,
        true => says >= 2 || says >= 1 && (of_sessions >= 1 || is_asked) || columns.has(&["state"]),
        false => says >= 1 && (of_sessions >= 2 || is_asked),
    };
    is_enough && !is_other
}

pub(super) const SETTINGS: Kind =
    Kind::table("pg_settings", |columns| columns.has(&["name", "setting"]), read_settings);

pub(super) const COUNTS: Kind = Kind::table("counts of pg_stat_activity", is_counts, read_counts);

/// Units in which `pg_settings` counts memory, bytes.
const MEMORY_UNITS: [(&str, f64); 5] =
    [("B", 1.0), ("kB", 1024.0), ("8kB", 8192.0), ("16MB", 16_777_216.0), ("MB", 1_048_576.0)];

/// Counts by state or by what sessions wait for. Those of MySQL are called so too: the states tell.
fn is_counts(columns: &Columns<'_>) -> bool {
    let by = ["state", "wait_event_type", "wait_event", "usename", "datname", "application_name", "waiting"];
    columns.len() <= 6
        && columns.has(&["count"])
        && !columns.has_any(&["pid", "command", "query", "mode", "relname"])
        && columns.has_any(&by)
        && (columns.has_any(&["wait_event_type", "wait_event"]) || columns.has(&["state"]))
}

fn read_counts(table: &Table, context: &mut Context) {
    let states = || table.rows().filter_map(|row| row.text(&["state"]));
    let is_own = table.columns.has_any(&["wait_event_type", "wait_event", "usename", "datname"])
        || table.columns.is_from(&["pg_stat_activity"])
        || states().next().is_some() && states().all(|state| STATES.contains(&state));
    if !is_own {
        return processlist::read_grouped(table, context);
    }
    let at = context.instant_of("counts of pg_stat_activity");
    let mut sessions = Sessions::default();
    // Without a state it is one of the server's own processes.
    let has_state = table.columns.has(&["state"]);
    for row in table.rows().filter(|row| !has_state || row.text(&["state"]).is_some()) {
        sessions.add_counted(row.number(&["count"]), &session(&row, 0, at), context);
    }
    sessions.put((SOURCE, metrics::postgresql::SESSIONS, "state"), "idle", at, context);
}

fn read_activity(table: &Table, context: &mut Context) {
    let at = context.instant_of("pg_stat_activity");
    let mut sessions = Sessions::default();
    let mut activity: BTreeMap<[String; 4], f64> = BTreeMap::new();
    let has_pid = table.columns.has_any(&PID);
    let mut oldest_s: Option<f64> = None;
    for row in table.rows() {
        let pid = row.number(&PID);
        if has_pid && pid.is_none() {
            continue;
        }
        let cell = |name: &str| row.text(&[name]).unwrap_or_default().to_owned();
        let kind = cell("backend_type");
        let own_state = state(&row).unwrap_or_default().to_owned();
        *activity.entry([own_state, cell("wait_event_type"), cell("wait_event"), kind.clone()]).or_default() += 1.0;
        let is_session = matches!(kind.as_str(), "client backend" | "parallel worker" | "autovacuum worker")
            || state(&row).is_some();
        let is_own = row.text(&QUERY).is_some_and(|query| query.contains("pg_stat_activity"));
        if is_session && !is_own {
            let open_s = transaction_s(&row, at);
            oldest_s = open_s.map(|open_s| oldest_s.unwrap_or(0.0).max(open_s)).or(oldest_s);
            match pid {
                Some(pid) => sessions.add(session(&row, pid as i64, at), context),
                None => sessions.add_counted(Some(1.0), &session(&row, 0, at), context),
            }
        }
    }
    sessions.put((SOURCE, metrics::postgresql::SESSIONS, "state"), "idle", at, context);
    for ([state, wait_type, wait, kind], count) in activity {
        let names = [("state", state), ("wait_event_type", wait_type), ("wait_event", wait), ("backend_type", kind)];
        context.out.gauge(at, SOURCE, metrics::postgresql::ACTIVITY_SESSIONS.name, Labels::new(names), count);
    }
    if let Some(oldest_s) = oldest_s {
        context.out.gauge(at, SOURCE, metrics::postgresql::OLDEST_TRANSACTION.name, Labels::none(), oldest_s);
    }
}

/// The state of a session. Before 9.2 the statement says whether there is one.
pub(super) fn state<'t>(row: &Row<'_, 't>) -> Option<&'t str> {
    if row.has_any(&["state"]) {
        return row.text(&["state"]);
    }
    match row.text(&QUERY) {
        Some(query) if query.starts_with("<IDLE> in transaction") => Some("idle in transaction"),
        Some(query) if query.starts_with("<IDLE>") => Some("idle"),
        // The client is waited for: of its transaction nothing is known.
        _ if row.text(&["wait_event"]) == Some("ClientRead") => Some("idle"),
        Some(_) => Some("active"),
        None => row.has_any(&["wait_event"]).then_some("active").filter(|_| !row.has_any(&["backend_type"])),
    }
}

/// Seconds of a column with an interval, or with a number of them.
pub(super) fn seconds_of(row: &Row<'_, '_>, names: &[&str]) -> Option<f64> {
    let of = |name: &&str| row.text(&[name]).and_then(interval_s).or_else(|| row.number(&[&format!("{name}_s")]));
    names.iter().find_map(of).filter(|seconds| (0.0..1e9).contains(seconds))
}

/// How long a row's transaction has been open, seconds.
fn transaction_s(row: &Row<'_, '_>, at: i64) -> Option<f64> {
    let began = row.text(&["xact_start"]).and_then(|time| clock::leading(time).0);
    let since = began.map(|began| at.saturating_sub(began) as f64 / 1e9).filter(|age_s| *age_s >= 0.0);
    seconds_of(row, &["transaction_age", "xact_age", "xact_duration", "transaction_duration", "tx_age"]).or(since)
}

fn true_state(row: &Row<'_, '_>) -> &'static str {
    let is_blocked = || matches!(row.text(&["waiting"]), Some("t" | "true"));
    match (state(row).unwrap_or_default(), row.text(&["wait_event_type"])) {
        ("idle" | "disabled", _) => "idle",
        (state, _) if state.starts_with("idle in transaction") => "idle_in_transaction",
        (_, Some("Lock")) => "lock_wait",
        (_, Some("Activity")) => "idle",
        _ if is_blocked() => "lock_wait",
        _ => "executing",
    }
}

pub(super) fn session(row: &Row<'_, '_>, pid: i64, at: i64) -> Session {
    let cell = |name: &str| row.text(&[name]);
    let true_state = true_state(row);
    // For an idle session the server shows its last statement, which has ended.
    let query = row.text(&QUERY).filter(|query| true_state != "idle" && !query.starts_with('<'));
    let text = query.map(|query| digest_text(query, Dialect::PostgreSql));
    let event = cell("wait_event")
        .map(|event| cell("wait_event_type").map_or_else(|| event.to_owned(), |kind| format!("{kind}:{event}")));
    let wait = event.or_else(|| cell("wait_event_type").map(str::to_owned));
    let client = cell("client_addr").zip(cell("client_port")).map(|(address, port)| format!("{address}:{port}"));
    let began = cell("query_start").or(cell("state_change")).and_then(|time| clock::leading(time).0);
    let shown = seconds_of(row, &AGES).or_else(|| row.number(&["duration_s", "seconds", "age_s", "secs"]));
    let age_ns = began.map(|began| at.saturating_sub(began)).filter(|age| *age >= 0);
    let blocked = row.text(&BLOCKED_BY);
    let blocked = blocked.and_then(|pids| number(pids.trim_matches(['{', '}']).split(',').next()?));
    Session {
        observed_at: at,
        source: SOURCE.into(),
        session_id: pid,
        user: cell("usename").map(Text::from),
        client: client.map(Text::from),
        database: cell("datname").map(Text::from),
        command: state(row).or(cell("backend_type")).unwrap_or("active").into(),
        state: wait.map(Text::from),
        true_state: if blocked.is_some() { "lock_wait" } else { true_state }.into(),
        age_ns: shown.map(|age_s| (age_s * 1e9) as i64).or(age_ns),
        blocked_by: blocked.map(|pid| pid as i64),
        digest: text.as_deref().map(|text| digest_of_text(text).into()),
        digest_text: text.map(Text::from),
        trace_id: query.and_then(|query| trace_id(query, Dialect::PostgreSql)).map(Text::from),
        ..Session::default()
    }
}

fn read_settings(table: &Table, context: &mut Context) {
    let at = context.instant();
    for row in table.rows() {
        if let Some(name) = row.text(&["name"]).filter(|name| !is_secret_in_postgresql(name)) {
            let setting = row.text(&["setting"]).unwrap_or_default();
            context.out.setting(at, SOURCE, name, notation(setting, row.text(&["unit"])));
        }
    }
}

/// A value in the server's own notation: 16384 units of 8kB are `128MB`.
fn notation(setting: &str, unit: Option<&str>) -> String {
    let Some((unit, value)) = unit.zip(number(setting)).filter(|(_, value)| *value > 0.0) else {
        return setting.to_owned();
    };
    let Some((_, unit_bytes)) = MEMORY_UNITS.iter().find(|(name, _)| *name == unit) else {
        return format!("{setting}{unit}");
    };
    let bytes = value * unit_bytes;
    let units = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
    let whole = units.iter().map(|(name, power)| (name, bytes / 2_f64.powi(*power))).find(|(_, n)| n.fract() == 0.0);
    whole.map_or_else(|| format!("{bytes}B"), |(name, count)| format!("{count}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_the_servers_notation() {
        for (setting, unit, expected) in [
            ("16384", Some("8kB"), "128MB"),
            ("4096", Some("kB"), "4MB"),
            ("1000", Some("kB"), "1000kB"),
            ("300", Some("s"), "300s"),
            ("-1", Some("kB"), "-1"),
            ("on", None, "on"),
        ] {
            assert_eq!(notation(setting, unit), expected);
        }
    }
}
