//! The states of sampled database sessions: the parts of statements that are themselves the
//! client's requests, without an app; and of an app's calls that the server has not timed, because
//! they have not ended. At an instant, so many requests were with the server, and so many sessions
//! were running, at the disk, or waiting for a lock. Over many instants these are shares of the
//! time of requests: Little's law on both sides (L = λW, with one λ).

use holdup_recording::metrics;
use holdup_recording::rows::Request;

use super::instants::{self, Instant};
use super::{Intervals, POOLER};
use crate::case::Case;
use holdup_signals::View;
use holdup_signals::database::server_waits::{self, SessionWait};

pub(super) const PARTS: [&str; 5] = [
    "database_admission_queue",
    "database_lock_wait",
    "database_disk_wait",
    "database_execution",
    "database_other_wait",
];

/// The shares by part; empty if requests are not statements, or no sessions were sampled.
pub(super) fn parts(case: &Case<'_>) -> Vec<(&'static str, Intervals)> {
    if !case.asks_statements() {
        return Vec::new();
    }
    let view = case.view(case.whole());
    let Ok(requests) = case.requests_in(case.whole()) else { return Vec::new() };
    let instants = sampled(&view, &requests);
    let mut parts = pooler(&view, &requests);
    parts.extend(instants::parts(&instants, &PARTS));
    parts
}

/// The share of statements that wait in a pool between client and database.
fn pooler(view: &View<'_>, requests: &[&Request]) -> Vec<(&'static str, Intervals)> {
    let kinds = [metrics::pgbouncer::WAITING_CLIENTS.name, metrics::proxysql::WAITING_CLIENTS.name];
    let source_of = |waiting| Some((*view.sources_of(waiting).first()?, waiting));
    let Some((source, waiting)) = kinds.into_iter().find_map(source_of) else { return Vec::new() };
    let levels = view.levels(source, waiting, &[]);
    let mut instants: Vec<_> = levels.into_iter().map(|(at, waiting)| Instant::new(at, [waiting])).collect();
    instants::count(&mut instants, requests);
    instants::parts(&instants, &[POOLER])
}

/// The states of sessions while an app waited for them.
pub(super) struct SessionShares(Vec<Instant<{ PARTS.len() }>>);

impl SessionShares {
    /// None if no sessions were sampled.
    pub fn measure(case: &Case<'_>) -> Option<Self> {
        let requests = case.requests_in(case.whole()).ok()?;
        let instants = sampled(&case.view(case.whole()), &requests);
        instants.iter().any(|i| i.counts.iter().sum::<f64>() > 0.0).then_some(Self(instants))
    }

    /// Shares (0-1) by part of the calls' time in the interval `from` to `to`, if calls are the
    /// share `of_service` (0-1) of the time of the requests that were with the service. Time
    /// without a session remains.
    pub fn shares(&self, (from, to): (i64, i64), of_service: f64) -> [f64; PARTS.len()] {
        let near = instants::around(&self.0, i64::midpoint(from, to));
        let calling = near.iter().map(|i| i.in_flight).sum::<f64>() * of_service;
        let mut counts = [0.0; PARTS.len()];
        near.iter().for_each(|i| counts.iter_mut().zip(i.counts).for_each(|(sum, n)| *sum += n));
        let all = f64::max(calling, counts.iter().sum()).max(1e-9);
        counts.map(|n| n / all)
    }

    /// The shares of service time that are `calls`, by part; `name` is the part without a session.
    pub fn split(&self, name: &'static str, calls: Intervals) -> Vec<(&'static str, Intervals)> {
        let mut parts: Vec<_> = PARTS.into_iter().map(|part| (part, Intervals(Vec::new()))).collect();
        let mut rest = Vec::new();
        for (from, to, share) in calls.0 {
            let split = self.shares((from, to), share);
            parts.iter_mut().zip(split).for_each(|((_, own), part)| own.0.push((from, to, share * part)));
            rest.push((from, to, share * (1.0 - split.iter().sum::<f64>()).max(0.0)));
        }
        parts.push((name, Intervals(rest)));
        parts.retain(|(_, own)| own.0.iter().any(|(.., share)| *share > 0.0));
        parts
    }
}

fn sampled(view: &View<'_>, requests: &[&Request]) -> Vec<Instant<{ PARTS.len() }>> {
    let Ok(rows) = view.sessions(&["observed_at", "true_state", "state", "command"]) else { return Vec::new() };
    let mut instants: Vec<_> =
        view.session_times().into_iter().map(|at| Instant::new(at, [0.0; PARTS.len()])).collect();
    for row in rows {
        let part = match row.true_state.as_str() {
            "queued" => 0,
            "lock_wait" if server_waits::at(row.state.as_deref().unwrap_or_default()) == SessionWait::Behind => 2,
            "lock_wait" => 1,
            "executing" if row.source.starts_with("postgres") && row.command != "active" => continue,
            "executing" if row.source.starts_with("postgres") => {
                match server_waits::at(row.state.as_deref().unwrap_or_default()) {
                    SessionWait::Disk | SessionWait::Behind => 2,
                    SessionWait::Lock => 1,
                    SessionWait::Running => 3,
                    SessionWait::Elsewhere => 4,
                }
            }
            "executing" => 3,
            _ => continue,
        };
        if let Some(i) = instants::find(&instants, row.observed_at) {
            instants[i].counts[part] += 1.0;
        }
    }
    instants::count(&mut instants, requests);
    instants
}

#[cfg(test)]
mod tests {
    use crate::ledger::ledger;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 50 statements a second of 400 ms, so 20 with the server: twelve write their log or wait for who does, four run, two wait for a
    /// lock, and two are between client and server.
    fn made() -> SyntheticRecording {
        let events = &[("IO:WALSync", 2), ("LWLock:WALWrite", 10), ("", 4), ("Lock:transactionid", 2)];
        SyntheticRecording::new(12).requests(50, 400).waiting(events)
    }

    #[test]
    fn of_statements_sessions_say_what_their_time_went_to() {
        let rows = made().by_protocol("postgresql").with(ledger);
        let all = rows.iter().find(|row| row.band == "all").expect("a row");
        let part = |name: &str| all.parts.iter().find(|part| part.part == name).map_or(0.0, |part| part.ms);
        for (name, ms) in [("database_disk_wait", 240.0), ("database_execution", 80.0), ("database_lock_wait", 40.0)] {
            // At the very beginning fewer are on their way.
            assert!((part(name) - ms).abs() < 0.12 * ms, "{name}: {} of {ms}", part(name));
        }
        assert!((all.residual_ms - 40.0).abs() < 20.0, "{}", all.residual_ms);
    }

    #[test]
    fn requests_that_are_no_statements_are_more_than_their_sessions() {
        let rows = made().by_protocol("http/1.1").with(ledger);
        assert!(rows.iter().all(|row| row.parts.iter().all(|part| !part.part.starts_with("database"))), "{rows:?}");
    }
}
