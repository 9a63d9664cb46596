//! What every session really does. The server's own list says `Sleep` for a session whose statement
//! waits in the thread pool's queue. Joined with that queue the state is `queued`; joined with
//! InnoDB's lock waits it names the blocking session. The lists are read one after another within
//! milliseconds, not at one instant.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::failure::Failure;
use super::pool::Queued;
use super::server::{INFO_BYTES, MARKER, Row, Server};
use super::versions::Topic;
use super::{Reads, holders};
use crate::reading::Out;

/// Accounts of the server's own threads.
const SYSTEM_USERS: &[&str] = &["system user", "event_scheduler"];

/// Largest number of transactions read.
const TRANSACTIONS_MAX: usize = 20_000;

/// The part of a sample that reads the complete texts of the sessions' statements.
const TEXTS: &str = "statement texts";

/// Largest number of idle sessions in a sample. Their count is exact. The thousand idle connections
/// of a pool are all alike, and writing every one would be a quarter of the cost of watching.
const IDLE_ROWS_MAX: usize = 100;

/// The lock's holder by waiting session, if known.
#[derive(Default)]
pub(super) struct LockWaits(HashMap<i64, Option<i64>>);

/// The sessions that wait for an InnoDB lock, and their blockers. Reading the blockers is costly
/// for the server when many wait; if it fails, the waiters are returned without them.
pub(super) fn lock_waits(server: &Server, reads: &mut Reads) -> Option<LockWaits> {
    let waiting = reads.read("lock waits", || {
        server.rows(&format!(
            "SELECT trx_id, trx_mysql_thread_id, trx_state = 'LOCK WAIT' FROM information_schema.INNODB_TRX LIMIT {TRANSACTIONS_MAX}"
        ))
    })?;
    let mut sessions: HashMap<String, (i64, bool)> = HashMap::new();
    let mut waits = HashMap::new();
    for row in &waiting {
        let (Some(trx), Some(session)) = (row.text(0), row.int(1)) else { continue };
        let waits_now = row.int(2) == Some(1);
        if waits_now {
            waits.insert(session, None);
        }
        sessions.insert(trx.to_owned(), (session, waits_now));
    }
    if waits.is_empty() {
        return Some(LockWaits::default());
    }
    let Some(pairs) = reads.read("lock holders", || server.rows(server.release.has(Topic::LockWaits))) else {
        return Some(LockWaits(waits));
    };
    for row in &pairs {
        let (Some(waiter), Some(holder)) = (row.text(0), row.text(1)) else { continue };
        let (Some((waiter, _)), Some((holder, holder_waits))) = (sessions.get(waiter), sessions.get(holder)) else {
            continue;
        };
        // Waiters further ahead in the queue count as blocking, too: the holder is the one that
        // does not wait itself.
        let known = waits.entry(*waiter).or_insert(None);
        if known.is_none() || !holder_waits {
            *known = Some(*holder);
        }
    }
    Some(LockWaits(waits))
}

/// What to look up about blocking sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holders {
    /// Holders of metadata locks.
    pub(super) metadata: bool,
    /// The holders' last statements.
    pub(super) statements: bool,
}

/// Statement texts by session; they leave this module only without literals.
pub(super) type Texts = HashMap<i64, String>;

/// All sessions except holdup's and the server's own, and their number by command and true state.
/// Returns their statements with literals.
pub(super) fn sample(
    server: &Server,
    (queued, locks, holders): (&Queued, &LockWaits, Holders),
    reads: &mut Reads,
    out: &mut Out,
) -> Option<Texts> {
    out.begin();
    let rows = listed(server, reads)?;
    let (at, source) = (out.at(), out.source());
    let (blocked, last) = in_the_way(server, &rows, locks, holders, reads);
    let is_holder: BTreeSet<i64> = blocked.values().copied().collect();
    let mut texts = Texts::new();
    let mut counts: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    let mut idle = 0;
    for row in &rows {
        // Id, User, Host, db, Command, Time, State, Info
        let (Some(id), Some(user), Some(command)) = (row.int(0), row.text(1), row.text(4)) else { continue };
        let info = row.text(7).map(cut);
        let ours = id == server.connection_id || info.as_ref().is_some_and(|text| text.starts_with(MARKER));
        if ours || command == "Daemon" || SYSTEM_USERS.contains(&user) {
            continue;
        }
        let state = row.text(6).filter(|state| !state.is_empty());
        let true_state = true_state(command, state, queued.contains_key(&id), locks.0.contains_key(&id));
        *counts.entry((command.to_owned(), true_state)).or_default() += 1.0;
        // A session that blocks others is recorded even when idle. Its last statement shows what
        // its transaction is about.
        let info = info.or_else(|| last.get(&id).map(|text| cut(text)));
        if true_state == "idle" && !is_holder.contains(&id) {
            idle += 1;
            if idle > IDLE_ROWS_MAX {
                continue;
            }
        }
        let text = info.as_ref().map(|text| digest_text(text, Dialect::MySql));
        out.batch.sessions.push(Session {
            observed_at: at,
            source: source.into(),
            session_id: id,
            user: Some(user.into()),
            client: row.text(2).filter(|host| host.contains(':')).map(Text::from),
            database: row.text(3).map(Text::from),
            command: command.into(),
            state: state.map(Text::from),
            true_state: true_state.into(),
            queued_ns: queued.get(&id).copied().filter(|_| true_state == "queued"),
            age_ns: row.float(5).map(|seconds| (seconds * 1e9) as i64),
            blocked_by: blocked.get(&id).copied().filter(|_| true_state == "lock_wait"),
            digest: text.as_deref().map(|text| digest_of_text(text).into()),
            digest_text: text.map(Text::from),
            trace_id: info.as_deref().and_then(|info| trace_id(info, Dialect::MySql)).map(Text::from),
        });
        texts.extend(info.map(|info| (id, info)));
    }
    // This row distinguishes a server without visible sessions from a failed read.
    counts.entry(("Sleep".to_owned(), "idle")).or_default();
    for ((command, true_state), count) in counts {
        let labels = Labels::new([("command", command.as_str()), ("true_state", true_state)]);
        out.put(metrics::mysql::SESSIONS, labels, count);
    }
    Some(texts)
}

