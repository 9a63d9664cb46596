//! Recordings of sessions that wait for a lock.

use holdup_recording::rows::Session;

use super::{MYSQL, POSTGRESQL, Random};
use crate::testing::SyntheticRecording;

/// Session 7 holds what others wait for.
fn locked(source: &'static str, holder: &'static str) -> SyntheticRecording {
    let session = move |second: i64, id: i64, true_state: &str| Session {
        observed_at: second * 1_000_000_000,
        source: source.into(),
        session_id: id,
        true_state: true_state.into(),
        digest_text: Some(format!("SELECT views FROM day WHERE {} FOR UPDATE", "a = ? AND ".repeat(40)).into()),
        blocked_by: (id != 7).then_some(7),
        ..Session::default()
    };
    let rows = (0..=12).flat_map(move |s| {
        let waits = (0..18).map(move |i| session(s, 100 + i, "lock_wait"));
        std::iter::once(session(s, 7, holder)).chain(waits).collect::<Vec<_>>()
    });
    SyntheticRecording::new(12).requests(50, 400).session_rows(rows.collect()).gauge(
        source,
        "mysql_global_status_threads_connected",
        &[],
        20.0,
    )
}

pub(super) fn mysql_locks(random: &mut Random) -> SyntheticRecording {
    locked(MYSQL, random.pick(&["idle", "executing"])).setting(MYSQL, "innodb_lock_wait_timeout", "50")
}

pub(super) fn postgresql_locks(random: &mut Random) -> SyntheticRecording {
    locked(POSTGRESQL, random.pick(&["idle_in_transaction", "executing"])).setting(POSTGRESQL, "lock_timeout", "0")
}
