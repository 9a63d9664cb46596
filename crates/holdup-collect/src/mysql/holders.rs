//! Who blocks a session, and with which statement: holders of metadata locks, and the last
//! statement of an idle session that holds a lock. Row locks are in [`sessions`](super::sessions).

use std::collections::{BTreeSet, HashMap};

use super::failure::Failure;
use super::server::{INFO_BYTES, Server};
use super::versions::Topic;

/// Largest number of holders whose statement is looked up.
const HOLDERS_MAX: usize = 100;

/// For each session that waits for a metadata lock, one that holds it; if there are several, one
/// that is not waiting itself.
pub(super) fn metadata_lock_holders(server: &Server) -> Result<HashMap<i64, i64>, Failure> {
    let rows = server.rows(server.release.has(Topic::MetadataLocks))?;
    let pairs: Vec<(i64, i64)> = rows.iter().filter_map(|row| row.int(0).zip(row.int(1))).collect();
    let waiting: BTreeSet<i64> = pairs.iter().map(|(waiter, _)| *waiter).collect();
    let mut holders = HashMap::new();
    for (waiter, holder) in pairs {
        let known = holders.entry(waiter).or_insert(holder);
        if waiting.contains(known) {
            *known = holder;
        }
    }
    Ok(holders)
}

/// The text of the current or last statement, by session.
pub(super) fn last_statements(server: &Server, sessions: &BTreeSet<i64>) -> Result<HashMap<i64, String>, Failure> {
    let ids: Vec<String> = sessions.iter().take(HOLDERS_MAX).map(ToString::to_string).collect();
    let rows = server.rows(&format!(
        "SELECT holdup_t.PROCESSLIST_ID, LEFT(holdup_s.SQL_TEXT, {INFO_BYTES}) FROM performance_schema.threads AS holdup_t \
         JOIN performance_schema.events_statements_current AS holdup_s ON holdup_s.THREAD_ID = holdup_t.THREAD_ID \
         WHERE holdup_t.PROCESSLIST_ID IN ({}) AND holdup_s.SQL_TEXT IS NOT NULL ORDER BY holdup_s.EVENT_ID",
        ids.join(", ")
    ))?;
    Ok(rows.iter().filter_map(|row| row.int(0).zip(row.text(1).map(str::to_owned))).collect())
}
