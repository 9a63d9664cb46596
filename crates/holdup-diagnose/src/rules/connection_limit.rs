//! The database refuses new connections because it has reached its limit, in all or for one user.

mod advice;
mod refusals;

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use self::refusals::refusals;
use super::{Doc, Judge, MATTERS, Occurs, Outcome, Role, Rule, RuleFinding, ms, of_failures, thousands, timing};
use crate::case::Case;
use crate::failures::{self, Failed};
use crate::resources::share;
use crate::strength::{CERTAIN, FAIR, STRONG, WEAK};
use holdup_signals::database::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Gauge, Missing, View, Window};

pub const RULE: Rule = Rule {
    cause: "connection_limit",
    occurs: Occurs::Anywhere,
    doc: Doc {
        title: "The database is at its connection limit",
        what: "The server accepts max_connections connections (PostgreSQL: less those reserved for superusers), or a user has reached a separate limit. It refuses each further one at once, with an error: MySQL 1040 or 1203, PostgreSQL SQLSTATE 53300.",
        hurts: "Requests that need a new connection fail, or wait for one that the app already has, while the server has little to do.",
        needs: "The server's connections, its limit, and how many it refused (--watch mysql://… or postgresql://…); which requests failed and when, and for waits the app's pool metrics.",
        predicts: "Connections stand at the limit, Connection_errors_max_connections (MariaDB: at login Aborted_connects) grows, and requests fail meanwhile; or the app's pool stays below its own maximum with requests waiting.",
        clears: "Connections stay below the limit and none was refused; or some were, and hardly any failed request was in flight then.",
        looks_like: "The app's own pool (its maximum is reached, the server's is not); file descriptors (the server does not even accept); a full accept queue (connecting takes long and is not refused).",
        fix: "Fewer connections first: smaller pools, a pooler such as ProxySQL or PgBouncer, idle ones closed; then a higher limit, with memory and file descriptors for it.",
        prove: "The same load again: no connection refused, and connections stay clear of the limit.",
        references: "MySQL Reference Manual: Too many connections, Server Status Variables (Connection_errors_max_connections); MariaDB documentation: max_connections, max_user_connections; PostgreSQL documentation: Connections and Authentication (max_connections, superuser_reserved_connections).",
    },
    judge: Judge::Alone(judge),
};

const POSTGRESQL: &str = "--watch postgresql://USER@HOST:PORT";

/// A sample speaks for this long before and after it, nanoseconds.
const REACH_NS: i64 = 1_000_000_000;

/// Most rows of idle sessions in a sample: with more, the sessions of one user are incomplete.
const IDLE_ROWS: f64 = 100.0;

/// A limit compared with the connections.
struct Limit {
    /// `max_connections`, or `max_user_connections of NAME`.
    name: String,
    /// The setting's own name.
    setting: &'static str,
    /// The limit.
    most: f64,
    /// Most connections at one instant.
    had: f64,
    /// Evidence of the count.
    connected: Evidence,
    /// Refused connections, if the server counts them, with the evidence.
    refused: Option<(f64, Evidence)>,
    /// When it was reached.
    reached: Vec<Window>,
    is_postgresql: bool,
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let limits = if view.sources_of(metrics::postgresql::SESSIONS.name).is_empty() {
        mysql(&view)?
    } else {
        vec![postgresql(&view)?]
    };
    let mut cleared = Vec::new();
    for limit in limits {
        match of_limit(case, &view, &limit)? {
            Outcome::Cleared(evidence) => cleared.extend(evidence),
            found => return Ok(found),
        }
    }
    Ok(Outcome::Cleared(cleared))
}

