//! Events from the log other than executions: vacuum, analyze, checkpoints, lock waits, temporary
//! files, deadlocks, errors. Message texts may contain values, so none is kept. An error is
//! identified by a known message prefix or by its SQLSTATE.

use std::collections::BTreeMap;

use holdup_recording::{Batch, Labels, events};
use holdup_sql::{Dialect, digest_of_text, digest_text};

use super::Entry;
use super::maintenance::{after, checkpoint, checkpoint_cause, vacuum};
use crate::postgres::server::MARKER;
use crate::reading::event;

/// Largest number of events per sample; errors of one kind count as one.
const EVENTS: usize = 500;

/// Known message prefixes and our names for them; the first match counts.
#[rustfmt::skip]
const ERRORS: &[(&str, &str)] = &[
    ("canceling statement due to statement timeout", "statement timeout"),
    ("canceling statement due to lock timeout", events::LOCK_TIMEOUT),
    ("canceling statement due to conflict with recovery", "conflict with recovery"),
    ("canceling statement due to user request", "cancelled"),
    ("canceling autovacuum task", "autovacuum cancelled"),
    ("terminating connection due to idle-in-transaction timeout", "idle-in-transaction timeout"),
    ("terminating connection due to administrator command", "terminated"),
    ("terminating connection due to conflict with recovery", "conflict with recovery"),
    ("could not serialize access", "serialization failure"),
    ("duplicate key value violates unique constraint", "unique violation"),
    ("null value in column", "not null violation"),
    ("new row for relation", "check violation"),
    ("insert or update on table", "foreign key violation"),
    ("update or delete on table", "foreign key violation"),
    ("current transaction is aborted", "transaction is aborted"),
    ("sorry, too many clients already", events::TOO_MANY_CONNECTIONS),
    ("too many connections for", events::TOO_MANY_CONNECTIONS),
    ("remaining connection slots are reserved", events::TOO_MANY_CONNECTIONS),
    ("out of shared memory", "out of shared memory"),
    ("out of memory", events::OUT_OF_MEMORY),
    ("could not extend file", "could not extend file"),
    ("could not write", "could not write"),
    ("could not fsync", "could not fsync"),
    ("temporary file size exceeds temp_file_limit", "temp_file_limit"),
    ("permission denied", "permission denied"),
    ("password authentication failed", "authentication failed"),
    ("no pg_hba.conf entry", "authentication failed"),
    ("syntax error", "syntax error"),
    ("relation ", "undefined table"),
    ("column ", "undefined column"),
    ("function ", "undefined function"),
    ("invalid input syntax", "invalid input"),
    ("the database system is", "starting or shutting down"),
    ("server process (PID", "crash"),
];

/// How messages begin by which a server that starts says how it had ended, or that it takes over; our
/// word for the reason, and a sentence.
const RESTARTS: &[(&str, &str, &str)] = &[
    (
        "database system was not properly shut down",
        events::CRASH,
        "the server began anew and recovered: it had not shut down",
    ),
    ("database system was shut down", events::REQUESTED, "the server began anew after an orderly shutdown"),
    ("received promote request", events::FAILOVER, "the server was promoted"),
];

/// State between entries.
#[derive(Default)]
pub(super) struct Events {
    /// The reason of the running checkpoint.
    cause: Option<String>,
}

impl Events {
    /// Adds the events of entries to `batch`.
    pub(super) fn take(&mut self, entries: &[Entry], source: &str, now: i64, batch: &mut Batch) {
        // Errors by severity and kind: the time of the first, and their number.
        let mut errors: BTreeMap<(String, String, Labels), (i64, u64)> = BTreeMap::new();
        let mut count = 0;
        for entry in entries {
            let at = entry.at.unwrap_or(now);
            if let Some((name, labels)) = error(entry) {
                let (_, count) = errors.entry((entry.severity.clone(), name, labels)).or_insert((at, 0));
                *count += 1;
                if entry.message != "deadlock detected" {
                    continue;
                }
            }
            if count >= EVENTS {
                continue;
            }
            let Some((kind, text, labels)) = self.event(entry) else { continue };
            count += 1;
            batch.events.push(event(source, at, kind, text, labels));
        }
        for ((severity, name, labels), (at, count)) in errors.into_iter().take(EVENTS) {
            let labels = labels.with("severity", severity.as_str()).with("count", count.to_string());
            let text = format!("{severity}: {name}, {count} times");
            batch.events.push(event(source, at, "error", text, labels));
        }
    }

