//! The same in a pool between app and database: the queue of PgBouncer or ProxySQL.

mod words;

use crate::change::{Bounds, Direction, Fix, SettingChange, Steps, Unit};
use holdup_recording::Labels;
use holdup_recording::words::ms;
use holdup_signals::Missing;
use holdup_signals::database::pooler::{ENABLE, Loan};
use holdup_signals::evidence::Evidence;

use self::words::words;
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role};
use crate::resources::connections::{ENOUGH, GREW};
use crate::resources::is_too_small;
use crate::resources::pooler::Pooler;
use crate::strength::{STRONG, WEAK};

/// If statements run on less than this share (0-1) of the connections that clients have, the others
/// are kept.
const KEPT: f64 = 0.5;

/// Room for bursts in a pool, as a factor on what its load needs.
const BURSTS: f64 = 1.5;

/// Largest pool that holdup proposes.
const POOL_MOST: f64 = 10_000.0;

pub(super) fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let pooler = Pooler::for_case(case)?;
    let waited = pooler.evidence(
        ms(pooler.request_ms),
        "near 0 ms",
        format!(
            "a statement waited {} in {} for a server connection, which is {} of a request",
            ms(pooler.statement_ms),
            pooler.kind.name,
            ms(pooler.request_ms)
        ),
    );
    let (mean, max) = (pooler.waiting.mean, pooler.waiting.max);
    let queue = pooler.waiting.evidence(
        format!("{mean:.1} on average, {max:.0} at most"),
        "0",
        format!("{mean:.1} clients waited in {}'s queue on average, {max:.0} at most", pooler.kind.name),
    );
    if is_too_small(case, pooler.request_ms)? {
        return Ok(Outcome::Cleared(vec![waited, queue]));
    }
    let mut weights = vec![STRONG, if pooler.waiting.positive_ratio > 0.5 { STRONG } else { WEAK }];
    if let (Some(active), Some(size)) = (pooler.busiest.active, pooler.busiest.size) {
        weights.push(STRONG * (active / size).min(1.0));
    }
    let longer = held_longer(case, &pooler);
    let kept = kept(case, &pooler);
    // What statements do is behind the pool. What clients do not give back is the pool's own matter.
    let role = if longer.is_some() && kept.is_none() { Role::Symptom } else { Role::Root };
    if kept.is_some() {
        weights.push(STRONG);
    }
    let mut evidence = vec![waited, queue];
    evidence.extend(kept);
    evidence.extend(longer);
    evidence.extend(made_smaller(&pooler));
    Ok(Outcome::Found(CauseFinding {
        explains_ms: pooler.request_ms,
        evidence,
        weights,
        fixes: fixes(case, &pooler),
        prove: format!(
            "Run the same scenario again: {}, and database_pooler_wait leaves the ledger.",
            words(&pooler).proof
        ),
        role,
    }))
}

/// Connections that the load needs if each `loan` of the episode takes `ms`, by Little's law.
fn needed(case: &Case<'_>, loan: Loan, ms: f64) -> Option<f64> {
    let completed = case.completed_in(case.slow().window).ok()?.max(1.0);
    Some(case.peak_offered_per_second() * loan.times / completed * ms / 1e3)
}

/// Each connection is held longer: at the hold time of the baseline window the pool would suffice.
fn held_longer(case: &Case<'_>, pooler: &Pooler) -> Option<Evidence> {
    let (now, before) = (pooler.loan(&case.slow())?, pooler.loan(&case.baseline()?)?);
    let needed = needed(case, now, before.ms)?;
    (now.ms >= (1.0 + GREW) * before.ms && needed <= ENOUGH * pooler.busiest.size?).then(|| {
        let text = format!(
            "a client held a server connection for {}, and for {} in the baseline window, at which {:.0} would suffice: {}'s pool runs out because each is held longer",
            ms(now.ms),
            ms(before.ms),
            needed.ceil().max(1.0),
            pooler.kind.name
        );
        pooler.evidence(ms(now.ms), ms(before.ms), text)
    })
}

