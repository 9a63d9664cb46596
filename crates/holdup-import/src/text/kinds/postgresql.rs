//! Selects from `pg_stat_activity` and `pg_settings`, and `SHOW ALL`, in every form of `psql`.
//! Literals of statements are replaced by `?`.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::secret::settings::is_secret_in_postgresql;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::pg_units::interval_s;
use super::sessions::Sessions;
use super::{Context, Kind, Line, Row, Table, clock, number, table};

/// The source of what PostgreSQL says.
pub(super) const SOURCE: &str = "postgresql://pasted";

/// States of sessions.
const STATES: [&str; 6] =
    ["active", "idle", "idle in transaction", "idle in transaction (aborted)", "fastpath function call", "disabled"];

/// Columns with the time since a statement began, as people name them.
const AGES: [&str; 7] = ["age", "duration", "runtime", "running_for", "query_age", "query_duration", "query_time"];

pub(super) const ACTIVITY: Kind =
    Kind::table("pg_stat_activity", |columns| columns.has(&["pid", "state"]), read_activity);

pub(super) const SETTINGS: Kind =
    Kind::table("pg_settings", |columns| columns.has(&["name", "setting"]), read_settings);

pub(super) const COUNTS: Kind = Kind::lines("counts of pg_stat_activity", is_counts, read_counts);

/// Units in which `pg_settings` counts memory, bytes.
const MEMORY_UNITS: [(&str, f64); 5] =
    [("B", 1.0), ("kB", 1024.0), ("8kB", 8192.0), ("16MB", 16_777_216.0), ("MB", 1_048_576.0)];

/// Counts by state: MySQL's sessions have other states.
fn is_counts(lines: &[Line]) -> bool {
    let Some(columns) = table::header(lines, None) else { return false };
    if columns.len() > 6
        || !columns.has(&["count"])
        || columns.has(&["pid"])
        || !columns.has_any(&["state", "wait_event_type"])
    {
        return false;
    }
    if columns.has(&["wait_event_type"]) {
        return true;
    }
    let Some(table) = table::read(lines.get(..40).unwrap_or(lines), None, false) else { return false };
    let mut states = table.rows().filter_map(|row| row.text(&["state"])).peekable();
    states.peek().is_some() && states.all(|state| STATES.contains(&state))
}

fn read_counts(lines: &[Line], context: &mut Context) -> usize {
    let Some(table) = table::read(lines, None, false) else { return 1 };
    let at = context.instant_of("counts of pg_stat_activity");
    let mut sessions = Sessions::default();
    // Without a state it is one of the server's own processes.
    for row in table.rows().filter(|row| row.text(&["state"]).is_some()) {
        sessions.add_counted(row.number(&["count"]), &session(&row, 0, at), context);
    }
    sessions.put((SOURCE, metrics::postgresql::SESSIONS, "state"), "idle", at, context);
    table.used
}

fn read_activity(table: &Table, context: &mut Context) {
    let at = context.instant_of("pg_stat_activity");
    let mut sessions = Sessions::default();
    let mut activity: BTreeMap<[String; 4], f64> = BTreeMap::new();
    for row in table.rows() {
        let Some(pid) = row.number(&["pid"]) else { continue };
        let cell = |name: &str| row.text(&[name]).unwrap_or_default().to_owned();
        let kind = cell("backend_type");
        *activity.entry([cell("state"), cell("wait_event_type"), cell("wait_event"), kind.clone()]).or_default() += 1.0;
        let is_session = matches!(kind.as_str(), "client backend" | "parallel worker" | "autovacuum worker")
            || row.text(&["state"]).is_some();
        let is_own = row.text(&["query"]).is_some_and(|query| query.contains("pg_stat_activity"));
        if is_session && !is_own {
            sessions.add(session(&row, pid as i64, at), context);
        }
    }
    sessions.put((SOURCE, metrics::postgresql::SESSIONS, "state"), "idle", at, context);
    for ([state, wait_type, wait, kind], count) in activity {
        let names = [("state", state), ("wait_event_type", wait_type), ("wait_event", wait), ("backend_type", kind)];
        context.out.gauge(at, SOURCE, metrics::postgresql::ACTIVITY_SESSIONS.name, Labels::new(names), count);
    }
}

fn true_state(row: &Row<'_, '_>) -> &'static str {
    match (row.text(&["state"]).unwrap_or_default(), row.text(&["wait_event_type"])) {
        ("idle" | "disabled", _) => "idle",
        (state, _) if state.starts_with("idle in transaction") => "idle_in_transaction",
        (_, Some("Lock")) => "lock_wait",
        (_, Some("Activity")) => "idle",
        _ => "executing",
    }
}

fn session(row: &Row<'_, '_>, pid: i64, at: i64) -> Session {
    let cell = |name: &str| row.text(&[name]);
    let true_state = true_state(row);
    // For an idle session the server shows its last statement, which has ended.
    let query = cell("query").filter(|_| true_state != "idle");
    let text = query.map(|query| digest_text(query, Dialect::PostgreSql));
    let wait = cell("wait_event_type").zip(cell("wait_event")).map(|(kind, event)| format!("{kind}:{event}"));
    let client = cell("client_addr").zip(cell("client_port")).map(|(address, port)| format!("{address}:{port}"));
    let began = cell("query_start").or(cell("state_change")).and_then(|time| clock::leading(time).0);
    let shown = AGES.iter().find_map(|name| interval_s(cell(name)?)).filter(|age_s| (0.0..1e9).contains(age_s));
    let age_ns = began.map(|began| at.saturating_sub(began)).filter(|age| *age >= 0);
    let blocked = cell("pg_blocking_pids").and_then(|pids| number(pids.trim_matches(['{', '}']).split(',').next()?));
    Session {
        observed_at: at,
        source: SOURCE.into(),
        session_id: pid,
        user: cell("usename").map(Text::from),
        client: client.map(Text::from),
        database: cell("datname").map(Text::from),
        command: cell("state").or(cell("backend_type")).unwrap_or("active").into(),
        state: wait.map(Text::from),
        true_state: true_state.into(),
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
