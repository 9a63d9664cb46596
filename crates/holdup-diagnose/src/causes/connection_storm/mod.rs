//! Many clients connect to the database at once, and it is slower meanwhile.

use super::parts::opened;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, Magnitude, Occurs, Outcome, Role, Source::Of, Source::With,
    Trait, ms, thousands,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::is_too_small;
use crate::resources::new_connections::{DATABASE, EACH, NewConnections, waited_longer_ms};
use crate::resources::slowed_operations::SlowedOperations;
use crate::strength::{FAIR, NONE, Strength, WEAK};
use holdup_recording::metrics::mongodb as metric;
use holdup_signals::client::latency::Origin;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Gauge, Missing, View, Window, app::timing};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    follows_from: &[
        // Where operations take longer, pools open further connections, and clients that time out connect
        // again. Full CPUs are left out: opening connections fills them.
        Edge {
            from: &[
                &[Of(Cause::ProcessStopped)],
                &[Of(Cause::LockContention)],
                &[With(Trait::OnTheWay)],
                &[Of(Cause::ReplicationWait)],
                &[With(Trait::LongStatement)],
                &[With(Trait::Load)],
            ],
            magnitude: Magnitude::PartOfOwn(0.5),
            is_added: false,
        },
    ],
    bound: Some(opened::bound),
    ..Definition::new(Cause::ConnectionStorm, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Many connections to the database are opened at once",
    what: "Clients open hundreds of connections within seconds: instances of the app that start together, drivers that replace connections after a time-out or a failover, pools without a limit that all grow at the same moment.",
    hurts: "The server logs each client in, starts a thread or a process for it and gives it memory. That takes CPU time and locks from the operations of those that are connected already. Clients that time out connect again, which keeps the storm going.",
    needs: "How many connections the database opened and how many are open (--watch mongodb://…, mysql://…, or postgresql://… with PostgreSQL 14 or later), and a baseline window. For time: MongoDB's own account of its operations, or response time in front of the database.",
    predicts: "In the episode the database opened several times as many connections a second as in the baseline window, and at least half as many as clients had; operations take longer while it does.",
    clears: "Connections were opened at the usual rate, or hardly any in comparison with those that are open; or operations are as slow at other times.",
    looks_like: "Operations that are slow for another reason: pools then open further connections, and the storm follows. An app that connects for each request: it opens connections all the time, and closes them.",
    fix: "Let instances start one after the other, bound pools (maxPoolSize, maxConnecting), keep a minimum open (minPoolSize), and let clients wait longer and at random before they connect again.",
    prove: "The same event again: the count of opened connections grows by a few a second, and response time stays that of the baseline window.",
    references: "MongoDB manual: serverStatus (connections.totalCreated, connections.current, connections.rejected), Connection Pool Options (maxConnecting, maxPoolSize, minPoolSize); MySQL manual: status variables Connections and Threads_connected.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "db.serverStatus().connections",
    1,
    "how many connections are open and, asked twice, how many were opened between",
);

/// Connections come in a storm from this multiple of the baseline window's rate.
const TIMES: f64 = 4.0;

/// Connections that came in the episode, as a share (0-1) of the fewest that were open in it: fewer are
/// a pool that grows.
const MANY: f64 = 0.5;

/// Fewer new connections are not a storm, whatever clients had before.
const LEAST: f64 = 20.0;

