//! The parts of statements that are themselves what the client asks for: no app tells of them, but the server's sessions are sampled.
//! At an instant so many requests were with the server, and so many sessions were running, at the disk, or waiting for a lock. Over
//! many instants these are shares of the time of requests: Little's law on both sides (L = λW, with one λ).

use holdup_recording::rows::Request;

use super::Intervals;
use crate::case::Case;
use crate::signals::View;
use crate::signals::server_waits::{self, At};

/// Instants within this of a request's end tell of it, nanoseconds: single ones are too few to be a share of anything.
pub(super) const AROUND_NS: i64 = 2_500_000_000;

const PARTS: [&str; 5] = [
    "database_admission_queue",
    "database_lock_wait",
    "database_disk_wait",
    "database_execution",
    "database_other_wait",
];

/// Sessions at one instant by part, and the requests that were with the server.
struct Instant {
    at: i64,
    sessions: [f64; PARTS.len()],
    in_flight: f64,
}

/// The shares by part; none where requests are no statements, or no sessions were sampled.
pub(super) fn parts(case: &Case<'_>) -> Vec<(&'static str, Intervals)> {
    if !case.asks_statements() {
        return Vec::new();
    }
    let view = case.view(case.whole());
    let Ok(requests) = case.requests_in(case.whole()) else { return Vec::new() };
    let instants = instants(&view, &requests);
    let own = |i: usize| -> Vec<(i64, i64, f64)> {
        instants
            .iter()
            .map(|here| {
                let near = around(&instants, here.at, |instant| instant.at).iter();
                let (sessions, in_flight, all) = near.fold((0.0, 0.0, 0.0), |(part, flying, all), instant| {
                    (part + instant.sessions[i], flying + instant.in_flight, all + instant.sessions.iter().sum::<f64>())
                });
                // Sessions that others keep busy are no part of these requests.
                (here.at - AROUND_NS, here.at + AROUND_NS, sessions / f64::max(in_flight, all).max(1e-9))
            })
            .collect()
    };
    let found = PARTS.iter().enumerate().map(|(i, part)| (*part, disjoint(own(i))));
    found
        .filter(|(_, shares)| shares.iter().any(|(.., share)| *share > 0.0))
        .map(|(part, s)| (part, Intervals(s)))
        .collect()
}

/// Those of `instants`, which are in order of time, within [`AROUND_NS`] of `at`.
pub(super) fn around<I>(instants: &[I], at: i64, time: impl Fn(&I) -> i64) -> &[I] {
    let from = instants.partition_point(|instant| time(instant) < at - AROUND_NS);
    let to = instants.partition_point(|instant| time(instant) <= at + AROUND_NS);
    &instants[from..to]
}

/// The same intervals, each until the middle between it and the next.
pub(super) fn disjoint(mut shares: Vec<(i64, i64, f64)>) -> Vec<(i64, i64, f64)> {
    let middle = |(from, to, _): (i64, i64, f64)| i64::midpoint(from, to);
    for i in 1..shares.len() {
        let edge = i64::midpoint(middle(shares[i - 1]), middle(shares[i]));
        (shares[i - 1].1, shares[i].0) = (edge, edge);
    }
    shares
}

fn instants(view: &View<'_>, requests: &[&Request]) -> Vec<Instant> {
    let Ok(rows) = view.sessions(&["observed_at", "true_state", "state", "command"]) else { return Vec::new() };
    let mut instants: Vec<Instant> = view
        .session_times()
        .into_iter()
        .map(|at| Instant { at, sessions: [0.0; PARTS.len()], in_flight: 0.0 })
        .collect();
    for row in rows {
        let part = match row.true_state.as_str() {
            "queued" => 0,
            "lock_wait" if server_waits::at(row.state.as_deref().unwrap_or_default()) == At::Behind => 2,
            "lock_wait" => 1,
            "executing" if row.source.starts_with("postgres") && row.command != "active" => continue,
            "executing" if row.source.starts_with("postgres") => {
                match server_waits::at(row.state.as_deref().unwrap_or_default()) {
                    At::Disk | At::Behind => 2,
                    At::Lock => 1,
                    At::Running => 3,
                    At::Elsewhere => 4,
                }
            }
            "executing" => 3,
            _ => continue,
        };
        if let Ok(i) = instants.binary_search_by_key(&row.observed_at, |instant| instant.at) {
            instants[i].sessions[part] += 1.0;
        }
    }
    for request in requests {
        let Some(sent_at) = request.sent_at else { continue };
        let from = instants.partition_point(|instant| instant.at < sent_at);
        let to = instants.partition_point(|instant| instant.at < request.done_at);
        for instant in instants.iter_mut().take(to).skip(from) {
            instant.in_flight += request.count() as f64;
        }
    }
    instants
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Session;

    use crate::ledger::ledger;
    use crate::signals::testing::Made;

    /// 50 statements a second of 400 ms, so 20 with the server: twelve write their log or wait for who does, four run, two wait for a
    /// lock, and two are between client and server.
    fn made() -> Made {
        let events = [("IO:WALSync", 2), ("LWLock:WALWrite", 10), ("", 4), ("Lock:transactionid", 2)];
        let sessions = (0..=12).flat_map(|second| {
            events.into_iter().flat_map(move |(event, count)| {
                (0..count).map(move |id| Session {
                    observed_at: second * 1_000_000_000,
                    source: "postgresql://db".into(),
                    session_id: id,
                    command: "active".into(),
                    state: Some(event).filter(|event| !event.is_empty()).map(Into::into),
                    true_state: if event.starts_with("Lock") { "lock_wait" } else { "executing" }.into(),
                    ..Session::default()
                })
            })
        });
        Made::new(12).requests(50, 400).session_rows(sessions.collect())
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
