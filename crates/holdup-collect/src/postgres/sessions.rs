//! The activity of every session (`pg_stat_activity`), with the server's own names for its state
//! and wait event, and with the blocking session if it waits for a lock.

use std::collections::{BTreeMap, HashMap, HashSet};

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::activity;
use super::server::{Failure, MARKER, Row, Server};
use super::statements::Texts;
use crate::reading::Out;

/// Bytes of a statement that are read.
const QUERY_BYTES: usize = 65_536;

/// Number of sessions whose statement is read up to that length, the longest-running active ones
/// first; then the number of characters read for the others. The server keeps up to 1 MiB of each.
const WHOLE_TEXTS: usize = 100;
const SHORT_TEXT: usize = 200;

/// Largest number of idle sessions in a sample; their count is exact.
const IDLE_ROWS_MAX: usize = 100;

/// Largest number of sessions whose blockers are queried: the query locks the whole lock table.
const WAITERS_MAX: usize = 100;

/// Sessions except holdup's own, including those server processes that work on tables; their number
/// by state; and the activity of all server processes. `statements` takes what each runs, with literals.
pub(super) fn sample(
    server: &Server,
    query_size: usize,
    texts: &Texts,
    mut statements: Option<&mut HashMap<i64, String>>,
    out: &mut Out,
) -> Result<(), Failure> {
    let answer = out.read(|| server.rows_again(&query(server.major())))?;
    let (at, source) = (out.at(), out.source());
    activity::count(&answer.rows, out);
    let shown: Vec<&Row> = answer.rows.iter().filter(|row| is_session(row)).collect();
    let blockers = blockers(&shown);
    let holders: HashSet<i64> = blockers.iter().copied().flatten().collect();
    let mut counts: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    let mut idle = 0;
    for (row, blocked_by) in shown.into_iter().zip(blockers) {
        let Some(id) = row.int(0) else { continue };
        let query = row.text(9).map(cut).filter(|text| !text.is_empty());
        if query.is_some_and(|text| text.starts_with(MARKER)) {
            continue;
        }
        let command = row.text(5).filter(|state| !state.is_empty()).or(row.text(11)).unwrap_or_default().to_owned();
        let true_state = true_state(row);
        *counts.entry((command.clone(), true_state)).or_default() += 1.0;
        if true_state == "idle" && !holders.contains(&id) {
            idle += 1;
            if idle > IDLE_ROWS_MAX {
                continue;
            }
        }
        // For an idle session the server shows its last statement, which has ended.
        let query = query.filter(|_| true_state != "idle");
        let is_cut = |text: &&str| text.len() + 1 >= query_size || row.text(16) == Some("t");
        let whole = query.filter(is_cut).and_then(|_| texts.digest_text(row.int(10)?));
        let text = whole.map(str::to_owned).or_else(|| query.map(|text| digest_text(text, Dialect::PostgreSql)));
        if let (Some(statements), Some(query)) = (&mut statements, query) {
            statements.insert(id, query.to_owned());
        }
        let wait = row.text(6).zip(row.text(7)).map(|(kind, event)| format!("{kind}:{event}"));
        out.batch.sessions.push(Session {
            observed_at: at,
            source: source.into(),
            session_id: id,
            user: row.text(1).map(Text::from),
            client: client(row.text(2), row.int(3)).map(Text::from),
            database: row.text(4).map(Text::from),
            command: command.into(),
            state: wait.map(Text::from),
            true_state: true_state.into(),
            queued_ns: None,
            age_ns: row.int(8),
            blocked_by,
            digest: text.as_deref().map(|text| digest_of_text(text).into()),
            digest_text: text.map(Text::from),
            trace_id: query.and_then(|text| trace_id(text, Dialect::PostgreSql)).map(Text::from),
        });
    }
    // This row distinguishes a server without visible sessions from a failed read.
    counts.entry(("idle".to_owned(), "idle")).or_default();
    for ((state, true_state), count) in counts {
        let labels = Labels::new([("state", state.as_str()), ("true_state", true_state)]);
        out.put(metrics::postgresql::SESSIONS, labels, count);
    }
    Ok(())
}

/// The statement for all server processes. Lock waiters are queried by age, so that with many of them
/// the oldest have their blocker.
fn query(major: i64) -> String {
    let query_id = if major >= 14 { "query_id" } else { "NULL" };
    format!(
        "SELECT pid, usename, host(client_addr), client_port, datname, coalesce(state, ''), wait_event_type, wait_event, \
         (extract(epoch FROM clock_timestamp() - coalesce(state_change, backend_start)) * 1e9)::bigint, holdup_t, {query_id}, \
         backend_type, CASE WHEN wait_event_type = 'Lock' AND coalesce(state, 'active') = 'active' \
         AND row_number() OVER (PARTITION BY wait_event_type ORDER BY state_change) <= {WAITERS_MAX} \
         THEN array_to_string(pg_blocking_pids(pid), ',') END, greatest(age(backend_xmin), age(backend_xid)), \
         extract(epoch FROM clock_timestamp() - xact_start), application_name, octet_length(holdup_t) < octet_length(query) \
         FROM (SELECT *, left(query, CASE WHEN row_number() OVER (ORDER BY state = 'active' DESC NULLS LAST, state_change) <= {WHOLE_TEXTS} \
         THEN {QUERY_BYTES} ELSE {SHORT_TEXT} END) AS holdup_t FROM pg_stat_activity) AS holdup_a WHERE pid <> pg_backend_pid()"
    )
}