/// Clients keep connections while no statement runs on them: in transactions that wait for their
/// client, or in whole sessions, which no counter times. At the time that statements take the pool
/// would suffice.
fn kept(case: &Case<'_>, pooler: &Pooler) -> Option<Evidence> {
    let (active, size) = (pooler.busiest.active?, pooler.busiest.size?);
    let run = Loan::running(pooler.kind, &pooler.busiest.name, &case.slow())?;
    let running = run.ms / 1e3 * run.times / case.slow().window.seconds().max(1e-9);
    (active >= ENOUGH * size && running <= KEPT * active).then(|| {
        let text = format!(
            "clients had {active:.1} of the {size:.0} server connections of {} {}, and statements ran on {running:.1} of them: the others were kept idle",
            words(pooler).pool,
            pooler.busiest.name
        );
        let labels = Labels::new([("metric", pooler.kind.active), (pooler.kind.pool[0], pooler.busiest.name.as_str())]);
        let window = case.slow().window;
        Evidence::new("samples", "value", labels, window, format!("{active:.1} kept"), format!("{running:.1}"), text)
    })
}

/// The pool was made smaller after the baseline window.
fn made_smaller(pooler: &Pooler) -> Option<Evidence> {
    let (now, before) = (pooler.busiest.size_now?, pooler.busiest.larger_before?);
    let text =
        format!("{} lends at most {now:.0} connections, and lent {before:.0} in the baseline window", pooler.kind.name);
    Some(pooler.waiting.evidence(format!("{now:.0}"), format!("{before:.0}"), text))
}

