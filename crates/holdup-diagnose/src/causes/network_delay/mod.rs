//! The way between the database and its clients takes longer: the app awaits answers that the server
//! no longer works on.

mod found;
mod trace;

use holdup_recording::Labels;
use holdup_recording::metrics::tcp;

use self::found::{finding, found};
use super::{Cause, Definition, Doc, Edge, Judge, MATTERS, Occurs, Others, Outcome, Source::Of, Trait, ms};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::database_path::{self, DatabasePath, ENABLE};
use crate::resources::share;
use crate::strength::STRONG;
use holdup_signals::Missing;
use holdup_signals::app::accounts::Owner;
use holdup_signals::evidence::Evidence;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::BetweenMachines,
    traits: &[Trait::OnTheWay],
    follows_from: &[
        // To the app, a database that is stopped is a long way: its kernel acknowledges, and no answer comes.
        // What exceeds a limit of the network waits in front of it.
        Edge::same_time(&[&[Of(Cause::ProcessStopped)], &[Of(Cause::NetworkLimit)]]),
    ],
    traces: &[trace::PATTERN],
    ..Definition::new(Cause::NetworkDelay, DOC, Judge::Beside(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The network between the database and its clients is slow",
    what: "Statements reach the server late, and its answers reach the clients late: a longer path, a detour through another region, a congested or unsteady link.",
    hurts: "Each statement pays the way there and back, so a request pays it once for every statement that it sends one after another. It holds its worker, its pooled connection and its locks meanwhile. The server itself is idle.",
    needs: "The app's connections that await an answer (--watch server:PORT of the app), or its own timing of its database calls; and what the server works on meanwhile: its statements' time or its sessions. The sockets of the database's machine (--watch host) tell the way from a queue in front of the server. Packets on both ends (--watch wire:PORT) say it by themselves.",
    predicts: "Requests await the database for longer than before, while the server's own time for a statement stays. Nothing stands unread in the server's sockets. Its answers stay unacknowledged for longer, by as much.",
    clears: "Requests await the database no longer than before; or all known clients are on the database's own machine; or the server itself works for as long as they wait; or their statements stand unread at the server; or its answers are acknowledged as soon as before.",
    looks_like: "A queue in front of execution (thread_pool_queue, a pooler, a database without CPU): statements stand unread in the server's sockets. Lost packets (network_loss): few requests wait, each for a timer. A full link (network_bandwidth): the round trip grows with the queue in front of it. Clients with less demand: no statement then waits.",
    fix: "Find what changed on the way: the route, the region, a VPN, a full link, a bad port. With fewer statements one after another a request depends less on it.",
    prove: "The same load again: requests await the database for as long as the server works on their statements.",
    references: "J. D. C. Little, A Proof for the Queuing Formula L = λW (1961); RFC 6298 (round-trip time); Linux: include/uapi/linux/tcp.h (struct tcp_info), /proc/net/snmp; ss(8).",
};

/// Shows it in one command.
const NEXT: NextCommand =
    NextCommand::anywhere("ping -c 10 DATABASE on the app's machine", 10, "how long the way to the database is");

/// Causes of packets that come late for another reason than the length of the way.
const OTHER_REASONS: &[Cause] = &[Cause::NetworkLoss, Cause::NetworkBandwidth];

/// The server's sockets confirm the way if they show this share (0-1) of it, and exclude it if they
/// show less than the other.
const CONFIRMS: f64 = 0.5;
const EXCLUDES: f64 = 0.25;

/// More than this share (0-1) of the delay would be the root of it.
const MOST: f64 = 0.5;

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    if let Some(outcome) = by_packets(case, others) {
        return Ok(outcome);
    }
    let path = DatabasePath::for_case(case)?;
    let (now, before) = path.awaited_ms();
    let awaited = says(
        &path.awaited,
        now,
        before,
        format!("a request awaited the database for {}, {} in the baseline window", ms(now), ms(before)),
    );
    // A few samples do not exclude a tenth of the delay, but most of it.
    let is_small = |ms: f64| share(case, ms) < MATTERS && share(case, ms + path.error_ms()) < MOST;
    if is_small(path.awaited_more_ms()) {
        return Ok(Outcome::Cleared(vec![awaited]));
    }
    if is_small(path.at_most_ms()) {
        let worked = "that is as long as the server worked on its statements".to_owned();
        return Ok(Outcome::Cleared(vec![awaited.clone(), says(&path.awaited, now, before, worked)]));
    }
    if database_path::is_local(case) {
        let text = "app and database are on one machine: no network is between them".to_owned();
        return Ok(Outcome::Cleared(vec![says(&path.awaited, now, before, text), awaited]));
    }
    // Sockets may await an answer for longer than requests do. Lost packets take their part of what
    // requests lose.
    let explains_ms = path.ms().min(case.excess_ms()) - other_reasons_ms(others);
    if let Some(evidence) = elsewhere(case, &path, explains_ms) {
        return Ok(Outcome::Cleared(vec![awaited, evidence]));
    }
    if share(case, explains_ms) < MATTERS || !path.is_significant() {
        let reason = "what is under way between app and database, apart from what the server works on";
        return match other_reasons_ms(others) > 0.0 {
            true => Ok(Outcome::Cleared(vec![awaited])),
            false => Err(Missing::new(reason, ENABLE)),
        };
    }
    if is_pooled(case) && path.unread_ms().is_none() {
        return Err(Missing::new(
            "whether statements stand unread at the server, in front of its thread pool",
            "--watch host on the database's machine",
        ));
    }
    let mut found = found(case, &path, explains_ms, awaited);
    // Lost packets and a narrow link make answers late alike: while they could not be judged, each is as likely.
    let is_open = |cause: &&Cause| others.get(cause).is_none_or(Result::is_err);
    let part = 1.0 / (1 + OTHER_REASONS.iter().filter(is_open).count()) as f64;
    found.weights.iter_mut().for_each(|weight| *weight = *weight * part);
    Ok(Outcome::Found(found))
}