fn mysql(view: &View<'_>) -> Result<Vec<Limit>, Missing> {
    let connected = view.status_level(metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED)?;
    let refused = view.status(metrics::mysql::GLOBAL_STATUS_CONNECTION_ERRORS_MAX_CONNECTIONS)?;
    let most = view.setting_number("max_connections")?;
    let mut reached = at_or_above(view, metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED.name, most);
    let refusals = view.growths(|_| true, metrics::mysql::GLOBAL_STATUS_CONNECTION_ERRORS_MAX_CONNECTIONS.name, &[]);
    reached.extend(refusals.into_iter().filter(|g| g.delta > 0.0).map(|g| g.window));
    // The server admits one connection more than max_connections, to leave room for a superuser.
    // Any other user is rejected at login, which MariaDB counts as aborted, and MySQL as both.
    let turned_away: f64 = view
        .growths(|_| true, metrics::mysql::GLOBAL_STATUS_ABORTED_CONNECTS.name, &[])
        .iter()
        .filter(|g| reached.iter().any(|r| r.from < g.window.to && g.window.from < r.to))
        .map(|g| g.delta)
        .sum();
    let count = refused.delta.max(turned_away);
    let text = format!(
        "{} connections were refused: {} before login, {} logins aborted while the limit was reached",
        thousands(count),
        thousands(refused.delta),
        thousands(turned_away)
    );
    let refused = (count, refused.evidence(thousands(count), "0", text));
    let text =
        format!("at most {} connections, and max_connections allows {}", thousands(connected.max), thousands(most));
    let mut limits = vec![Limit {
        name: "max_connections".to_owned(),
        setting: "max_connections",
        most,
        had: connected.max,
        connected: connected.evidence(count_text(&connected, most), format!("below {}", thousands(most)), text),
        refused: Some(refused),
        reached,
        is_postgresql: false,
    }];
    // 0 means unlimited.
    if let Ok(of_user) = view.setting_number("max_user_connections")
        && of_user > 0.0
    {
        limits.push(of_one_user(view, of_user)?);
    }
    Ok(limits)
}

/// The user with the most sessions at an instant, compared with the limit per user.
fn of_one_user(view: &View<'_>, most: f64) -> Result<Limit, Missing> {
    let sessions = view.sessions(&["observed_at", "source", "user"])?;
    let mut counts: BTreeMap<(&str, i64), f64> = BTreeMap::new();
    for session in &sessions {
        *counts.entry((session.user.as_deref().unwrap_or_default(), session.observed_at)).or_default() += 1.0;
    }
    let idle = view.gauge(metrics::mysql::SESSIONS.name, &[("true_state", "idle")], DATABASE)?;
    let (user, had) = counts.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or(("", 0.0), |((user, _), n)| (user, *n));
    if had < most && idle.max > IDLE_ROWS {
        return Err(Missing::new(
            format!("all sessions of one user: {} were idle, of which {IDLE_ROWS:.0} were recorded", idle.max),
            "SELECT user, COUNT(*) FROM information_schema.PROCESSLIST GROUP BY user",
        ));
    }
    let at = |at: i64| Window { from: at - REACH_NS, to: at + REACH_NS };
    let reached = counts.iter().filter(|((u, _), n)| *u == user && **n >= most).map(|((_, t), _)| at(*t)).collect();
    let text =
        format!("{user} had at most {} sessions, and max_user_connections allows {}", thousands(had), thousands(most));
    let labels = Labels::new(if sessions.is_empty() { None } else { Some(("user", user)) });
    let observed = format!("{} of {}", thousands(had), thousands(most));
    let connected = if sessions.is_empty() {
        idle.evidence(observed, "", text)
    } else {
        Evidence::new("sessions", "user", labels, view.window, observed, format!("below {}", thousands(most)), text)
    };
    let name = format!("max_user_connections of {user}");
    Ok(Limit {
        name,
        setting: "max_user_connections",
        most,
        had,
        connected,
        refused: None,
        reached,
        is_postgresql: false,
    })
}