    /// Kind, text and labels of an event.
    fn event(&mut self, entry: &Entry) -> Option<(&'static str, String, Labels)> {
        let message = entry.message.as_str();
        if message == "deadlock detected" {
            return Some(deadlock(entry));
        }
        if entry.severity != "LOG" {
            return None;
        }
        if let Some(cause) = checkpoint_cause(message) {
            // The server's own flags.
            self.cause = Some(
                cause.chars().filter(|char| char.is_ascii_alphabetic() || matches!(char, ' ' | '-')).take(80).collect(),
            );
            return None;
        }
        if let Some(mut labels) = checkpoint(message) {
            let cause = self.cause.take();
            let text = format!(
                "checkpoint ({}): {} buffers in {} ms",
                cause.as_deref().unwrap_or("cause unknown"),
                labels.get("buffers_written").unwrap_or("?"),
                labels.get("total_ms").unwrap_or("?")
            );
            if let Some(cause) = cause {
                labels = labels.with("cause", cause);
            }
            return Some(("checkpoint", text, labels));
        }
        if let Some((kind, labels)) = vacuum(message) {
            let what = if kind == "autovacuum" { "vacuum" } else { "analyze" };
            let (table, took) = (labels.get("table").unwrap_or("?"), labels.get("elapsed_ms").unwrap_or("?"));
            return Some((kind, format!("automatic {what} of {table}: {took} ms"), labels));
        }
        lock_wait(entry).or_else(|| temporary_file(entry)).or_else(|| restart(message))
    }
}

fn restart(message: &str) -> Option<(&'static str, String, Labels)> {
    let (_, why, text) = RESTARTS.iter().find(|(begin, ..)| message.starts_with(begin))?;
    Some((events::RESTART, (*text).to_owned(), Labels::new([("server", "postgresql"), ("why", why)])))
}

/// A lock wait that has lasted `deadlock_timeout`, or the end of one.
fn lock_wait(entry: &Entry) -> Option<(&'static str, String, Labels)> {
    let rest = entry.message.strip_prefix("process ")?;
    let (pid, rest) = rest.split_once(' ')?;
    pid.parse::<i64>().ok()?;
    let (state, rest) = [("waiting", "still waiting for "), ("acquired", "acquired ")]
        .iter()
        .find_map(|(state, words)| Some((*state, rest.strip_prefix(words)?)))?;
    let (lock, took) = rest.rsplit_once(" after ")?;
    let (mode, on) = lock.split_once(" on ")?;
    let is_word = |text: &str| {
        text.len() < 200 && text.chars().all(|char| char.is_ascii_alphanumeric() || " (),.".contains(char))
    };
    let waited_ms = took.strip_suffix(" ms").filter(|took| took.parse::<f64>().is_ok())?;
    if !is_word(mode) || !is_word(on) {
        return None;
    }
    let kind = on.split(' ').next().unwrap_or_default();
    let mut labels =
        Labels::new([("session", pid), ("state", state), ("mode", mode), ("lock", kind), ("waited_ms", waited_ms)]);
    if let Some(relation) = after(on, "relation ") {
        labels = labels.with("relation_oid", relation);
    }
    if let Some(holders) = entry.detail.as_deref().and_then(|detail| pids(detail.split_once("holding the lock: ")?.1)) {
        labels = labels.with("blocked_by", holders);
    }
    labels = about(entry, labels);
    Some(("lock_wait", format!("session {pid}: {state}, {mode} on {kind}, after {waited_ms} ms"), labels))
}

/// The process ids at the start of `text`.
fn pids(text: &str) -> Option<String> {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != ',' && char != ' ').unwrap_or(text.len());
    let pids = text.get(..end)?.trim_end_matches([',', ' ']).replace(' ', "");
    (!pids.is_empty() && pids.len() < 200).then_some(pids)
}