fn says(pointer: &Evidence, now: f64, before: f64, text: String) -> Evidence {
    let mut evidence = pointer.clone().saying(ms(before), text);
    evidence.observed = ms(now);
    evidence
}

/// What excludes the way although requests await the database for longer.
fn elsewhere(case: &Case<'_>, path: &DatabasePath, explains_ms: f64) -> Option<Evidence> {
    let sample = |metric: &str, observed: f64, expected: f64, text: String| {
        let labels = Labels::new([("metric", metric), ("port", path.port.as_str())]);
        Evidence::new("samples", "value", labels, case.slow().window, ms(observed), ms(expected), text)
    };
    if let Some((now, before)) = path.unread_ms()
        && share(case, explains_ms) < MATTERS
        && share(case, now - before) >= MATTERS
    {
        let text = format!("requests stood unread at the database for {} of each: they had arrived", ms(now));
        return Some(sample(tcp::CONNECTIONS_UNREAD.name, now, before, text));
    }
    let (_, most) = path.unacked_more_ms()?;
    (share(case, explains_ms) >= MATTERS && most < EXCLUDES * explains_ms).then(|| {
        let text = format!(
            "the database's answers were acknowledged as soon as before, to {} of a request",
            ms(most.max(0.0))
        );
        sample(tcp::UNACKED_SEGMENTS.name, most.max(0.0), explains_ms, text)
    })
}

/// Packets on both ends time the way by themselves.
fn by_packets(case: &Case<'_>, others: &Others) -> Option<Outcome> {
    let accounts = case.accounts();
    let now = accounts.mean_ms(Owner::DatabaseNetwork).filter(|_| accounts.has_both_sides())?;
    let before = case.baseline_accounts().and_then(|baseline| baseline.mean_ms(Owner::DatabaseNetwork)).unwrap_or(0.0);
    let text = format!(
        "{} of a request were spent between app and database, by packets on both ends, {} in the baseline window",
        ms(now),
        ms(before)
    );
    let evidence = Evidence::new("exchanges", "done_at", Labels::none(), case.slow().window, ms(now), ms(before), text);
    let explains_ms = (now - before).min(case.excess_ms()) - other_reasons_ms(others);
    if share(case, explains_ms) < MATTERS {
        return Some(Outcome::Cleared(vec![evidence]));
    }
    Some(Outcome::Found(finding(case, explains_ms, vec![evidence], vec![STRONG])))
}

/// Milliseconds of a request that lost packets or a full link explain.
fn other_reasons_ms(others: &Others) -> f64 {
    let explained = |cause: &Cause| match others.get(cause) {
        Some(Ok(Outcome::Found(found))) => found.explains_ms,
        _ => 0.0,
    };
    OTHER_REASONS.iter().map(explained).fold(0.0, f64::max)
}

/// Whether the server has a pool of threads, in front of which statements may stand.
fn is_pooled(case: &Case<'_>) -> bool {
    case.slow().setting("thread_handling", ENABLE).is_ok_and(|handling| handling == "pool-of-threads")
}

#[cfg(test)]
mod tests;