/// The process list.
fn listed(server: &Server, reads: &mut Reads) -> Option<Vec<Row>> {
    // Not `information_schema.PROCESSLIST`, although it has milliseconds: MariaDB answers that from
    // a temporary table on disk. The query would join the queue when temporary tables are the
    // problem, and would write to the watched system. The full list has no size limit; if its texts
    // were too large, the first 100 characters of each are read for a while.
    if !reads.may(TEXTS) {
        return reads.read("sessions", || server.rows("SHOW PROCESSLIST"));
    }
    let begun = Instant::now();
    let rows = reads.read("sessions", || match server.rows("SHOW FULL PROCESSLIST") {
        // The size is the problem, not the sessions.
        Err(Failure::Large(why)) => Ok(Err(Failure::Large(why))),
        other => other.map(Ok),
    })?;
    reads.learn(TEXTS, begun, rows.as_ref().err());
    reads.note(TEXTS, rows)
}

/// The blocker by waiting session, and the last statements of idle blockers.
fn in_the_way(
    server: &Server,
    rows: &[Row],
    locks: &LockWaits,
    holders: Holders,
    reads: &mut Reads,
) -> (HashMap<i64, i64>, Texts) {
    let mut blocked: HashMap<i64, i64> =
        locks.0.iter().filter_map(|(waiter, holder)| Some((*waiter, (*holder)?))).collect();
    let waits_for_metadata =
        |row: &Row| row.text(6).is_some_and(|state| is_lock_state(state) && state.ends_with("metadata lock"));
    if holders.metadata && rows.iter().any(waits_for_metadata) {
        let found = reads.read("metadata locks", || holders::metadata_lock_holders(server)).unwrap_or_default();
        for (waiter, holder) in found {
            blocked.entry(waiter).or_insert(holder);
        }
    }
    let in_the_way: BTreeSet<i64> = blocked.values().copied().collect();
    let runs_nothing = |id: &i64| rows.iter().any(|row| row.int(0) == Some(*id) && row.text(7).is_none());
    let idle: BTreeSet<i64> = in_the_way.into_iter().filter(runs_nothing).collect();
    if !holders.statements || idle.is_empty() {
        return (blocked, Texts::new());
    }
    let last = reads.read("lock holders' statements", || holders::last_statements(server, &idle));
    (blocked, last.unwrap_or_default())
}

/// The beginning of a statement.
fn cut(text: &str) -> String {
    let end = (0..=INFO_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// What a session really does.
fn true_state(command: &str, state: Option<&str>, queued: bool, waits_for_lock: bool) -> &'static str {
    match command {
        // Logging in occupies the pool as well.
        "Sleep" | "Connect" if queued => "queued",
        "Sleep" | "Binlog Dump" | "Binlog Dump GTID" => "idle",
        _ if waits_for_lock || state.is_some_and(is_lock_state) => "lock_wait",
        _ => "executing",
    }
}

/// Whether the server's state text means a lock wait, e.g. `Waiting for table metadata lock`.
fn is_lock_state(state: &str) -> bool {
    state.starts_with("Waiting for") && state.ends_with("lock") || matches!(state, "User lock" | "Locked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_statements_are_cut_between_characters() {
        assert_eq!(cut("SELECT 1"), "SELECT 1");
        let long = cut(&"é".repeat(INFO_BYTES));
        assert_eq!(long.len(), INFO_BYTES);
        assert_eq!(cut(&format!("x{long}")).len(), INFO_BYTES - 1);
    }

    #[test]
    fn states() {
        assert_eq!(true_state("Sleep", None, true, false), "queued");
        assert_eq!(true_state("Sleep", None, false, false), "idle");
        // Between the two reads it got its thread.
        assert_eq!(true_state("Query", None, true, false), "executing");
        assert_eq!(true_state("Query", Some("Updating"), false, true), "lock_wait");
        assert_eq!(true_state("Query", Some("Waiting for table metadata lock"), false, false), "lock_wait");
        assert_eq!(true_state("Query", Some("Sending data"), false, false), "executing");
        // It holds a lock's queue place no more once its statement is over.
        assert_eq!(true_state("Sleep", None, false, true), "idle");
    }
}
