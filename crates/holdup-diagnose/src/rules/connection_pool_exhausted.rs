//! The app's pool of database connections has run dry.

mod advice;
mod between;
#[cfg(test)]
mod tests;
mod unreported;

use holdup_recording::Labels;

use self::advice::POOL_RISK;
use super::{Doc, Judge, MATTERS, Occurs, Outcome, Role, Rule, RuleFinding, ms, percent, timing};
use crate::case::Case;
use crate::resources::connections::{ConnectionHold, ENOUGH, NAMES, Names};
use crate::resources::share;
use crate::strength::{AS_SYMPTOM, STRONG, WEAK};
use holdup_signals::Missing;
use holdup_signals::accounts::Owner;
use holdup_signals::evidence::{Evidence, Fix};
use holdup_signals::latency::Origin;

pub const RULE: Rule = Rule {
    cause: "connection_pool_exhausted",
    occurs: Occurs::Anywhere,
    doc: Doc {
        title: "The connection pool is exhausted",
        what: "Every connection of the app's database pool, or of a pool between app and database (PgBouncer), is in use, and requests queue for one. With N connections that are each held for H seconds the app can't run more than N / H units of work per second.",
        hurts: "Requests wait inside the app; the database is idle and its own metrics look perfect.",
        needs: "The app's pool metrics: connections used and allowed, requests pending, time waited and held. OpenTelemetry's db.client.connection.* over Prometheus, or HikariCP's (hikaricp_connections_*). Or its spans of waits for a connection, or its connections as the kernel sees them (--watch server:PORT), which show a queue and clear nothing. For a pool in between: PgBouncer's console (--watch pgbouncer:).",
        predicts: "Connections in use stand at their maximum, requests are pending, and the wait for a connection is most of the excess.",
        clears: "No request is pending and connections are free (a wait is then for a new connection), or the wait for a connection is a small share of the delay.",
        looks_like: "A slow database or saturated CPUs: connections are held longer, so the pool runs dry as a consequence. Most of the time a connection is held is then spent in the slow part, and the pool is a symptom. It is a symptom even if the slow part is not visible, provided that the hold time of the baseline window would have sufficed. It is the root if the app itself keeps connections: those in use await no answer, and the longer hold is not in database calls.",
        fix: "Hold connections for less time (no calls of downstream services meanwhile), then more connections, up to what the database's budget allows.",
        prove: "The same load again: nothing pending, wait for a connection near zero, throughput beyond the old N / H.",
        references: "OpenTelemetry semantic conventions, database client metrics; PgBouncer documentation, SHOW POOLS and SHOW STATS; B. Schwartz, Queueing Theory; HikariCP wiki, About Pool Sizing.",
    },
    judge: Judge::Alone(judge),
};

/// Requests wait for a connection only by chance below this share (0-1) of instants.
const NOW_AND_THEN: f64 = 0.1;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let [stable, hikari] = NAMES.each_ref().map(|names| by_metrics(case, names));
    let metrics = stable.or_else(|missing| hikari.map_err(|_| missing));
    let of_app = metrics.or_else(|missing| by_spans(case).or_else(|| unreported::judge(case)).ok_or(missing));
    join(of_app, between::judge(case))
}

/// A request waits in the app's pool first, then in the pool between app and database. A free pool
/// between them clears nothing alone: the app's may still be empty.
fn join(of_app: Result<Outcome, Missing>, between: Result<Outcome, Missing>) -> Result<Outcome, Missing> {
    match (of_app, between) {
        (Ok(Outcome::Found(app)), Ok(Outcome::Found(mut both))) => {
            // Connections of the app are held for the wait behind them: the pool behind comes first.
            both.explains_ms += app.explains_ms;
            both.evidence.extend(app.evidence);
            both.weights.extend(app.weights);
            both.fixes.extend(app.fixes);
            Ok(Outcome::Found(both))
        }
        (_, Ok(Outcome::Found(between))) => Ok(Outcome::Found(between)),
        (Ok(Outcome::Cleared(mut app)), Ok(Outcome::Cleared(between))) => {
            app.extend(between);
            Ok(Outcome::Cleared(app))
        }
        (of_app, _) => of_app,
    }
}

