//! The database, or nginx in front of the app, refuses new connections because it has reached its
//! limit, in all or for one user.

mod advice;
mod signs;

use holdup_recording::metrics;

use super::parts::cloud;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Magnitude, Outcome, Role, Source::Of, Source::With,
    Trait, ms, of_failures, thousands, timing,
};
use crate::case::Case;
use crate::failures::{self, Failed};
use crate::next_command::NextCommand;
use crate::resources::connection_limits::ConnectionLimit;
use crate::resources::share;
use crate::strength::{CERTAIN, FAIR, STRONG, WEAK};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Queue],
    follows_from: &[
        // More connections are open at once if each is used longer; the server refuses them by their number.
        Edge {
            from: &[
                &[Of(Cause::ThreadPoolQueue), Of(Cause::TicketsExhausted), Of(Cause::LockContention)],
                &[With(Trait::OnTheWay)],
                &[Of(Cause::ReplicationWait)],
                &[With(Trait::LongStatement), With(Trait::FullCpu)],
                &[Of(Cause::ConnectionStorm)],
            ],
            magnitude: Magnitude::Measured(|case| Some(case.excess_ms())),
            is_added: false,
        },
    ],
    signs: Some(signs::find),
    ..Definition::new(Cause::ConnectionLimit, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A database or a proxy is at its connection limit",
    what: "The server accepts max_connections connections (PostgreSQL: less those reserved for superusers), or a user has reached a separate limit. It refuses each further one at once, with an error: MySQL 1040 or 1203, PostgreSQL SQLSTATE 53300. nginx accepts a connection for which none of its worker_connections is free, and closes it at once.",
    hurts: "Requests that need a new connection fail, or wait for one that the app already has, while the server has little to do.",
    needs: "The server's connections, its limit, and how many it refused (--watch mysql://…, postgresql://… or mongodb://…; nginx:URL); which requests failed and when, and for waits the app's pool metrics.",
    predicts: "Connections stand at the limit, Connection_errors_max_connections (MariaDB: at login Aborted_connects) grows, or nginx handles fewer connections than it accepts, and requests fail meanwhile; or the app's pool stays below its own maximum with requests waiting.",
    clears: "Connections stay below the limit and none was refused; or some were, and hardly any failed request was in flight then.",
    looks_like: "The app's own pool (its maximum is reached, the server's is not); file descriptors (the server does not even accept); a full accept queue (connecting takes long and is not refused).",
    fix: "Fewer connections first: smaller pools, a pooler such as ProxySQL or PgBouncer, idle ones closed; then a higher limit, with memory and file descriptors for it.",
    prove: "The same load again: no connection refused, and connections stay clear of the limit.",
    references: "MySQL Reference Manual: Too many connections, Server Status Variables (Connection_errors_max_connections); MariaDB documentation: max_connections, max_user_connections; PostgreSQL documentation: Connections and Authentication (max_connections, superuser_reserved_connections); nginx documentation: ngx_http_stub_status_module (accepts, handled), worker_connections.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::statement(
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Max_used_connections', 'Connection_errors_max_connections'); SHOW GLOBAL VARIABLES LIKE 'max_connections';",
    "SELECT count(*), current_setting('max_connections') FROM pg_stat_activity;",
    "whether connections are at their limit",
);

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if let Some(cleared) = cloud::connections(case) {
        return Ok(cleared);
    }
    let view = case.slow();
    let mut cleared = Vec::new();
    for limit in ConnectionLimit::all(&view)? {
        match of_limit(case, &view, &limit)? {
            Outcome::Cleared(evidence) => cleared.extend(evidence),
            found => return Ok(found),
        }
    }
    Ok(Outcome::Cleared(cleared))
}