/// Open connections grew if there are this many times as many.
const MORE: f64 = 1.25;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let baseline =
        case.baseline().ok_or_else(|| Missing::new("a baseline window of the connections opened", DATABASE))?;
    let (opened, before) = (NewConnections::measure(case, &view)?, NewConnections::measure(case, &baseline)?);
    let (open, usual) = (opened.open(&view)?, before.counter.rate());
    let has_more = open.max >= MORE * open.min;
    let told = [came(&opened.counter, usual), stood(&open)];
    let is_storm = opened.counter.delta >= f64::max(LEAST, MANY * open.min)
        && opened.counter.rate() >= TIMES * usual
        // Each request that brings its own connection closes it as well.
        && (opened.each < EACH || has_more);
    if !is_storm {
        return Ok(Outcome::Cleared(told.into()));
    }
    let cost = cost(case, &opened, usual)?;
    if is_too_small(case, cost.ms)? {
        return Ok(Outcome::Cleared([cost.evidence].into_iter().chain(told).collect()));
    }
    let [came, stood] = told;
    let mut evidence = vec![came, cost.evidence, stood];
    // What makes operations long makes pools grow, too: the figures fit both.
    let mut weights = vec![FAIR, cost.strength, if has_more { WEAK } else { NONE }];
    let rejected = metric::SERVER_STATUS_CONNECTIONS_REJECTED.name;
    if let Some(rejected) = view.counter(rejected, &[], DATABASE).ok().filter(|rejected| rejected.delta > 0.0) {
        let text = format!("the server refused {} more", thousands(rejected.delta));
        evidence.push(rejected.evidence(thousands(rejected.delta), "0", text));
        weights.push(FAIR);
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms: cost.ms,
        evidence,
        weights,
        fixes: fixes(),
        prove: "The same event again: connections are opened a few a second, and requests are as quick as before."
            .to_owned(),
        role: Role::Root,
    }))
}

/// How many came.
fn came(opened: &Counter, usual: f64) -> Evidence {
    let rate = |each: f64| if each < 10.0 { format!("{each:.1}") } else { thousands(each) };
    let text = format!(
        "the database opened {} connections, {} a second instead of {}",
        thousands(opened.delta),
        rate(opened.rate()),
        rate(usual)
    );
    opened.evidence(format!("{} a second", rate(opened.rate())), format!("{} a second", rate(usual)), text)
}

/// How many were open.
fn stood(open: &Gauge) -> Evidence {
    let (most, least) = (thousands(open.max), thousands(open.min));
    let text = format!("up to {most} were open at once, and at least {least}");
    open.evidence(most, least, text)
}

/// What it costs a request.
struct Cost {
    ms: f64,
    evidence: Evidence,
    strength: Strength,
}

fn cost(case: &Case<'_>, opened: &NewConnections, usual: f64) -> Result<Cost, Missing> {
    let view = case.slow();
    let storms = |view: &View<'_>| -> Vec<Window> {
        let growths = opened.growths(view).into_iter();
        growths.filter(|growth| growth.delta >= 1.0 && growth.rate() >= TIMES * usual).map(|it| it.window).collect()
    };
    if case.origin == Origin::DatabaseStatements {
        if view.sources_of(metric::OPERATION_TIME.name).is_empty() {
            return Err(Missing::new("response time in front of the database", timing::APP_METRICS));
        }
        let windows: Vec<Window> = storms(&view).into_iter().chain(case.baseline().iter().flat_map(storms)).collect();
        let slowed =
            SlowedOperations::measure(&view, case.baseline().as_ref(), case.completed_in(view.window)?, &windows)?;
        let evidence = slowed.evidence("many connections were opened");
        return Ok(Cost { ms: slowed.request_ms, evidence, strength: FAIR });
    }
    let baseline =
        case.baseline().ok_or_else(|| Missing::new("a baseline window of the connections opened", DATABASE))?;
    let (waited_ms, by_pool) = waited_longer_ms(case, &view, &baseline);
    let what = if by_pool { "for a connection" } else { "in the app, outside of statements" };
    let text = format!("a request spent {} more {what} than in the baseline window", ms(waited_ms));
    let evidence = opened.counter.evidence(ms(waited_ms), "about 0 ms", text);
    Ok(Cost { ms: waited_ms, evidence, strength: if by_pool { FAIR } else { WEAK } })
}