fn temporary_file(entry: &Entry) -> Option<(&'static str, String, Labels)> {
    let (_, size) = entry.message.strip_prefix("temporary file: path \"")?.rsplit_once("\", size ")?;
    let bytes: u64 = size.parse().ok()?;
    let labels = about(entry, Labels::new([("size_bytes", bytes.to_string())]));
    Some(("temporary_file", format!("a temporary file of {bytes} bytes"), labels))
}

fn deadlock(entry: &Entry) -> (&'static str, String, Labels) {
    let detail = entry.detail.as_deref().unwrap_or_default();
    let waits: Vec<String> = detail
        .lines()
        .filter_map(|line| {
            let waiter =
                after(line, "Process ").filter(|_| line.starts_with("Process ") && line.contains(" waits for "))?;
            Some(format!("{waiter}<{}", after(line, "blocked by process ")?))
        })
        .take(10)
        .collect();
    let labels = if waits.is_empty() { Labels::none() } else { Labels::new([("waits", waits.join(","))]) };
    let text = format!("a deadlock of {} sessions", waits.len().max(2));
    (events::DEADLOCK, text, about(entry, labels))
}

/// Adds the session, the database and the statement of an entry.
fn about(entry: &Entry, mut labels: Labels) -> Labels {
    if let Some(pid) = entry.pid.filter(|_| labels.get("session").is_none()) {
        labels = labels.with("session", pid.to_string());
    }
    if let Some(database) = &entry.database {
        labels = labels.with("database", database.as_str());
    }
    if let Some(sql) = entry.statement.as_deref().filter(|sql| !sql.starts_with(MARKER)) {
        labels = labels.with("digest", digest_of_text(&digest_text(sql, Dialect::PostgreSql)));
    }
    labels
}

