//! The app's pool of database connections has run dry.

mod advice;
mod between;
mod names;

use holdup_recording::Labels;

use self::names::{NAMES, Names};
use super::{Doc, Judge, MATTERS, Outcome, Role, Rule, RuleFinding, ms, percent, timing};
use crate::accounts::Owner;
use crate::case::Case;
use crate::resources::share;
use crate::strength::{STRONG, WEAK};
use holdup_signals::evidence::{Evidence, Fix};
use holdup_signals::latency::Origin;
use holdup_signals::{Mean, Missing, View};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "connection_pool_exhausted",
    doc: Doc {
        title: "The connection pool is exhausted",
        what: "Every connection of the app's database pool, or of a pool between app and database (PgBouncer), is in use, and requests queue for one. With N connections that are each held for H seconds the app can't run more than N / H units of work per second.",
        hurts: "Requests wait inside the app; the database is idle and its own metrics look perfect.",
        needs: "The app's pool metrics: connections used and allowed, requests pending, time waited and held. OpenTelemetry's db.client.connection.* over Prometheus, or HikariCP's (hikaricp_connections_*). Or its spans of waits for a connection. For a pool in between: PgBouncer's console (--watch pgbouncer:).",
        predicts: "Connections in use stand at their maximum, requests are pending, and the wait for a connection is most of the excess.",
        clears: "No request is pending, or the wait for a connection is a small share of the delay.",
        looks_like: "A slow database or saturated CPUs: connections are held longer, so the pool runs dry as a consequence. Most of the time a connection is held is then spent in the slow part, and the pool is a symptom. It is a symptom even if the slow part is not visible, provided that the hold time of the baseline window would have sufficed.",
        fix: "Hold connections for less time (no calls of downstream services meanwhile), then more connections, up to what the database's budget allows.",
        prove: "The same load again: nothing pending, wait for a connection near zero, throughput beyond the old N / H.",
        references: "OpenTelemetry semantic conventions, database client metrics; PgBouncer documentation, SHOW POOLS and SHOW STATS; B. Schwartz, Queueing Theory; HikariCP wiki, About Pool Sizing.",
    },
    judge: Judge::Alone(judge),
};

/// Utilization (0-1) up to which a pool of some tens hardly has a queue (Erlang's C formula).
const ENOUGH: f64 = 0.8;

/// A connection is held longer from this share (0-1) above the baseline: windows differ by less.
const GREW: f64 = 0.25;