fn of_limit(case: &Case<'_>, view: &View<'_>, limit: &ConnectionLimit) -> Result<Outcome, Missing> {
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
    if limit.most.is_finite() && view.setting(limit.setting, "").is_ok() {
        let text = format!("{} is {}", limit.name, thousands(limit.most));
        evidence.push(view.variable_evidence(limit.setting, "more than are needed at once", text));
    }
    let explains_ms = waited.as_ref().map_or(0.0, |w| w.0);
    evidence.extend(waited.map(|w| w.1));
    let found = CauseFinding {
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
    use holdup_recording::Labels;
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
        assert!(made.fails(&DEFINITION).unwrap() > 0.95);
        let diagnosis = made.diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::ConnectionLimit), "{diagnosis:#?}");
        let fix = &diagnosis.findings[0].fixes.last().unwrap();
        assert_eq!(fix.command.as_deref(), Some("SET GLOBAL max_connections = 100;"));
    }

    #[test]
    fn mongodb_says_how_many_more_it_would_accept() {
        let made = |left: f64| {
            let document = "mongodb://db";
            SyntheticRecording::new(12)
                .requests(50, 20)
                .each_request(|n, r| r.outcome = if n % 2 == 0 { "ok" } else { "http_status" }.into())
                .gauge(document, "mongodb_server_status_connections_current", &[], 800.0)
                .gauge(document, "mongodb_server_status_connections_available", &[], left)
                .counter(document, "mongodb_server_status_connections_rejected", &[], 30.0)
        };
        assert!(made(0.0).fails(&DEFINITION).is_some_and(|share| share > 0.95), "{:?}", made(0.0).fails(&DEFINITION));
        assert_eq!(made(400.0).fails(&DEFINITION), Some(0.0));
        assert_eq!(made(0.0).without("mongodb_server_status_connections_available").fails(&DEFINITION), None);
    }

    #[test]
    fn logins_that_are_turned_away_count_and_wrong_passwords_do_not() {
        let aborted = |connected| server(connected, 0.1).counter(DB, "mysql_global_status_aborted_connects", &[], 30.0);
        assert!(aborted(20.0).fails(&DEFINITION).unwrap() > 0.95);
        assert_eq!(
            aborted(12.0)
                .without("mysql_global_status_connection_errors_max_connections")
                .counter(DB, "mysql_global_status_connection_errors_max_connections", &[], 0.0)
                .fails(&DEFINITION),
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
        assert_eq!(refused.culprit, Some(DEFINITION.cause), "{refused:#?}");
        // A pool as large as the limit may be full and refuse none.
        for quiet in [watched(12.0, 0.0), watched(20.0, 0.0)] {
            assert_eq!(quiet.diagnose().culprit, None);
        }
    }

    /// nginx with room for 20 connections, which accepts 50 a second and handles `handled` of them.
    fn proxy(handled: f64) -> SyntheticRecording {
        let source = "nginx:http://proxy";
        SyntheticRecording::new(12)
            .requests(50, 20)
            .each_request(|n, r| r.outcome = if n % 2 == 0 { "ok" } else { "connection_reset" }.into())
            .gauge(source, "nginx_active_connections", &[], 20.0)
            .gauge(source, "nginx_writing_connections", &[], 15.0)
            .counter(source, "nginx_accepted_connections_total", &[], 50.0)
            .counter(source, "nginx_handled_connections_total", &[], handled)
    }

    #[test]
    fn a_proxy_that_closes_what_it_accepted_has_no_slot_left() {
        assert!(proxy(25.0).fails(&DEFINITION).unwrap() > 0.95);
        let diagnosis = proxy(25.0).diagnose();
        assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{diagnosis:#?}");
        let fixes = &diagnosis.findings[0].fixes;
        assert!(
            fixes[0].text.contains("15 of 20 connections") && fixes[1].text.contains("worker_connections"),
            "{fixes:?}"
        );
        // It handles all that it accepts, and nothing says how the database is.
        assert_eq!(proxy(50.0).fails(&DEFINITION), None);
        let beside = |handled: f64| {
            proxy(handled)
                .gauge(DB, "mysql_global_status_threads_connected", &[], 12.0)
                .counter(DB, "mysql_global_status_connection_errors_max_connections", &[], 0.0)
                .setting(DB, "max_connections", "20")
        };
        assert_eq!(beside(50.0).fails(&DEFINITION), Some(0.0), "requests fail of something else");
        assert_eq!(beside(49.9).fails(&DEFINITION), Some(0.0), "hardly any was closed");
        assert!(beside(25.0).fails(&DEFINITION).unwrap() > 0.95);
    }

    #[test]
    fn failures_of_others_clear_it() {
        // Room, nothing refused.
        assert_eq!(server(12.0, 0.0).fails(&DEFINITION), Some(0.0));
        // At the limit, with one connection refused in a thousand failures.
        assert_eq!(server(20.0, 0.1).fails(&DEFINITION), Some(0.0));
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
        assert!((made.explains(&DEFINITION).unwrap() - 300.0).abs() < 30.0);
        assert_eq!(
            made.gauge(app, "db_client_connection_count", &[("state", "idle")], 21.0).explains(&DEFINITION),
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
        assert!(made.fails(&DEFINITION).unwrap() > 0.95);
        assert_eq!(
            server(12.0, 0.0)
                .setting(DB, "max_user_connections", "9")
                .session_rows(sessions("shop").collect())
                .fails(&DEFINITION),
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
        assert!(pg(17.0).fails(&DEFINITION).unwrap() > 0.95);
        assert_eq!(pg(15.0).fails(&DEFINITION), Some(0.0));
        assert_eq!(pg(17.0).without_setting("max_connections").fails(&DEFINITION), None);
        // What it says itself goes before what settings make of it.
        let told = |most| pg(15.0).gauge("postgresql://db", "postgresql_connections_max", &[], most);
        assert_eq!(told(50.0).fails(&DEFINITION), Some(0.0));
        assert!(told(15.0).fails(&DEFINITION).unwrap() > 0.95);
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
        assert!(logged.fails(&DEFINITION).unwrap() > 0.9, "by the log");
        // The log has no code, and the server has room: a role has reached its own limit.
        let in_words = logged.tables(|tables| {
            tables.events.rows.iter_mut().for_each(|event| {
                event.labels = Labels::new([("error", "too many connections"), ("count", "25")]);
            });
        });
        assert!(in_words.fails(&DEFINITION).unwrap() > 0.9, "by its words");
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
            assert_eq!(server(20.0, 30.0).without(metric).fails(&DEFINITION), None, "{metric}");
        }
        assert_eq!(server(20.0, 30.0).without_setting("max_connections").fails(&DEFINITION), None);
    }
}