fn postgresql(view: &View<'_>) -> Result<Limit, Missing> {
    let number = |name: &str| view.setting(name, POSTGRESQL).ok().and_then(|v| v.parse::<f64>().ok());
    let reserved =
        number("superuser_reserved_connections").unwrap_or(3.0) + number("reserved_connections").unwrap_or(0.0);
    let told = view.gauge(metrics::postgresql::CONNECTIONS_MAX.name, &[], POSTGRESQL).ok().map(|g| g.max);
    let most = told
        .or_else(|| number("max_connections").map(|all| all - reserved))
        .ok_or_else(|| Missing::new("setting max_connections as a number", POSTGRESQL))?;
    // Sessions exclude those of other kinds and holdup's own.
    let metric = [metrics::postgresql::CONNECTIONS.name, metrics::postgresql::SESSIONS.name];
    let metric =
        metric.into_iter().find(|m| !view.sources_of(m).is_empty()).unwrap_or(metrics::postgresql::SESSIONS.name);
    let connected = view.gauge(metric, &[], POSTGRESQL)?;
    let text = format!(
        "at most {} sessions, and max_connections leaves {} beside {reserved:.0} reserved ones",
        thousands(connected.max),
        thousands(most)
    );
    let mut reached = at_or_above(view, metric, most);
    let refusals = refusals(view);
    reached.extend(refusals.iter().map(|(at, _)| Window { from: at - REACH_NS, to: at + REACH_NS }));
    let count: f64 = refusals.iter().map(|(_, count)| count).sum();
    let labels = Labels::new([("kind", "error")]);
    let refused = (count > 0.0).then(|| {
        // With room for more, it was not the server's own limit that was reached.
        let whose = if connected.max < most { ": a role or a database has a limit of its own" } else { "" };
        let text = format!("{} connections were refused, by the server's log{whose}", thousands(count));
        (count, Evidence::new("events", "labels", labels, view.window, thousands(count), "0", text))
    });
    Ok(Limit {
        name: "max_connections".to_owned(),
        setting: "max_connections",
        most,
        had: connected.max,
        connected: connected.evidence(count_text(&connected, most), format!("below {}", thousands(most)), text),
        refused,
        reached,
        is_postgresql: true,
    })
}

fn count_text(connected: &Gauge, most: f64) -> String {
    format!("{} of {}", thousands(connected.max), thousands(most))
}

/// When all series of gauge `metric` together were at `most` or above.
fn at_or_above(view: &View<'_>, metric: &str, most: f64) -> Vec<Window> {
    let mut sums: BTreeMap<(&str, i64), f64> = BTreeMap::new();
    for ((source, _), series) in view.index.series(metric, &[]) {
        for (at, value) in series.iter().filter(|(at, _)| view.window.contains(*at)) {
            *sums.entry((source, *at)).or_default() += value;
        }
    }
    let at = sums.into_iter().filter(|(_, sum)| *sum >= most);
    at.map(|((_, at), _)| Window { from: at - REACH_NS, to: at + REACH_NS }).collect()
}

fn of_limit(case: &Case<'_>, view: &View<'_>, limit: &Limit) -> Result<Outcome, Missing> {
    let mut evidence = vec![limit.connected.clone()];
    let refused = limit.refused.as_ref();
    evidence.extend(refused.map(|refused| refused.1.clone()));
    if limit.reached.is_empty() {
        return Ok(Outcome::Cleared(evidence));
    }
    let most = refused.map_or(f64::INFINITY, |refused| refused.0);
    let share_of_failed = failures::failed_share(case, &limit.reached);
    let failed = Failed::of(share_of_failed.and_then(|share| failures::at_most(case, share, most)))?;
    let are_refused = refused.is_some_and(|refused| refused.0 > 0.0);
    // As many connections as are allowed may be just those that are needed.
    if let (Some(missing), false) = (&failed.uncounted, are_refused) {
        return Err(missing.clone());
    }
    let waited = waited(case, view);
    if failed.is_small() && share(case, waited.as_ref().map_or(0.0, |w| w.0)) < MATTERS {
        return Ok(Outcome::Cleared(evidence));
    }
    if failed.share > 0.0 {
        let did = "were in flight while the limit was reached, with a refused connection for each";
        evidence.push(of_failures(case, failed.share, did));
    }
    evidence.push(view.variable_evidence(
        limit.setting,
        "more than are needed at once",
        format!("{} is {}", limit.name, thousands(limit.most)),
    ));
    let explains_ms = waited.as_ref().map_or(0.0, |w| w.0);
    evidence.extend(waited.map(|w| w.1));
    let found = RuleFinding {
        explains_ms,
        evidence,
        weights: vec![if are_refused { CERTAIN } else { FAIR }, STRONG * failed.share, WEAK],
        fixes: advice::fixes(view, limit),
        prove: format!("Run the same scenario again: connections stay below {}, and none is refused.", limit.name),
        role: Role::Root,
    };
    Ok(Outcome::failing(found, failed))
}

