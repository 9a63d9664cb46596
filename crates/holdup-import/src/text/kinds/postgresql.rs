//! Selects from `pg_stat_activity` and `pg_settings`, and `SHOW ALL`, in every form of `psql`.
//! Literals of statements are replaced by `?`.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::secret::settings::is_secret_in_postgresql;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::super::clock;
use super::super::context::Context;
use super::super::number::number;
use super::super::paste::Line;
use super::super::result_set::{self, ResultSet};
use super::Kind;
use super::pg_units::interval_s;

/// The source of what PostgreSQL says.
pub(super) const SOURCE: &str = "postgresql://pasted";

/// States of sessions.
const STATES: [&str; 6] =
    ["active", "idle", "idle in transaction", "idle in transaction (aborted)", "fastpath function call", "disabled"];

/// Columns with the time since a statement began, as people name them.
const AGES: [&str; 7] = ["age", "duration", "runtime", "running_for", "query_age", "query_duration", "query_time"];

/// Sessions that one table of counts may stand for.
const COUNTED_MAX: f64 = 100_000.0;

pub(super) const ACTIVITY: Kind =
    Kind { name: "pg_stat_activity", recognises: |lines| has(lines, &["pid", "state"]), read: read_activity };

pub(super) const SETTINGS: Kind =
    Kind { name: "pg_settings", recognises: |lines| has(lines, &["name", "setting"]), read: read_settings };

pub(super) const COUNTS: Kind = Kind { name: "counts of pg_stat_activity", recognises: is_counts, read: read_counts };

/// Units in which `pg_settings` counts memory, bytes.
const MEMORY_UNITS: [(&str, f64); 5] =
    [("B", 1.0), ("kB", 1024.0), ("8kB", 8192.0), ("16MB", 16_777_216.0), ("MB", 1_048_576.0)];

fn has(lines: &[Line], names: &[&str]) -> bool {
    result_set::header(lines)
        .is_some_and(|columns| names.iter().all(|name| columns.iter().any(|column| column == name)))
}

/// Counts by state: MySQL's sessions have other states.
fn is_counts(lines: &[Line]) -> bool {
    let Some(columns) = result_set::header(lines) else { return false };
    let has = |name: &str| columns.iter().any(|column| column == name);
    if columns.len() > 6 || !has("count") || has("pid") || !(has("state") || has("wait_event_type")) {
        return false;
    }
    if has("wait_event_type") {
        return true;
    }
    let Some(set) = result_set::read(lines.get(..40).unwrap_or(lines)) else { return false };
    let mut states = set.rows.iter().filter_map(|row| set.cell(row, &["state"])).peekable();
    states.peek().is_some() && states.all(|state| STATES.contains(&state))
}

/// Reads counts; each becomes as many sessions without a number of their own.
fn read_counts(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("counts of pg_stat_activity");
    let mut sessions: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    let mut id = 0_i64;
    for row in &set.rows {
        let count = set.cell(row, &["count"]).and_then(number);
        let Some(count) = count.filter(|count| *count >= 0.0 && *count - id as f64 <= COUNTED_MAX) else { continue };
        // Without a state it is one of the server's own processes.
        let Some(state) = set.cell(row, &["state"]) else { continue };
        let true_state = true_state(&set, row);
        *sessions.entry((state.to_owned(), true_state)).or_default() += count;
        for _ in 0..count as usize {
            id -= 1;
            context.out.batch.sessions.push(session(&set, row, id, at));
        }
    }
    put_sessions(sessions, at, context);
    set.used
}

fn put_sessions(mut sessions: BTreeMap<(String, &'static str), f64>, at: i64, context: &mut Context) {
    // A list without sessions is known to have none.
    sessions.entry(("idle".to_owned(), "idle")).or_default();
    for ((state, true_state), count) in sessions {
        let labels = Labels::new([("state", state.as_str()), ("true_state", true_state)]);
        context.out.gauge(at, SOURCE, metrics::postgresql::SESSIONS.name, labels, count);
    }
}

fn read_activity(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant_of("pg_stat_activity");
    let mut sessions: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    let mut activity: BTreeMap<[String; 4], f64> = BTreeMap::new();
    for row in &set.rows {
        let Some(pid) = set.cell(row, &["pid"]).and_then(number) else { continue };
        let cell = |name: &str| set.cell(row, &[name]).unwrap_or_default().to_owned();
        let kind = cell("backend_type");
        *activity.entry([cell("state"), cell("wait_event_type"), cell("wait_event"), kind.clone()]).or_default() += 1.0;
        let is_session = matches!(kind.as_str(), "client backend" | "parallel worker" | "autovacuum worker")
            || set.cell(row, &["state"]).is_some();
        let is_own = set.cell(row, &["query"]).is_some_and(|query| query.contains("pg_stat_activity"));
        if is_session && !is_own {
            let session = session(&set, row, pid as i64, at);
            let state = true_state(&set, row);
            *sessions.entry((session.command.as_str().to_owned(), state)).or_default() += 1.0;
            context.out.batch.sessions.push(session);
        }
    }
    put_sessions(sessions, at, context);
    for ([state, wait_type, wait, kind], count) in activity {
        let names = [("state", state), ("wait_event_type", wait_type), ("wait_event", wait), ("backend_type", kind)];
        context.out.gauge(at, SOURCE, metrics::postgresql::ACTIVITY_SESSIONS.name, Labels::new(names), count);
    }
    set.used
}

fn true_state(set: &ResultSet, row: &[Option<String>]) -> &'static str {
    match (set.cell(row, &["state"]).unwrap_or_default(), set.cell(row, &["wait_event_type"])) {
        ("idle" | "disabled", _) => "idle",
        (state, _) if state.starts_with("idle in transaction") => "idle_in_transaction",
        (_, Some("Lock")) => "lock_wait",
        (_, Some("Activity")) => "idle",
        _ => "executing",
    }
}

fn session(set: &ResultSet, row: &[Option<String>], pid: i64, at: i64) -> Session {
    let cell = |name: &str| set.cell(row, &[name]);
    let true_state = true_state(set, row);
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

fn read_settings(lines: &[Line], context: &mut Context) -> usize {
    let Some(set) = result_set::read(lines) else { return 1 };
    let at = context.instant();
    for row in &set.rows {
        let Some(name) = set.cell(row, &["name"]) else { continue };
        if !is_secret_in_postgresql(name) {
            let setting = set.cell(row, &["setting"]).unwrap_or_default();
            context.out.setting(at, SOURCE, name, notation(setting, set.cell(row, &["unit"])));
        }
    }
    set.used
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