/// The risk of a larger pool.
const POOL_RISK: &str =
    "Each instance of the app then opens that many; check the sum against the database's max_connections.";

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let [stable, hikari] = NAMES.each_ref().map(|names| by_metrics(case, names));
    let of_app = stable.or_else(|missing| hikari.map_err(|_| missing)).or_else(|missing| by_spans(case).ok_or(missing));
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
    let (in_use, states) = names.used;
    let used = match states {
        [] => view.gauge(in_use, &[], timing::APP_METRICS)?,
        _ => states
            .iter()
            .find_map(|label| view.gauge(in_use, &[(label, "used")], timing::APP_METRICS).ok())
            .ok_or_else(|| Missing::new(format!("samples of {in_use} in state used"), timing::APP_METRICS))?,
    };
    let max = view.gauge(names.max, &[], timing::APP_METRICS)?;
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
    if share(case, per_request) < MATTERS {
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
    let mut weights = vec![STRONG, if pending.positive_ratio > 0.5 { STRONG } else { WEAK }];
    weights.push(STRONG * (used.mean / max.mean.max(1.0)));
    let mut fixes = Vec::new();
    evidence.extend(from_outside(case, max.mean));
    let held = view.mean(names.held, &[], timing::APP_METRICS).ok();
    if let Some(held) = &held {
        let ceiling = max.mean / (held.ms / 1e3).max(1e-9);
        evidence.push(held.evidence(
            ms(held.ms),
            String::new(),
            format!(
                "each connection was held for {}: {:.0} connections carry at most {ceiling:.0} units of work/s",
                ms(held.ms),
                max.mean
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
        fixes.push(advice::raise(&view, max.mean, needed, at_least, &why));
    }
    let longer = held.as_ref().and_then(|held| held_longer(case, names, held, max.mean));
    let longer = longer.or_else(|| idle_in_use(case, held.as_ref()?, completed, used.mean, max.mean));
    let role = if longer.is_some() { Role::Symptom } else { Role::Root };
    evidence.extend(longer);
    Ok(Outcome::Found(RuleFinding {
        explains_ms: per_request,
        evidence,
        weights,
        fixes,
        prove: format!("Run the same scenario again: {} stays 0 and the pool wait leaves the ledger.", names.pending),
        role,
    }))
}

/// Nearly all of `most` connections are taken, although at this hold time a few would suffice.
fn idle_in_use(case: &Case<'_>, held: &Mean, completed: f64, used: f64, most: f64) -> Option<Evidence> {
    let each_ms = held.ms * held.count / completed;
    let needed = case.peak_offered_per_second() * each_ms / 1e3;
    (case.origin == Origin::Client && used >= ENOUGH * most && needed <= ENOUGH * most).then(|| {
        let text = format!(
            "a request held one for {}, so {needed:.0} would suffice for all due requests: the holders of connections do not progress",
            ms(each_ms)
        );
        held.evidence(ms(each_ms), "", text)
    })
}

/// Each connection is held longer: at the hold time of the baseline window `most` would suffice.
fn held_longer(case: &Case<'_>, names: &Names, held: &Mean, most: f64) -> Option<Evidence> {
    let calm = case.calm()?;
    let before = calm.mean(names.held, &[], timing::APP_METRICS).ok().filter(|before| before.count > 0.0)?;
    let each = |held: &Mean, view: &View<'_>| {
        Some(held.ms * held.count / case.completed_in(view.window).ok().filter(|n| *n > 0.0)?)
    };
    let (now_ms, before_ms) = (each(held, &case.slow())?, each(&before, &calm)?);
    let needed = case.peak_offered_per_second() * before_ms / 1e3;
    (now_ms >= (1.0 + GREW) * before_ms && needed <= ENOUGH * most).then(|| {
        let text = format!(
            "in the baseline window a request held one for {}, so {needed:.0} would suffice for all due requests: they run out because each is held longer",
            ms(before_ms)
        );
        before.evidence(ms(before_ms), ms(now_ms), text)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::testing::{ALL, Injected, ReportingSources, made};
    use crate::testing::Judged as _;

    #[test]
    fn hikaricp_says_the_same_in_its_own_words() {
        let pool = [("pool", "shop")];
        let app = "prometheus:http://app";
        let made = |pending: f64, waited: f64| {
            crate::testing::SyntheticRecording::new(12)
                .requests(50, 400)
                .gauge(app, "hikaricp_connections_active", &pool, 10.0)
                .gauge(app, "hikaricp_connections_max", &pool, 10.0)
                .gauge(app, "hikaricp_connections_pending", &pool, pending)
                .counter(app, "hikaricp_connections_acquire_seconds_sum", &pool, 50.0 * waited)
                .counter(app, "hikaricp_connections_acquire_seconds_count", &pool, 50.0)
                .counter(app, "hikaricp_connections_usage_seconds_sum", &pool, 50.0 * 0.2)
                .counter(app, "hikaricp_connections_usage_seconds_count", &pool, 50.0)
        };
        let ms = made(10.0, 0.3).explains(&RULE).unwrap();
        assert!((ms - 300.0).abs() < 30.0, "{ms}");
        assert_eq!(made(0.0, 0.001).explains(&RULE), Some(0.0));
        for metric in ["hikaricp_connections_active", "hikaricp_connections_max", "hikaricp_connections_pending"] {
            assert_eq!(made(10.0, 0.3).without(metric).explains(&RULE), None, "{metric}");
        }
        let server = "server:8080";
        let peer = [("peer_port", "5432"), ("peer", "10.0.0.5")];
        let outside = made(10.0, 0.3)
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .gauge(server, "server_outgoing_connections", &peer, 10.0)
            .gauge(server, "server_outgoing_pending_connections", &peer, 1.5);
        let Ok(Outcome::Found(found)) = outside.judge(&RULE) else { panic!("not found") };
        assert!(
            found.evidence.iter().any(|e| e.text.contains("10 connections open to 10.0.0.5:5432")),
            "{:?}",
            found.evidence
        );
    }

    #[test]
    fn a_pool_that_was_enough_until_connections_were_held_for_longer_is_no_root() {
        // From the sixth of twelve seconds on requests take 1.5 s, and wait for a second of it for one of 20 connections.
        let app = "prometheus:http://app";
        let made = |calm_s: f64, slow_s: f64| {
            let grows = move |calm: f64, slow: f64| move |s: i64| calm * s.min(6) as f64 + slow * (s - 6).max(0) as f64;
            crate::testing::SyntheticRecording::new(12)
                .requests(50, 400)
                .each_request(|_, r| {
                    let ms = if r.intended_at < 6_000_000_000 { 20 } else { 1_500 };
                    r.done_at = r.intended_at + ms * 1_000_000;
                })
                .gauge(app, "hikaricp_connections_active", &[], 20.0)
                .gauge(app, "hikaricp_connections_max", &[], 20.0)
                .gauge(app, "hikaricp_connections_pending", &[], 30.0)
                .counted(app, "hikaricp_connections_acquire_seconds_sum", &[], grows(0.0, 50.0))
                .counted(app, "hikaricp_connections_acquire_seconds_count", &[], grows(50.0, 50.0))
                .counted(app, "hikaricp_connections_usage_seconds_sum", &[], grows(50.0 * calm_s, 50.0 * slow_s))
                .counted(app, "hikaricp_connections_usage_seconds_count", &[], grows(50.0, 50.0))
        };
        let role = |made: &crate::testing::SyntheticRecording| match made.judge(&RULE) {
            Ok(Outcome::Found(found)) => found.role,
            _ => panic!("not found"),
        };
        assert_eq!(role(&made(0.02, 0.4)), Role::Symptom);
        assert_eq!(made(0.02, 0.4).diagnose().culprit, None, "why they are held for longer nobody saw");
        assert_eq!(role(&made(0.4, 0.4)), Role::Root);
        // All in use, each for next to nothing: those that have one do not go on.
        assert_eq!(role(&made(0.02, 0.02)), Role::Symptom);
    }

    #[test]
    fn spans_tell_without_metrics() {
        let waits = Injected { pool: 50.0, ..Injected::default() };
        let ms = made(waits, ALL).explains(&RULE).unwrap();
        assert!((ms - 50.0).abs() < 2.0, "{ms}");
        assert_eq!(made(waits, ALL).diagnose().culprit.as_deref(), Some("connection_pool_exhausted"));
        let other = Injected { app: 50.0, ..Injected::default() };
        assert_eq!(made(other, ALL).explains(&RULE), Some(0.0));
        assert_eq!(made(waits, ReportingSources { spans: false, ..ALL }).explains(&RULE), None);
    }
}