/// Milliseconds that a request waited for a connection although its pool was not full.
fn waited(case: &Case<'_>, view: &View<'_>) -> Option<(f64, Evidence)> {
    let wait = view.mean(timing::POOL_WAIT, &[], timing::APP_METRICS).ok()?;
    let most = view.gauge(metrics::app::DB_CLIENT_CONNECTION_MAX.name, &[], timing::APP_METRICS).ok()?;
    let open = view.gauge(metrics::app::DB_CLIENT_CONNECTION_COUNT.name, &[], timing::APP_METRICS).ok()?;
    let per_request = wait.ms * wait.count / case.completed_in(view.window).ok()?.max(1.0);
    (per_request > 0.0 && open.max < most.mean).then(|| {
        let text = format!(
            "a request waited {} for a connection of a pool that had {:.0} of at most {:.0}",
            ms(per_request),
            open.max,
            most.mean
        );
        (per_request, wait.evidence(ms(per_request), "near 0 ms", text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_recording::rows::Event;

    const DB: &str = "mysql://db";

    /// 50 requests of 20 ms a second, of which every second one fails; `connected` of 20 connections, `refused` a second.
    fn server(connected: f64, refused: f64) -> SyntheticRecording {
        SyntheticRecording::new(12)
            .requests(50, 20)
            .each_request(|n, r| r.outcome = if n % 2 == 0 { "ok" } else { "http_status" }.into())
            .gauge(DB, "mysql_global_status_threads_connected", &[], connected)
            .counter(DB, "mysql_global_status_connection_errors_max_connections", &[], refused)
            .setting(DB, "max_connections", "20")
            .setting(DB, "max_user_connections", "0")
    }

    #[test]
    fn refused_connections_are_why_requests_fail() {
        let made = server(20.0, 30.0);
        assert!(made.fails(&RULE).unwrap() > 0.95);
        let diagnosis = made.diagnose();
        assert_eq!(diagnosis.culprit.as_deref(), Some("connection_limit"), "{diagnosis:#?}");
        let fix = &diagnosis.findings[0].fixes.last().unwrap();
        assert_eq!(fix.command.as_deref(), Some("SET GLOBAL max_connections = 100;"));
    }

    #[test]
    fn logins_that_are_turned_away_count_and_wrong_passwords_do_not() {
        let aborted = |connected| server(connected, 0.1).counter(DB, "mysql_global_status_aborted_connects", &[], 30.0);
        assert!(aborted(20.0).fails(&RULE).unwrap() > 0.95);
        assert_eq!(
            aborted(12.0)
                .without("mysql_global_status_connection_errors_max_connections")
                .counter(DB, "mysql_global_status_connection_errors_max_connections", &[], 0.0)
                .fails(&RULE),
            Some(0.0)
        );
    }

    #[test]
    fn refused_connections_count_although_requests_do_not() {
        let app = |made: SyntheticRecording| {
            made.counter("prometheus:app", "http_server_request_duration_seconds_count", &[], 50.0).counter(
                "prometheus:app",
                "http_server_request_duration_seconds_sum",
                &[],
                0.5,
            )
        };
        let watched = |connected: f64, refused: f64| {
            app(SyntheticRecording::new(12))
                .gauge(DB, "mysql_global_status_threads_connected", &[], connected)
                .counter(DB, "mysql_global_status_connection_errors_max_connections", &[], refused)
                .setting(DB, "max_connections", "20")
        };
        let refused = watched(20.0, 30.0).diagnose();
        assert_eq!(refused.culprit.as_deref(), Some(RULE.cause), "{refused:#?}");
        // A pool as large as the limit may be full and refuse none.
        for quiet in [watched(12.0, 0.0), watched(20.0, 0.0)] {
            assert_eq!(quiet.diagnose().culprit, None);
        }
    }

    #[test]
    fn failures_of_others_clear_it() {
        // Room, nothing refused.
        assert_eq!(server(12.0, 0.0).fails(&RULE), Some(0.0));
        // At the limit, with one connection refused in a thousand failures.
        assert_eq!(server(20.0, 0.1).fails(&RULE), Some(0.0));
    }

    #[test]
    fn a_pool_that_cannot_grow_makes_its_requests_wait() {
        let app = "prometheus:http://app";
        let made = SyntheticRecording::new(12)
            .requests(50, 400)
            .gauge(DB, "mysql_global_status_threads_connected", &[], 20.0)
            .counter(DB, "mysql_global_status_connection_errors_max_connections", &[], 5.0)
            .setting(DB, "max_connections", "20")
            .counter(app, "db_client_connection_wait_time_seconds_sum", &[], 15.0)
            .counter(app, "db_client_connection_wait_time_seconds_count", &[], 50.0)
            .gauge(app, "db_client_connection_max", &[], 40.0)
            .gauge(app, "db_client_connection_count", &[("state", "used")], 19.0);
        assert!((made.explains(&RULE).unwrap() - 300.0).abs() < 30.0);
        assert_eq!(
            made.gauge(app, "db_client_connection_count", &[("state", "idle")], 21.0).explains(&RULE),
            Some(0.0)
        );
    }

    #[test]
    fn one_users_limit_and_postgresqls_reserved_ones_count() {
        let sessions = |user: &str| {
            let user = user.to_owned();
            (0..=12 * 5).map(move |i| holdup_recording::rows::Session {
                observed_at: i / 5 * 1_000_000_000,
                source: DB.into(),
                session_id: i % 5,
                user: Some(user.as_str().into()),
                true_state: "executing".into(),
                ..Default::default()
            })
        };
        let made = server(12.0, 0.0).setting(DB, "max_user_connections", "5").session_rows(sessions("shop").collect());
        assert!(made.fails(&RULE).unwrap() > 0.95);
        assert_eq!(
            server(12.0, 0.0)
                .setting(DB, "max_user_connections", "9")
                .session_rows(sessions("shop").collect())
                .fails(&RULE),
            Some(0.0)
        );

        let pg = |count| {
            SyntheticRecording::new(12)
                .requests(50, 20)
                .each_request(|n, r| r.outcome = if n % 2 == 0 { "ok" } else { "http_status" }.into())
                .gauge("postgresql://db", "postgresql_sessions", &[("true_state", "idle")], count)
                .setting("postgresql://db", "max_connections", "20")
                .setting("postgresql://db", "superuser_reserved_connections", "3")
        };
        assert!(pg(17.0).fails(&RULE).unwrap() > 0.95);
        assert_eq!(pg(15.0).fails(&RULE), Some(0.0));
        assert_eq!(pg(17.0).without_setting("max_connections").fails(&RULE), None);
        // What it says itself goes before what settings make of it.
        let told = |most| pg(15.0).gauge("postgresql://db", "postgresql_connections_max", &[], most);
        assert_eq!(told(50.0).fails(&RULE), Some(0.0));
        assert!(told(15.0).fails(&RULE).unwrap() > 0.95);
        let logged = pg(12.0).tables(|tables| {
            tables.events.present = true;
            tables.events.rows = (0..12)
                .map(|s| Event {
                    observed_at: s * 1_000_000_000,
                    source: "postgresql://db".into(),
                    kind: "error".into(),
                    text: String::new(),
                    labels: Labels::new([("sqlstate", "53300"), ("count", "25")]),
                })
                .collect();
        });
        assert!(logged.fails(&RULE).unwrap() > 0.9, "by the log");
        // The log has no code, and the server has room: a role has reached its own limit.
        let in_words = logged.tables(|tables| {
            tables.events.rows.iter_mut().for_each(|event| {
                event.labels = Labels::new([("error", "too many connections"), ("count", "25")]);
            });
        });
        assert!(in_words.fails(&RULE).unwrap() > 0.9, "by its words");
        let fixes = in_words.diagnose().findings.remove(0).fixes;
        assert!(
            fixes.iter().any(|fix| fix.command.as_deref().is_some_and(|c| c.contains("rolconnlimit"))),
            "{fixes:?}"
        );
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        for metric in ["mysql_global_status_threads_connected", "mysql_global_status_connection_errors_max_connections"]
        {
            assert_eq!(server(20.0, 30.0).without(metric).fails(&RULE), None, "{metric}");
        }
        assert_eq!(server(20.0, 30.0).without_setting("max_connections").fails(&RULE), None);
    }
}