fn fixes(case: &Case<'_>, pooler: &Pooler) -> Vec<Fix> {
    let view = case.slow();
    let mode = view.setting("pool_mode", ENABLE).ok();
    // Without a hold time nothing is computed, and so nothing is proposed.
    let needed = pooler.loan(&view).and_then(|loan| needed(case, loan, loan.ms));
    let needed = needed.map_or(f64::NAN, |needed| (needed * BURSTS).ceil());
    let bounds = Bounds { least: 1.0, most: POOL_MOST };
    let (words, pool) = (words(pooler), &pooler.busiest);
    let change = SettingChange::new(Direction::Raise, words.size, Unit::Count, pool.size_now, needed, bounds);
    let name = format!("{} {}", words.pool, pool.name);
    let mut fixes = vec![match change {
        Ok(change) => {
            let steps = Steps { command: (words.command)(pool, change.to), ..Steps::default() };
            let why = format!("the statements of {name} keep that many busy, and half as many again for bursts");
            change.fix(&why, steps, words.risk)
        }
        Err(stay) => stay.fix(&format!("Hold each server connection of {name} for less time")),
    }];
    if kept(case, pooler).is_some() && mode != Some("session") {
        fixes.insert(
            0,
            Fix {
                text: "Find the clients that keep transactions open, and let PgBouncer end the next ones.".to_owned(),
                command: Some(
                    "idle_transaction_timeout = 10 below [pgbouncer] in pgbouncer.ini, then RELOAD on its console"
                        .to_owned(),
                ),
                keep: None,
                risk: Some("A transaction that idles for longer is rolled back.".to_owned()),
            },
        );
    }
    if mode == Some("session") {
        fixes.push(Fix {
            text: "Lend connections for a transaction instead of a session: pool_mode is session.".to_owned(),
            command: Some("pool_mode = transaction below [pgbouncer] in pgbouncer.ini, then RELOAD on its console".to_owned()),
            keep: None,
            risk: Some(
                "What a session keeps is lost between transactions: SET, LISTEN, advisory locks, temporary tables, and before 1.21 prepared statements."
                    .to_owned(),
            ),
        });
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::cause::Cause;
    use crate::causes::{Outcome, Role};
    use crate::testing::{Judged as _, SyntheticRecording};

    const SOURCE: &str = "pgbouncer://h:6432";
    const POOL: [(&str, &str); 2] = [("database", "shop"), ("user", "app")];

    /// 50 requests a second of 400 ms, each of one statement of 75 ms, with this wait in PgBouncer.
    fn made(waiting: f64, waited_s: f64) -> SyntheticRecording {
        made_held(waiting, waited_s, 0.075)
    }

    /// The same with statements of `held_s`.
    fn made_held(waiting: f64, waited_s: f64, held_s: f64) -> SyntheticRecording {
        SyntheticRecording::new(12)
            .requests(50, 400)
            .gauge(SOURCE, "pgbouncer_waiting_clients", &POOL, waiting)
            .gauge(SOURCE, "pgbouncer_active_servers", &POOL, 4.0)
            .gauge(SOURCE, "pgbouncer_pool_size", &POOL[..1], 4.0)
            .counter(SOURCE, "pgbouncer_wait_time_seconds_total", &POOL[..1], 50.0 * waited_s)
            .counter(SOURCE, "pgbouncer_query_time_seconds_total", &POOL[..1], 50.0 * (waited_s + held_s))
            .counter(SOURCE, "pgbouncer_queries_total", &POOL[..1], 50.0)
            .setting(SOURCE, "pool_mode", "session")
    }

    #[test]
    fn a_queue_in_pgbouncer_is_an_exhausted_pool() {
        let queued = made(15.0, 0.3);
        let Ok(Outcome::Found(found)) = queued.judge(&DEFINITION) else { panic!("not found") };
        assert!((found.explains_ms - 300.0).abs() < 30.0, "{}", found.explains_ms);
        assert_eq!(found.role, Role::Root);
        // 50 a second of 75 ms keep nearly four busy; half as many again.
        assert!(found.fixes[0].text.contains("default_pool_size from 4 to 6"), "{}", found.fixes[0].text);
        assert!(found.fixes[0].command.as_deref().is_some_and(|command| command.starts_with("default_pool_size = 6 ")));
        assert!(found.fixes[1].text.contains("pool_mode"), "{}", found.fixes[1].text);
        assert_eq!(queued.diagnose().culprit, Some(Cause::ConnectionPoolExhausted));
        // A free pool in between says nothing of the app's own.
        assert_eq!(made(0.0, 0.0).explains(&DEFINITION), None);
    }

    #[test]
    fn a_queue_in_proxysql_is_an_exhausted_pool() {
        const SOURCE: &str = "proxysql://h:6032";
        let server = |name| [("hostgroup", "10"), ("server", name)];
        let queued = |waiting: f64| {
            SyntheticRecording::new(12)
                .requests(50, 400)
                .gauge(SOURCE, "proxysql_waiting_clients", &[("hostgroup", "10")], waiting)
                .gauge(SOURCE, "proxysql_connections_used", &server("a:3306"), 2.0)
                .gauge(SOURCE, "proxysql_connections_used", &server("b:3306"), 2.0)
                .gauge(SOURCE, "proxysql_connections_limit", &server("a:3306"), 2.0)
                .gauge(SOURCE, "proxysql_connections_limit", &server("b:3306"), 2.0)
                .counter(SOURCE, "proxysql_server_statements_total", &server("a:3306"), 50.0)
        };
        let Ok(Outcome::Found(found)) = queued(15.0).judge(&DEFINITION) else { panic!("not found") };
        assert!((found.explains_ms - 300.0).abs() < 30.0, "{}", found.explains_ms);
        // Four are always in use, a little more at the peak; half as many again, shared by two servers.
        assert!(found.fixes[0].text.contains("from 4 to 7"), "{}", found.fixes[0].text);
        let command = found.fixes[0].command.as_deref().unwrap_or_default();
        assert!(
            command.starts_with("UPDATE mysql_servers SET max_connections = 4 WHERE hostgroup_id = 10;"),
            "{command}"
        );
        assert!(found.evidence[0].text.contains("in ProxySQL"), "{}", found.evidence[0].text);
        assert_eq!(queued(15.0).diagnose().culprit, Some(Cause::ConnectionPoolExhausted));
        assert_eq!(queued(0.0).explains(&DEFINITION), None);
    }

    /// Each of 50 transactions a second keeps a connection for 75 ms, of which a statement runs for
    /// `run_s`.
    fn kept(run_s: f64) -> SyntheticRecording {
        let kept = |s: i64| 50.0 * (0.31 * s.min(5) as f64 + 0.375 * (s - 5).max(0) as f64);
        made_held(15.0, 0.3, run_s)
            .each_request(|_, r| {
                if r.intended_at < 5_000_000_000 {
                    r.done_at = r.intended_at + 5_000_000;
                }
            })
            .counter(SOURCE, "pgbouncer_transactions_total", &POOL[..1], 50.0)
            .counted(SOURCE, "pgbouncer_transaction_time_seconds_total", &POOL[..1], kept)
    }

    #[test]
    fn connections_that_clients_keep_without_a_statement_are_the_pools_own_matter() {
        let found = |run_s: f64| match kept(run_s).judge(&DEFINITION) {
            Ok(Outcome::Found(found)) => found,
            _ => panic!("not found"),
        };
        let idle = found(0.01);
        assert_eq!(idle.role, Role::Root);
        assert!(idle.evidence.iter().any(|e| e.text.contains("statements ran on 0.5 of them")), "{:?}", idle.evidence);
        // Held longer because statements run longer: what makes them long is behind it.
        assert_eq!(found(0.074).role, Role::Symptom);
    }

    #[test]
    fn a_pool_that_was_made_smaller_is_said() {
        let sized = |now: f64| {
            made(15.0, 0.3)
                .without("pgbouncer_pool_size")
                .each_request(|_, r| {
                    if r.intended_at < 5_000_000_000 {
                        r.done_at = r.intended_at + 5_000_000;
                    }
                })
                .counted(SOURCE, "pgbouncer_pool_size", &POOL[..1], move |s| if s < 5 { 20.0 } else { now })
        };
        let says = |made: SyntheticRecording| {
            let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
            found.evidence.iter().any(|e| e.text.contains("at most 4 connections, and lent 20"))
        };
        assert!(says(sized(4.0)) && !says(sized(20.0)));
    }

    /// 50 a second of 20 ms need no more than the pool has: raising it would not be a fix, nor would lowering it.
    #[test]
    fn a_pool_that_is_large_enough_is_not_moved() {
        let quick = made_held(15.0, 0.3, 0.02);
        let Ok(Outcome::Found(found)) = quick.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.fixes[0].text.contains("for less time"), "{}", found.fixes[0].text);
        assert_eq!(found.fixes[0].command, None);
    }

    #[test]
    fn both_pools_add_up() {
        let app = "prometheus:http://app";
        let pool = [("pool", "shop")];
        let both = |pending: f64, waited: f64, waiting: f64, queued: f64| {
            made(waiting, queued)
                .gauge(app, "hikaricp_connections_active", &pool, 10.0)
                .gauge(app, "hikaricp_connections_max", &pool, 10.0)
                .gauge(app, "hikaricp_connections_pending", &pool, pending)
                .counter(app, "hikaricp_connections_acquire_seconds_sum", &pool, 50.0 * waited)
                .counter(app, "hikaricp_connections_acquire_seconds_count", &pool, 50.0)
        };
        let near = |ms: Option<f64>, expected: f64| ms.is_some_and(|ms| (ms - expected).abs() <= 0.1 * expected);
        assert!(near(both(5.0, 0.1, 10.0, 0.2).explains(&DEFINITION), 300.0));
        assert!(near(both(0.0, 0.0, 10.0, 0.2).explains(&DEFINITION), 200.0));
        assert!(near(both(5.0, 0.1, 0.0, 0.0).explains(&DEFINITION), 100.0));
        assert_eq!(both(0.0, 0.0, 0.0, 0.0).explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn the_ledger_takes_it_out_of_the_databases_time() {
        let app = "prometheus:http://app";
        let timed = |name: &str, s: f64, made: SyntheticRecording| {
            made.counter(app, &format!("{name}_sum"), &[], 50.0 * s).counter(app, &format!("{name}_count"), &[], 50.0)
        };
        let made = timed("http_server_request_duration_seconds", 0.4, made(15.0, 0.3));
        let made = timed("db_client_operation_duration_seconds", 0.38, made);
        let rows = made.with(crate::ledger::ledger);
        let all = rows.iter().find(|row| row.band == "all").expect("a row");
        let part = |name: &str| all.parts.iter().find(|part| part.part == name).map_or(0.0, |part| part.ms);
        assert!((part("database_pooler_wait") - 300.0).abs() < 30.0, "{all:?}");
        assert!((part("database") - 80.0).abs() < 30.0, "{all:?}");
        let sum: f64 = all.parts.iter().map(|part| part.ms).sum();
        assert!((sum + all.residual_ms - all.response_ms).abs() < 0.01, "{all:?}");
    }

    #[test]
    fn of_statements_by_the_clients_that_wait() {
        // 20 are with the pool, of which 15 wait.
        let rows = made(15.0, 0.3).by_protocol("postgresql").with(crate::ledger::ledger);
        let all = rows.iter().find(|row| row.band == "all").expect("a row");
        let part = all.parts.iter().find(|part| part.part == "database_pooler_wait").map_or(0.0, |part| part.ms);
        assert!((part - 300.0).abs() < 30.0, "{all:?}");
    }
}