fn fixes() -> Vec<Fix> {
    let fix = Fix::advice;
    vec![
        fix(
            "Find who connected: the server's log has each client's address (Connection accepted), and the app's instances the time of their start.",
            None,
        ),
        fix(
            "Bound each pool, and how many connections it opens at once (MongoDB's drivers: maxPoolSize, maxConnecting).",
            Some("A pool that is too small makes requests wait for a connection."),
        ),
        fix("Start instances one after the other, with a pause at random before they connect again.", None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mongodb://db";
    const CREATED: &str = "mongodb_server_status_connections_total_created";
    const CURRENT: &str = "mongodb_server_status_connections_current";

    /// 100 reads a second of 2 ms, and of 62 from 30 s to 50 s of 90. `opened(second)` connections come in each second, and 200 are
    /// open at first; `kept` of those that come stay.
    fn made(opened: fn(i64) -> f64, kept: f64) -> SyntheticRecording {
        let during = |s: i64| (s - 30).clamp(0, 20) as f64;
        let sum = move |s: i64| (1..=s).map(opened).sum::<f64>();
        SyntheticRecording::new(90)
            .counter(DB, "mongodb_operations_total", &[("kind", "reads")], 100.0)
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "reads")], move |s| {
                0.2 * s as f64 + 6.0 * during(s)
            })
            .counted(DB, CREATED, &[], move |s| 5_000.0 + sum(s))
            .counted(DB, CURRENT, &[], move |s| 200.0 + kept * sum(s))
    }

    const STORM: fn(i64) -> f64 = |s| if (31..=50).contains(&s) { 90.0 } else { 1.0 };

    #[test]
    fn connections_that_come_at_once_while_operations_are_slow_are_a_storm() {
        let found = made(STORM, 0.9).diagnose();
        assert_eq!(found.culprit, Some(DEFINITION.cause), "{}", found.headline);
        assert!((found.findings[0].explains_ms - 60.0).abs() < 8.0, "{}", found.findings[0].explains_ms);
    }

    #[test]
    fn a_steady_pool_and_a_pool_that_grows_a_little_are_none() {
        /// Connections opened in a second, by the second.
        type Opened = fn(i64) -> f64;
        let cases: [(&str, Opened); 4] = [
            ("none came", |_| 0.0),
            ("as many as ever", |_| 90.0),
            ("the pool grew by 20", |s| if (31..=50).contains(&s) { 1.0 } else { 0.0 }),
            ("they came before", |s| if (5..=12).contains(&s) { 90.0 } else { 1.0 }),
        ];
        for (what, opened) in cases {
            assert_eq!(made(opened, 0.5).explains(&DEFINITION), Some(0.0), "{what}");
        }
    }

    #[test]
    fn a_few_connections_cost_no_more_than_they_can() {
        // 100 requests a second of 2 ms, and of 400 from 30 s on, where two connections a second come and stay.
        let late = |s: i64| (s - 30).max(0) as f64;
        let made = SyntheticRecording::new(60)
            .requests(100, 400)
            .each_request(|n, r| {
                if n < 3_000 {
                    r.done_at = r.intended_at + 2_000_000;
                }
            })
            .counted("mysql://db", "mysql_global_status_connections", &[], move |s| 20.0 + 2.0 * late(s))
            .counted("mysql://db", "mysql_global_status_threads_connected", &[], move |s| 20.0 + 2.0 * late(s));
        assert_eq!(made.explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        for gone in [CREATED, CURRENT, "mongodb_operation_time_seconds_total"] {
            assert_eq!(made(STORM, 0.9).without(gone).explains(&DEFINITION), None, "{gone}");
        }
    }

    #[test]
    fn a_storm_in_front_of_another_database_is_what_requests_wait_for() {
        // 100 requests a second of 20 ms, and of 220 from 30 s on, while 900 connections come.
        let late = |s: i64| (s - 30).max(0) as f64;
        let made = SyntheticRecording::new(60)
            .requests(100, 220)
            .each_request(|n, r| {
                if n < 3_000 {
                    r.done_at = r.intended_at + 20_000_000;
                }
            })
            .counted("mysql://db", "mysql_global_status_connections", &[], move |s| 20.0 + 30.0 * late(s))
            .counted("mysql://db", "mysql_global_status_threads_connected", &[], move |s| 20.0 + 30.0 * late(s));
        assert!(made.explains(&DEFINITION).is_some_and(|ms| ms > 150.0), "{:?}", made.explains(&DEFINITION));
    }
}
