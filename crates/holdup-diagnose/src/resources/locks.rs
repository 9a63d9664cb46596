//! Locks of the database: how long they are held, and how long requests wait for them.

use holdup_recording::rows::Session;
use holdup_signals::database::blockers::Holder;
use holdup_signals::{Missing, View};

use super::newcomers::Newcomers;
use crate::case::Case;

/// Sessions that wait for a lock.
pub struct LockWaiters<'a> {
    /// Those of requests.
    pub own: Vec<&'a Session>,
    /// Those of other work that began beside the requests: an import whose sessions wait for each
    /// other delays no request by that.
    pub aside: usize,
    /// Instants at which sessions were sampled.
    pub instants: f64,
}

impl LockWaiters<'_> {
    /// Mean number of requests' sessions that wait.
    pub fn mean(&self) -> f64 {
        self.own.len() as f64 / self.instants
    }

    /// Share (0-1) of the waiters that are requests' sessions; 1 if nothing waits.
    pub fn own_ratio(&self) -> f64 {
        let all = self.own.len() + self.aside;
        if all == 0 { 1.0 } else { self.own.len() as f64 / all as f64 }
    }
}

/// Sessions of the episode that wait for a lock.
///
/// # Errors
/// If sessions, or one of `columns`, were not recorded.
pub fn waiters<'v>(case: &Case<'_>, view: &View<'v>, columns: &[&'static str]) -> Result<LockWaiters<'v>, Missing> {
    let sessions = view.sessions(columns)?;
    let new = Newcomers::for_case(case).ok();
    let is_aside = |session: &Session| new.as_ref().is_some_and(|new| new.is_aside(session));
    let waiting = sessions.into_iter().filter(|s| s.true_state == "lock_wait");
    let (aside, own): (Vec<&Session>, Vec<&Session>) = waiting.partition(|s| is_aside(s));
    Ok(LockWaiters { own, aside: aside.len(), instants: view.session_instants().max(1) as f64 })
}

/// Milliseconds that a request of the episode waits for locks, by Little's law.
///
/// # Errors
/// If sessions were not recorded.
pub fn waited_ms(case: &Case<'_>) -> Result<f64, Missing> {
    let view = case.slow();
    let waiters = waiters(case, &view, &["observed_at", "source", "true_state", "digest_text"])?;
    let completed = case.completed_in(view.window)?.max(1.0);
    Ok(waiters.mean() / (completed / view.window.seconds()) * 1e3)
}

/// Milliseconds per request for which contended locks are held: mean number of holders over the
/// rate at which requests end (Little's law). What makes up most of that is why they are held. None
/// if the holders are unknown, or mostly idle: the database then has no part in it.
pub fn held_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let blockers = view.blockers().ok()?;
    let idle: f64 = blockers.holders.iter().filter(|h| h.is_idle()).map(|h| h.instants_ratio).sum();
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    (blockers.mean > 2.0 * idle).then(|| blockers.mean / (completed / view.window.seconds()) * 1e3)
}

/// Share (0-1) of the time for which contended locks are held that makes a holder the one.
const MOST: f64 = 0.5;

/// Whether the sessions that hold contended locks mostly execute the bulk change that began: others
/// wait for its work, and not for a transaction that thinks.
pub fn are_held_by_bulk(case: &Case<'_>) -> bool {
    let (Ok(new), Ok(blockers)) = (Newcomers::for_case(case), case.slow().blockers()) else { return false };
    let Some(bulk) = new.bulk(case) else { return false };
    let executes = |holder: &&Holder| {
        holder.did.first().is_some_and(|(did, _)| did.starts_with("executing")) && bulk.is_of(&holder.statement)
    };
    let held: f64 = blockers.holders.iter().map(|holder| holder.instants_ratio).sum();
    let by_bulk: f64 = blockers.holders.iter().filter(executes).map(|holder| holder.instants_ratio).sum();
    by_bulk > 0.0 && by_bulk >= MOST * held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn sessions_of_other_work_that_wait_for_each_other_are_set_aside() {
        // From 10 s on 50 requests a second are slow; an import's three sessions and one of theirs wait for a lock.
        let during = |s: i64| (s - 10).max(0);
        let session = |s: i64, id: i64| Session {
            observed_at: s * 1_000_000_000,
            source: "mysql://db".into(),
            session_id: id,
            true_state: "lock_wait".into(),
            digest_text: Some(if id == 0 { "UPDATE item SET n = ?" } else { "INSERT INTO item SELECT ?" }.into()),
            ..Session::default()
        };
        let made = SyntheticRecording::new(20)
            .requests(50, 400)
            .each_request(|n, r| {
                if n < 500 {
                    r.done_at = r.intended_at + 5_000_000;
                }
            })
            .session_rows((10..20).flat_map(|s| (0..4).map(move |id| session(s, id))).collect())
            .digest("UPDATE item SET n = ?", |s| (50 * s, 50 * s, 0, 0, 0))
            .digest("INSERT INTO item SELECT ?", move |s| (3 * during(s), 3 * during(s), 0, 0, 0));
        made.with(|case| {
            let view = case.slow();
            let waiters = waiters(case, &view, &["true_state", "digest_text"]).unwrap();
            assert_eq!((waiters.own.len(), waiters.aside), (10, 30));
            assert!((waiters.own_ratio() - 0.25).abs() < 1e-9);
        });
    }

    #[test]
    fn locks_of_a_bulk_change_are_held_by_its_work() {
        // From 10 s on an import holds what three sessions of requests wait for, and is in `state` then.
        let during = |s: i64| (s - 10).max(0);
        let made = |state: &'static str, rows: i64| {
            let session = move |s: i64, id: i64| Session {
                observed_at: s * 1_000_000_000,
                source: "mysql://db".into(),
                session_id: id,
                true_state: if id == 7 { state } else { "lock_wait" }.into(),
                state: Some("Sending data".into()),
                blocked_by: (id != 7).then_some(7),
                digest_text: Some(if id == 7 { "INSERT INTO item SELECT ?" } else { "UPDATE item SET n = ?" }.into()),
                ..Session::default()
            };
            SyntheticRecording::new(20)
                .requests(50, 400)
                .each_request(|n, r| {
                    if n < 500 {
                        r.done_at = r.intended_at + 5_000_000;
                    }
                })
                .session_rows((10..20).flat_map(|s| [1, 2, 3, 7].map(move |id| session(s, id))).collect())
                .digest("UPDATE item SET n = ?", |s| (50 * s, 50 * s, 0, 0, 0))
                .digest("INSERT INTO item SELECT ?", move |s| {
                    (3 * during(s), 3 * during(s), 0, 3 * rows * during(s), 0)
                })
                .tables(|tables| {
                    tables.statements.rows.iter_mut().for_each(|row| row.rows_affected = row.rows_sent);
                })
                .with(are_held_by_bulk)
        };
        assert!(made("executing", 1_000));
        assert!(!made("idle in transaction", 1_000), "it thinks");
        assert!(!made("executing", 2), "it changes few rows");
    }
}
