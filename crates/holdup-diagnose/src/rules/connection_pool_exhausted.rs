//! The app's pool of database connections has run dry.

use holdup_recording::Labels;

use super::{Doc, Found, MATTERS, Outcome, Rule, ms, percent, timing};
use crate::accounts::Owner;
use crate::case::Case;
use crate::signals::Missing;
use crate::signals::latency::Origin;
use crate::verdict::{Evidence, Fix, Role};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "connection_pool_exhausted",
    doc: Doc {
        title: "The connection pool is exhausted",
        what: "Every connection of the app's database pool is in use, and requests queue for one. With N connections that are each held for H seconds the app can't run more than N / H units of work a second.",
        hurts: "Requests wait inside the app; the database is idle and its own metrics look perfect.",
        needs: "The app's pool metrics: connections used and allowed, requests pending, time waited and held. OpenTelemetry's db.client.connection.* over Prometheus. Or its spans of waits for a connection.",
        predicts: "Connections in use stand at their maximum, requests are pending, and the wait for a connection is most of the time that requests are too slow by.",
        clears: "No request is pending, or the wait for a connection is a small share of the delay.",
        looks_like: "A slow database: connections are held longer, so the pool runs dry as a consequence. Then most of the time for which a connection is held is spent in the database, and the pool is a symptom.",
        fix: "Hold connections for less time (no calls of neighbours while holding one), then more connections, up to what the database's budget allows.",
        prove: "The same load again: nothing pending, wait for a connection near zero, throughput beyond the old N / H.",
        references: "OpenTelemetry semantic conventions, database client metrics; B. Schwartz, Queueing Theory; HikariCP wiki, About Pool Sizing.",
    },
    judge,
};

/// How the state of a connection is labelled: OpenTelemetry's attribute, and what it was before it was stable.
const STATE_LABELS: [&str; 2] = ["db_client_connection_state", "state"];

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    by_metrics(case).or_else(|missing| by_spans(case).ok_or(missing))
}

/// By the app's spans of waits for a connection: how long, and not how many connections there are.
fn by_spans(case: &Case<'_>) -> Option<Outcome> {
    if !case.recording.tables.spans.rows.iter().any(|s| s.resource == "pool") {
        return None;
    }
    let waited = case.accounts().mean_ms_of_app(Owner::PoolWait)?;
    let text = format!("a request waited {} for a connection of the pool, by the app's spans", ms(waited));
    let labels = Labels::of([("resource", "pool")]);
    let evidence = Evidence::new("spans", "duration_ns", labels, case.slow().window, ms(waited), "near 0 ms", text);
    if case.share(waited) < MATTERS {
        return Some(Outcome::Cleared(vec![evidence]));
    }
    Some(Outcome::Found(Found {
        explains_ms: waited,
        evidence: vec![evidence],
        weights: vec![0.8],
        fixes: vec![Fix {
            text: "See in the waits of single requests what a connection is held for, and give it back before that; then raise the pool. With db.client.connection.* metrics holdup says to how many.".to_owned(),
            command: None,
            keep: None,
            risk: Some("Each instance of the app then opens that many; hold the sum against the database's max_connections.".to_owned()),
        }],
        prove: "Run the same scenario again: the pool wait leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

fn by_metrics(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let wait = view.mean(timing::POOL_WAIT, &[], timing::APP_METRICS)?;
    let pending = view.gauge("db_client_connection_pending_requests", &[], timing::APP_METRICS)?;
    let used = STATE_LABELS
        .iter()
        .find_map(|label| view.gauge("db_client_connection_count", &[(label, "used")], timing::APP_METRICS).ok())
        .ok_or_else(|| Missing::new("samples of db_client_connection_count in state used", timing::APP_METRICS))?;
    let max = view.gauge("db_client_connection_max", &[], timing::APP_METRICS)?;
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
    if case.share(per_request) < MATTERS {
        return Ok(Outcome::Cleared(vec![waited, queue]));
    }
    let mut evidence = vec![
        waited,
        queue,
        used.evidence(
            format!("{:.1} of {:.0}", used.mean, max.mean),
            format!("below {:.0}", max.mean),
            format!("{:.1} of {:.0} connections were in use on average", used.mean, max.mean),
        ),
    ];
    let mut weights = vec![0.8, if pending.positive_ratio > 0.5 { 0.7 } else { 0.2 }];
    weights.push((used.mean / max.mean.max(1.0)).clamp(0.0, 0.9) * 0.8);
    let mut fixes = Vec::new();
    let held = view.mean(timing::POOL_USE, &[], timing::APP_METRICS).ok();
    if let Some(held) = &held {
        let ceiling = max.mean / (held.ms / 1e3).max(1e-9);
        evidence.push(held.evidence(
            ms(held.ms),
            String::new(),
            format!(
                "each connection was held for {}: {:.0} connections carry {ceiling:.0} units of work a second, no more",
                ms(held.ms),
                max.mean
            ),
        ));
        let offered = case.peak_offered_per_second();
        let uses = held.count / completed;
        // Little's law: connections in use = rate x uses per request x time held; half as many again, because a
        // pool that is busy all the time makes a queue of every burst.
        let needed = (offered * uses * held.ms / 1e3 * 1.5).ceil();
        // Where nobody saw the demand, only what was served, more may be wanted.
        let at_least = if case.origin == Origin::Client { "" } else { "at least " };
        if let Some(share) = timing::database_share_of_connection_use(&view).filter(|s| *s < 0.5) {
            fixes.push(Fix {
                    text: format!(
                        "Give the connection back before doing other work: {} of the time it is held is spent in the database.",
                        percent(share)
                    ),
                    command: None,
                    keep: None,
                    risk: Some("What must be one transaction has to stay on one connection.".to_owned()),
                });
        }
        fixes.push(Fix {
            text: format!(
                "Raise the pool from {:.0} to {at_least}{needed:.0} connections: {offered:.0}/s x {} held, by Little's law, and half as many again for bursts.",
                max.mean, ms(held.ms * uses)
            ),
            command: None,
            keep: None,
            risk: Some("Each instance of the app then opens that many; hold the sum against the database's max_connections.".to_owned()),
        });
    }
    Ok(Outcome::Found(Found {
        explains_ms: per_request,
        evidence,
        weights,
        fixes,
        prove: "Run the same scenario again: db_client_connection_pending_requests stays 0 and the pool wait leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::testing::{ALL, Injected, Told, made};

    #[test]
    fn spans_tell_without_metrics() {
        let waits = Injected { pool: 50.0, ..Injected::default() };
        let ms = made(waits, ALL).explains(&RULE).unwrap();
        assert!((ms - 50.0).abs() < 2.0, "{ms}");
        assert_eq!(made(waits, ALL).diagnose().culprit.as_deref(), Some("connection_pool_exhausted"));
        let other = Injected { app: 50.0, ..Injected::default() };
        assert_eq!(made(other, ALL).explains(&RULE), Some(0.0));
        assert_eq!(made(waits, Told { spans: false, ..ALL }).explains(&RULE), None);
    }
}