/// Whether it is a client's session or a process that works on tables; the others are only counted.
fn is_session(row: &Row) -> bool {
    let kind = row.text(11).unwrap_or_default();
    matches!(kind, "client backend" | "parallel worker" | "autovacuum worker") || row.text(5) != Some("")
}

/// For each session the one that blocks it, if one does.
fn blockers(sessions: &[&Row]) -> Vec<Option<i64>> {
    let waiting = sessions.iter().filter(|row| true_state(row) == "lock_wait");
    let waiting: HashSet<i64> = waiting.filter_map(|row| row.int(0)).collect();
    let direct: HashMap<i64, i64> =
        sessions.iter().filter_map(|row| Some((row.int(0)?, blocked_by(row, &waiting)?))).collect();
    sessions.iter().map(|row| root(row.int(0)?, &direct)).collect()
}

/// The session that blocks the whole queue: each waiter in a queue waits for the one before it.
fn root(pid: i64, direct: &HashMap<i64, i64>) -> Option<i64> {
    let mut last = *direct.get(&pid)?;
    // More steps than sessions means a cycle, which the server will break.
    for _ in 0..direct.len() {
        match direct.get(&last) {
            Some(next) if *next != pid => last = *next,
            _ => break,
        }
    }
    Some(last)
}

/// The first blocker that does not wait itself: the others are only ahead in the queue.
fn blocked_by(row: &Row, waiting: &HashSet<i64>) -> Option<i64> {
    let pids = || row.text(12).unwrap_or_default().split(',').filter_map(|pid| pid.parse().ok());
    // 0 is a prepared transaction, which has no session.
    pids().find(|pid: &i64| *pid > 0 && !waiting.contains(pid)).or_else(|| pids().find(|pid| *pid > 0))
}

fn client(address: Option<&str>, port: Option<i64>) -> Option<String> {
    let (address, port) = (address?.parse().ok()?, u16::try_from(port?).ok()?);
    Some(std::net::SocketAddr::new(address, port).to_string())
}

/// The beginning of a statement.
fn cut(text: &str) -> &str {
    let end = (0..=QUERY_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// What a session really does.
fn true_state(row: &Row) -> &'static str {
    match (row.text(5).unwrap_or_default(), row.text(6)) {
        ("idle" | "disabled", _) => "idle",
        (state, _) if state.starts_with("idle in transaction") => "idle_in_transaction",
        // Includes workers without a state.
        (_, Some("Lock")) => "lock_wait",
        // Its main loop, in which it waits for work.
        (_, Some("Activity")) => "idle",
        _ => "executing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: &str, wait: Option<&str>, blockers: Option<&str>) -> Row {
        let mut values = vec![None; 16];
        values[5] = Some(state.to_owned());
        values[6] = wait.map(str::to_owned);
        values[12] = blockers.map(str::to_owned);
        Row(values)
    }

    #[test]
    fn states() {
        for (state, wait, expected) in [
            ("active", None, "executing"),
            ("active", Some("IO"), "executing"),
            ("active", Some("Lock"), "lock_wait"),
            ("idle", Some("Client"), "idle"),
            ("idle in transaction", Some("Client"), "idle_in_transaction"),
            ("idle in transaction (aborted)", None, "idle_in_transaction"),
            ("", Some("Activity"), "idle"),
            // What sends the log to a replica is active whenever it is connected.
            ("active", Some("Activity"), "idle"),
        ] {
            assert_eq!(true_state(&row(state, wait, None)), expected, "{state} {wait:?}");
        }
    }

    #[test]
    fn the_holder_is_who_does_not_wait() {
        let waiting = HashSet::from([7, 8]);
        let of = |pids| blocked_by(&row("active", Some("Lock"), pids), &waiting);
        assert_eq!(of(Some("7,8,9")), Some(9));
        assert_eq!(of(Some("0,7")), Some(7));
        assert_eq!(of(Some("0")), None);
        assert_eq!(of(None), None);
    }

    #[test]
    fn a_queue_has_one_holder() {
        let direct = HashMap::from([(11, 10), (12, 11), (13, 12), (20, 21), (21, 20)]);
        assert_eq!([11, 12, 13].map(|pid| root(pid, &direct)), [Some(10); 3]);
        assert_eq!(root(10, &direct), None);
        assert_eq!((root(20, &direct), root(21, &direct)), (Some(21), Some(20)), "a deadlock, for a moment");
    }

    #[test]
    fn clients_are_address_and_port() {
        assert_eq!(client(Some("127.0.0.1"), Some(50412)).as_deref(), Some("127.0.0.1:50412"));
        assert_eq!(client(Some("::1"), Some(5)).as_deref(), Some("[::1]:5"));
        assert_eq!(client(None, Some(-1)), None);
    }
}
