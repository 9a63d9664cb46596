//! Database users who came with the episode: a report, an import or a migration logs in under an
//! account of its own. Their statements are not the requests', however often they run, and their
//! waits delay no request by themselves. Users of the baseline window are the requests' own, so a
//! new release of the app is not set aside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdup_recording::metrics;
use holdup_recording::rows::Session;
use holdup_signals::host::threads::is_database_server;
use holdup_signals::{Missing, View};

use crate::case::Case;

/// Sightings of a statement from which its users are known.
const LEAST: usize = 3;

/// Users without a session in the baseline window.
#[derive(Debug, Default)]
pub struct OtherUsers {
    users: usize,
    /// Texts of statements that only they were seen to run, in lower case.
    statements: BTreeSet<String>,
    /// Share (0-1) of the sessions that wait in front of execution which are not theirs.
    pub own_queued_ratio: f64,
}

impl OtherUsers {
    /// Measured once for a case.
    ///
    /// # Errors
    /// Without a baseline window, or if sessions or their users were not recorded.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let baseline = case.well_before().ok_or_else(|| Missing::baseline(", for its users to compare with"))?;
        let columns = &["user", "true_state", "digest_text"];
        let own: BTreeSet<&str> = baseline.sessions(columns)?.iter().filter_map(|s| s.user.as_deref()).collect();
        let view = case.slow();
        let sessions = view.sessions(columns)?;
        let is_own = |session: &Session| session.user.as_deref().is_none_or(|user| own.contains(user));
        // Without a session of theirs, it is unknown under which account requests run.
        if own.is_empty() || !sessions.iter().any(|s| s.user.is_some() && is_own(s)) {
            return Ok(Self { own_queued_ratio: 1.0, ..Self::default() });
        }
        let mut sightings: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        for session in &sessions {
            let Some(text) = &session.digest_text else { continue };
            let (count, is_only_theirs) = sightings.entry(text.to_lowercase()).or_insert((0, true));
            *count += 1;
            *is_only_theirs &= !is_own(session);
        }
        let statements = sightings.into_iter().filter(|(_, (count, only))| *only && *count >= LEAST);
        let queued =
            |own: bool| sessions.iter().filter(|s| s.true_state == "queued" && is_own(s) == own).count() as f64;
        let all = queued(true) + queued(false);
        Ok(Self {
            users: sessions.iter().filter(|s| !is_own(s)).map(|s| &s.user).collect::<BTreeSet<_>>().len(),
            statements: statements.map(|(text, _)| text).collect(),
            own_queued_ratio: if all > 0.0 { queued(true) / all } else { 1.0 },
        })
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.users == 0
    }

    /// Whether only they run the statement of this text.
    pub fn run(&self, text: &str) -> bool {
        self.statements.contains(&text.to_lowercase())
    }

    /// CPU seconds of `view` that the database's processes used for their statements: in proportion
    /// to the time for which it executed these. Statements of requests that wait meanwhile make it
    /// less. None if processes of a database were not watched.
    pub fn cpu_seconds(&self, view: &View<'_>) -> Option<f64> {
        const CPU: &str = metrics::process::CPU_TIME.name;
        let servers: Vec<&str> =
            view.services_with(CPU).iter().filter(|p| is_database_server(p.name)).map(|p| p.source).collect();
        let used = view.counter_where(|source| servers.contains(&source), CPU, &[], "").ok()?.delta;
        let executed = view.executed(&["digest_text"]).ok()?;
        let all: f64 = executed.iter().map(|of| of.seconds).sum();
        let theirs: f64 = executed.iter().filter(|of| self.run(&of.text)).map(|of| of.seconds).sum();
        (all > 0.0).then(|| used * theirs / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// From 10 s on 50 requests a second are slow, while `user` scans and half of the app's sessions are queued.
    fn made(user: &str) -> SyntheticRecording {
        let session = |s: i64, id: i64, user: &str, text: &str, state: &str| Session {
            observed_at: s * 1_000_000_000,
            source: "mysql://db".into(),
            session_id: id,
            user: Some(user.into()),
            true_state: state.into(),
            digest_text: (state == "executing").then(|| text.into()),
            ..Session::default()
        };
        let rows = (0..20).flat_map(|s| {
            let scans = (0..if s < 10 { 0 } else { 3 }).map(move |id| (10 + id, "executing"));
            let theirs = scans.chain((s >= 10).then_some((20, "queued")));
            let theirs: Vec<_> = theirs.map(|(id, state)| session(s, id, user, "SELECT * FROM note", state)).collect();
            let own = [(1, "executing"), (2, if s < 10 { "idle" } else { "queued" })];
            own.map(|(id, state)| session(s, id, "shop", "SELECT name FROM item", state)).into_iter().chain(theirs)
        });
        SyntheticRecording::new(20)
            .requests(50, 400)
            .each_request(|n, r| {
                if n < 500 {
                    r.done_at = r.intended_at + 5_000_000;
                }
            })
            .session_rows(rows.collect())
    }

    #[test]
    fn users_that_log_in_with_the_episode_own_their_statements() {
        made("report").with(|case| {
            let others = OtherUsers::for_case(case).unwrap();
            assert!(!others.is_empty());
            assert!(others.run("select * from NOTE") && !others.run("SELECT name FROM item"));
            assert!((others.own_queued_ratio - 0.5).abs() < 1e-9, "{}", others.own_queued_ratio);
        });
        // A new release logs in as before.
        made("shop").with(|case| {
            let others = OtherUsers::for_case(case).unwrap();
            assert!(
                others.is_empty() && !others.run("SELECT * FROM note") && (others.own_queued_ratio - 1.0).abs() < 1e-9
            );
        });
    }
}