/// Name and labels of an error; none if the entry is not an error, or is holdup's own.
fn error(entry: &Entry) -> Option<(String, Labels)> {
    if !matches!(entry.severity.as_str(), "ERROR" | "FATAL" | "PANIC")
        || entry.statement.as_ref().is_some_and(|sql| sql.starts_with(MARKER))
    {
        return None;
    }
    let code =
        entry.code.as_deref().filter(|code| code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    // An application can raise any message.
    let known = ERRORS.iter().find(|(begin, _)| entry.message.starts_with(begin)).filter(|_| code != Some("P0001"));
    let known = if entry.message == "deadlock detected" { Some("deadlock") } else { known.map(|(_, name)| *name) };
    let name = known
        .map(str::to_owned)
        .or_else(|| code.map(|code| format!("SQLSTATE {code}")))
        .unwrap_or_else(|| "other".to_owned());
    let mut labels = Labels::new([("error", name.as_str())]);
    if let Some(code) = code {
        labels = labels.with("sqlstate", code);
    }
    if let Some(database) = &entry.database {
        labels = labels.with("database", database.as_str());
    }
    Some((name, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(severity: &str, message: &str) -> Entry {
        let (severity, message) = (severity.to_owned(), message.to_owned());
        Entry { at: Some(5), pid: Some(42), database: Some("shop".to_owned()), severity, message, ..Entry::default() }
    }

    fn events(entries: &[Entry]) -> Vec<holdup_recording::rows::Event> {
        let mut batch = Batch::default();
        Events::default().take(entries, "s", 0, &mut batch);
        let text = format!("{:?}", batch.events);
        assert!(!text.contains("canary"), "{text}");
        batch.events
    }

    #[test]
    fn waits_for_locks_have_waiter_holder_and_statement() {
        let waits = Entry {
            detail: Some("Process holding the lock: 41. Wait queue: 42, 43.".to_owned()),
            statement: Some("UPDATE t SET a = 'canary' WHERE id = 1".to_owned()),
            ..entry("LOG", "process 42 still waiting for ShareLock on transaction 745 after 1000.123 ms")
        };
        let digest = holdup_sql::digest("UPDATE t SET a = '' WHERE id = 2", Dialect::PostgreSql);
        let acquired =
            entry("LOG", "process 42 acquired AccessExclusiveLock on relation 16385 of database 5 after 2500.000 ms");
        let found = events(&[waits, acquired]);
        let wanted = [
            ("session", "42"),
            ("state", "waiting"),
            ("mode", "ShareLock"),
            ("lock", "transaction"),
            ("blocked_by", "41"),
            ("waited_ms", "1000.123"),
        ];
        assert!(found[0].kind == "lock_wait" && found[0].labels.contains(&wanted), "{:?}", found[0]);
        assert_eq!(found[0].labels.get("digest"), Some(digest.as_str()));
        let wanted = [("state", "acquired"), ("relation_oid", "16385"), ("waited_ms", "2500.000")];
        assert!(found[1].labels.contains(&wanted), "{:?}", found[1]);
        assert!(
            events(&[
                entry("LOG", "process canary still waiting for x on y after 1 ms"),
                entry("LOG", "process 1 acquired 'canary' on y after 1 ms")
            ])
            .is_empty()
        );
    }

    #[test]
    fn a_server_that_begins_anew_says_how_it_had_ended() {
        let found = events(&[
            entry("LOG", "database system was interrupted; last known up at 2026-11-28 10:00:00 UTC"),
            entry("LOG", "database system was not properly shut down; automatic recovery in progress"),
            entry("LOG", "database system was shut down at 2026-11-28 10:00:00 UTC"),
            entry("LOG", "database system is ready to accept connections"),
        ]);
        let why: Vec<_> = found.iter().map(|event| (event.kind.as_str(), event.labels.get("why"))).collect();
        assert_eq!(why, [("restart", Some("crash")), ("restart", Some("requested"))]);
    }

    #[test]
    fn checkpoints_have_their_cause() {
        let done = "checkpoint complete: wrote 5 buffers (0.0%); 0 WAL file(s) added, 0 removed, 0 recycled; write=0.1 s, sync=0.0 s, total=0.2 s; sync files=0, longest=0.0 s, average=0.0 s; distance=0 kB, estimate=0 kB";
        let found = events(&[entry("LOG", "checkpoint starting: wal"), entry("LOG", done), entry("LOG", done)]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].labels.get("cause"), found[1].labels.get("cause")), (Some("wal"), None));
        assert_eq!(found[0].text, "checkpoint (wal): 5 buffers in 200 ms");
    }

    #[test]
    fn errors_are_counted_by_kind_and_say_no_value() {
        let with = |code: &str, message: &str| Entry { code: Some(code.to_owned()), ..entry("ERROR", message) };
        let deadlock = Entry {
            detail: Some("Process 42 waits for ShareLock on transaction 1; blocked by process 43.\nProcess 43 waits for ShareLock on transaction 2; blocked by process 42.\nProcess 42: SELECT 'canary'".to_owned()),
            ..with("40P01", "deadlock detected")
        };
        let found = events(&[
            entry("ERROR", "duplicate key value violates unique constraint \"canary\""),
            entry("ERROR", "duplicate key value violates unique constraint \"other_canary\""),
            with("22P02", "invalid input syntax for type integer: \"canary\""),
            with("P0001", "permission denied, says canary"),
            with("22012", "division by canary"),
            entry("FATAL", "canary canary"),
            deadlock,
            Entry { statement: Some(format!("{MARKER} EXPLAIN SELECT 'canary'")), ..entry("ERROR", "syntax error") },
            entry("LOG", "temporary file: path \"base/pgsql_tmp/pgsql_tmp42.0\", size 1400000"),
            entry("WARNING", "canary"),
        ]);
        let texts: Vec<&str> = found.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "a deadlock of 2 sessions",
                "a temporary file of 1400000 bytes",
                "ERROR: SQLSTATE 22012, 1 times",
                "ERROR: SQLSTATE P0001, 1 times",
                "ERROR: deadlock, 1 times",
                "ERROR: invalid input, 1 times",
                "ERROR: unique violation, 2 times",
                "FATAL: other, 1 times",
            ]
        );
        assert_eq!(found[0].labels.get("waits"), Some("42<43,43<42"));
        assert!(found[6].labels.contains(&[("count", "2"), ("severity", "ERROR"), ("database", "shop")]));
        let many: Vec<Entry> = (0..2_000).map(|_| entry("LOG", "temporary file: path \"x\", size 1")).collect();
        assert_eq!(events(&many).len(), EVENTS);
    }
}