/// From the app's spans of waits for a connection, which do not count connections.
fn by_spans(case: &Case<'_>) -> Option<Outcome> {
    if !case.recording.tables.spans.rows.iter().any(|s| s.resource == "pool") {
        return None;
    }
    let waited = case.accounts().mean_ms_of_app(Owner::PoolWait)?;
    let text = format!("a request waited {} for a connection of the pool, by the app's spans", ms(waited));
    let labels = Labels::new([("resource", "pool")]);
    let evidence = Evidence::new("spans", "duration_ns", labels, case.slow().window, ms(waited), "near 0 ms", text);
    if share(case, waited) < MATTERS {
        return Some(Outcome::Cleared(vec![evidence]));
    }
    Some(Outcome::Found(RuleFinding {
        explains_ms: waited,
        evidence: vec![evidence],
        weights: vec![STRONG],
        fixes: vec![Fix {
            text: "See in single requests why a connection is held; return it earlier, then raise the pool.".to_owned(),
            command: None,
            keep: None,
            risk: Some(POOL_RISK.to_owned()),
        }],
        prove: "Run the same scenario again: the pool wait leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

fn by_metrics(case: &Case<'_>, names: &Names) -> Result<Outcome, Missing> {
    let view = case.slow();
    let wait = view.mean(names.wait, &[], timing::APP_METRICS)?;
    let pending = view.gauge(names.pending, &[], timing::APP_METRICS)?;
    let hold = ConnectionHold::measure(case, names)?;
    let max = hold.now.max.mean;
    let completed = case.completed_in(view.window)?.max(1.0);
    let per_request = wait.ms * wait.count / completed;

    let waited = wait.evidence(
        ms(per_request),
        "near 0 ms",
        format!("a request waited {} for a connection, on average", ms(per_request)),
    );
    let queue = pending.evidence(
        format!("{:.1} on average, {:.0} at most", pending.mean, pending.max),
        "0",
        format!("{:.0} requests were waiting for a connection on average, {:.0} at most", pending.mean, pending.max),
    );
    let used = hold.evidence(
        format!("below {max:.0}"),
        format!("{:.1} of {max:.0} connections were in use on average", hold.now.used.mean),
    );
    // A new connection takes time, too, although others are free.
    let is_free = pending.positive_ratio < NOW_AND_THEN && hold.now.used.mean < ENOUGH * max;
    if share(case, per_request) < MATTERS || is_free {
        return Ok(Outcome::Cleared(if is_free { vec![used, queue, waited] } else { vec![waited, queue] }));
    }
    let mut evidence = vec![waited, queue, used];
    let mut weights = vec![STRONG, if pending.positive_ratio > 0.5 { STRONG } else { WEAK }];
    weights.push(STRONG * (hold.now.used.mean / max.max(1.0)));
    let mut fixes = Vec::new();
    evidence.extend(from_outside(case, max));
    let held = view.mean(names.held, &[], timing::APP_METRICS).ok();
    if let Some(held) = &held {
        let ceiling = max / (held.ms / 1e3).max(1e-9);
        evidence.push(held.evidence(
            ms(held.ms),
            String::new(),
            format!(
                "each connection was held for {}: {:.0} connections carry at most {ceiling:.0} units of work/s",
                ms(held.ms),
                max
            ),
        ));
        let offered = case.peak_offered_per_second();
        let uses = held.count / completed;
        // Little's law: connections in use = rate x uses per request x time held; half as many
        // again, because a pool that is always busy turns every burst into a queue.
        let needed = (offered * uses * held.ms / 1e3 * 1.5).ceil();
        // If only served requests were counted, the demand may be higher.
        let at_least = if case.origin == Origin::Client { "" } else { "at least " };
        if let Some(share) = timing::database_share_of_connection_use(&view).filter(|s| *s < 0.5) {
            fixes.push(Fix {
                text: format!(
                    "Return the connection before doing other work: {} of its hold time is spent in the database.",
                    percent(share)
                ),
                command: None,
                keep: None,
                risk: Some("Statements of one transaction must stay on one connection.".to_owned()),
            });
        }
        let why =
            format!("{offered:.0}/s x {} held, by Little's law, and half as many again for bursts", ms(held.ms * uses));
        fixes.push(advice::raise(&view, max, needed, at_least, &why));
    }
    let (role, kept_ms, why) = role(&hold);
    let part = if role == Role::Symptom { AS_SYMPTOM } else { 1.0 };
    weights.iter_mut().for_each(|weight| *weight = *weight * part);
    evidence.extend(why);
    Ok(Outcome::Found(RuleFinding {
        explains_ms: per_request + kept_ms,
        evidence,
        weights,
        fixes,
        prove: format!("Run the same scenario again: {} stays 0 and the pool wait leaves the ledger.", names.pending),
        role,
    }))
}

/// Whether the pool itself is the root, the milliseconds of a request for which the app keeps a
/// connection over other work, and the evidence. It is the root if there are fewer connections than
/// before, or if the app keeps them; not if each is held longer for something behind the app.
fn role(hold: &ConnectionHold) -> (Role, f64, Option<Evidence>) {
    if let Some(fewer_by) = hold.fewer_by() {
        let text = format!("the pool had {fewer_by:.0} more connections in the baseline window");
        return (Role::Root, 0.0, Some(hold.evidence("as many", text)));
    }
    let longer = hold.was_enough_at_ms().map(|before_ms| {
        format!(
            "in the baseline window a request held one for {}, so {:.0} would suffice for all due requests: they run out because each is held longer",
            ms(before_ms),
            hold.needed(before_ms)
        )
    });
    let stuck = || {
        format!(
            "a request held one for {}, so {:.0} would suffice for all due requests: the holders of connections do not progress",
            ms(hold.now.ended_ms),
            hold.needed(hold.now.ended_ms)
        )
    };
    match longer.or_else(|| hold.is_stuck().then(stuck)) {
        None => (Role::Root, 0.0, None),
        Some(text) => match hold.kept_by_app() {
            Some(kept) => (Role::Root, kept.request_ms, Some(hold.evidence("returned after each use", kept.text))),
            None => (Role::Symptom, 0.0, Some(hold.evidence("", text))),
        },
    }
}

/// The app's connections from the kernel, if as many as the pool allows: alone that may be normal.
fn from_outside(case: &Case<'_>, most: f64) -> Option<Evidence> {
    let view = case.slow();
    let source = view.outside().ok().filter(|o| o.has_processes())?.source;
    let database = view.downstream_services(&source)?.into_iter().find(|n| n.is_database)?;
    let open = database.connections_max.filter(|open| *open >= most)?;
    let text = format!(
        "its processes had at most {open:.0} connections open to {}, as many as the pool allows, and {:.1} of them awaited an answer",
        database.name, database.pending
    );
    Some(database.evidence(format!("{open:.0} open, {:.1} awaited", database.pending), "", text))
}
