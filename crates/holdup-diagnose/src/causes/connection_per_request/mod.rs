//! The app connects to the database for each request instead of keeping connections.

mod signs;

use super::parts::opened;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, ms, timing};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::is_too_small;
use crate::resources::new_connections::{DATABASE, EACH, NewConnections, waited_longer_ms};
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_signals::Missing;
use holdup_signals::client::latency::Origin;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    signs: Some(signs::find),
    bound: Some(opened::bound),
    ..Definition::new(Cause::ConnectionPerRequest, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The app connects to the database for each request",
    what: "The app opens a connection to the database for a request and closes it afterwards, although it kept connections before: its pool is off, too small to keep what it opens (a minimum of 0, a short idle timeout), or throws away connections that fail a check.",
    hurts: "Each request waits for TCP's handshake, for TLS, for the login's round trips, and for the server to start a process or a thread and fill its caches. On a longer way each round trip counts; under load the server spends its CPU on logins, and the client's ports run out.",
    needs: "How many connections the database opened (--watch mysql://…, mongodb://…, or postgresql://… with PostgreSQL 14 or later), and a baseline window. The app's pool metrics give the time.",
    predicts: "About one connection is opened for each request, hardly any were in the baseline window, and the wait for a connection, or time in the app outside of statements, grew by most of the excess.",
    clears: "Hardly more connections are opened for each request than in the baseline window, or the wait for a connection is a small part of the delay.",
    looks_like: "A pool that fills up at the start of a rush: it opens as many connections as it may, once. An exhausted pool: requests wait for others' connections, and none is opened.",
    fix: "Keep connections: turn the pool on, give it a minimum and a longer idle timeout, or put a pooler in front of the database.",
    prove: "The same load again: the database's count of connections hardly grows.",
    references: "MySQL manual: Connection Management, status variable Connections; PostgreSQL manual: pg_stat_database.sessions, Message Flow (Start-up); RFC 9293 (TCP's handshake).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand {
    seconds: 10,
    ..NextCommand::statement(
        "SHOW GLOBAL STATUS LIKE 'Connections'; SELECT SLEEP(10); SHOW GLOBAL STATUS LIKE 'Connections';",
        "SELECT sum(sessions) FROM pg_stat_database; SELECT pg_sleep(10); SELECT sum(sessions) FROM pg_stat_database;",
        "how many connections are opened, beside the requests of the same time",
    )
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let baseline =
        case.baseline().ok_or_else(|| Missing::new("a baseline window of the connections opened", DATABASE))?;
    let (opened, before) = (NewConnections::measure(case, &view)?, NewConnections::measure(case, &baseline)?);
    // What waits for a connection is not in the database's own account of its operations.
    if case.origin == Origin::DatabaseStatements {
        return Err(Missing::new("response time in front of the database", timing::APP_METRICS));
    }
    let (waited_ms, by_pool) = waited_longer_ms(case, &view, &baseline);
    let text = format!(
        "the database opened {:.2} connections for each request, {:.2} in the baseline window",
        opened.each, before.each
    );
    let expected = format!("{:.2}", before.each);
    let mut evidence = vec![opened.counter.evidence(format!("{:.2} a request", opened.each), expected, text)];
    if opened.each - before.each < EACH || case.asks_statements() || is_too_small(case, waited_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    let what = if by_pool { "for a connection" } else { "in the app, outside of statements" };
    let text = format!("a request spent {} more {what} than in the baseline window", ms(waited_ms));
    evidence.push(opened.counter.evidence(ms(waited_ms), "about 0 ms", text));
    let fix = Fix::advice;
    Ok(Outcome::Found(CauseFinding {
        explains_ms: waited_ms,
        evidence,
        weights: vec![STRONG, if by_pool { FAIR } else { WEAK }],
        fixes: vec![
            fix(
                "Turn the app's connection pool on, and let it keep as many idle connections as it uses.",
                Some("Each open connection takes memory of the server."),
            ),
            fix(
                "Or put a pooler in front of the database (PgBouncer, ProxySQL).",
                Some("Sessions share connections: prepared statements and settings of a session need care."),
            ),
        ],
        prove: "Run the same scenario again: the database's count of connections hardly grows.".to_owned(),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 50 requests a second, of 20 ms and from the twelfth second on of 220 ms; from then on the server opens `opened`
    /// connections a second, and a request waits `waited_ms` for one.
    fn made(opened: f64, waited_ms: f64) -> SyntheticRecording {
        made_on(("mysql://db", "mysql_global_status_connections"), opened, waited_ms)
    }

    fn made_on((database, counter): (&str, &str), opened: f64, waited_ms: f64) -> SyntheticRecording {
        let app = "prometheus:http://app";
        let late = |s: i64| (s - 12).max(0) as f64;
        SyntheticRecording::new(24)
            .requests(50, 220)
            .each_request(|n, r| {
                if n < 600 {
                    r.done_at = r.intended_at + 20_000_000;
                }
            })
            .counted(database, counter, &[], move |s| 20.0 + opened * late(s))
            .counter(app, "db_client_connection_wait_time_seconds_count", &[], 50.0)
            .counted(app, "db_client_connection_wait_time_seconds_sum", &[], move |s| 50.0 * waited_ms / 1e3 * late(s))
    }

    #[test]
    fn a_connection_for_each_request_is_its_wait() {
        let found = made(50.0, 190.0).explains(&DEFINITION).unwrap();
        assert!((found - 190.0).abs() < 20.0, "{found}");
        // Without the pool's metrics, all of the excess at most.
        let unreported = made(50.0, 190.0).tables(|t| t.samples.rows.retain(|s| !s.metric.starts_with("db_client")));
        let unreported = unreported.explains(&DEFINITION).unwrap();
        assert!((unreported - 200.0).abs() < 10.0, "{unreported}");
    }

    #[test]
    fn a_pool_that_fills_or_waits_opens_few() {
        assert_eq!(made(2.0, 190.0).explains(&DEFINITION), Some(0.0), "24 connections in all");
        assert!(made(50.0, 2.0).explains(&DEFINITION).is_none_or(|ms| ms < 1.0), "it costs little");
        assert_eq!(made(50.0, 190.0).without("mysql_global_status_connections").explains(&DEFINITION), None);
        let document = ("mongodb://db", "mongodb_server_status_connections_total_created");
        assert!(made_on(document, 50.0, 190.0).explains(&DEFINITION).is_some_and(|ms| ms > 170.0));
    }
}
