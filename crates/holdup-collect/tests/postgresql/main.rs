//! The collector against real PostgreSQLs: 13, the system's, and 18.

#![cfg(feature = "postgresql")]

mod advice;
mod catalog;
mod changes;
mod depth;
mod gate;
mod large;
mod lexer;
mod logged;
mod pgbouncer;
mod plans;
mod processes;
mod replica;
mod sick;

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::watch::{Options, collector};
use holdup_recording::rows::Session;
use holdup_recording::{Batch, CoverageState};

use holdup_testing::{Postgres as Server, Which};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Whether a number stands in `text` by itself, and not within a time stamp.
fn has_number(text: &str, number: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == number)
}

fn comment(trace: &str) -> String {
    format!("/*traceparent='00-{trace}-b7ad6b7169203331-01'*/ ")
}

fn watch(address: &str) -> Box<dyn Collector> {
    collector(address, &Options::default()).expect("an address")
}

/// Samples until `enough` says so. What was found costly, as all is on a machine that stalls, is not read again for minutes.
fn until(collector: &mut dyn Collector, what: &str, enough: impl Fn(&Batch) -> bool) -> Batch {
    let deadline = Instant::now() + Duration::from_secs(300);
    let mut all = Batch::default();
    loop {
        let mut batch = Batch::default();
        collector.sample(&mut batch).expect("a sample");
        let found = enough(&batch);
        all.append(batch);
        if found {
            return all;
        }
        assert!(Instant::now() < deadline, "no {what} within 5 min");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_whole_watch_of_13() {
    whole(Which::Fetched(13));
}

#[test]
fn a_whole_watch_of_the_systems() {
    whole(Which::System);
}

#[test]
fn a_whole_watch_of_18() {
    whole(Which::Fetched(18));
}

fn whole(which: Which) {
    let options = &[
        ("shared_preload_libraries", "pg_stat_statements,auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("log_min_duration_statement", "100"),
        ("log_line_prefix", "%m [%p] %q%u@%d/%a "),
        ("track_activity_query_size", "256"),
        ("pg_stat_statements.track_planning", "on"),
        ("track_io_timing", "on"),
    ];
    let Some(server) = Server::of(which, options) else { return };
    server.run(
        "CREATE EXTENSION pg_stat_statements; CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t VALUES (1, 'a'), (2, 'b');
         CREATE USER watcher PASSWORD 's3cr3t-canary'; GRANT pg_monitor TO watcher; CREATE USER blind PASSWORD 's3cr3t-canary';",
    );
    let mut collector = watch(&server.address("watcher", &format!("log={}", server.log().display())));
    let coverage = collector.probe().expect("it can be watched");
    let texts = coverage.iter().find(|part| part.source.ends_with("statement texts")).expect("an entry");
    assert_eq!(
        (texts.state, texts.why.as_ref().is_some_and(|why| why.contains("255 bytes"))),
        (CoverageState::Partial, true)
    );
    let rest: Vec<_> = coverage.iter().filter(|part| part.state != CoverageState::Complete).collect();
    assert_eq!(rest.len(), 1, "{rest:?}");
    sessions(&server, collector.as_mut());
    counters(&server, collector.as_mut());
    log(&server, collector.as_mut());
    settings(collector.as_mut());
    grants(&server);
    ways_in(&server);
}

fn sessions(server: &Server, collector: &mut dyn Collector) {
    let holder = server.begin("BEGIN; UPDATE t SET note = 'canary' WHERE id = 1; SELECT pg_sleep(300); COMMIT;");
    until(collector, "holder", |batch| {
        batch.sessions.iter().any(|row| row.state.as_deref() == Some("Timeout:PgSleep"))
    });
    // Longer than what the server keeps of it, the trace id first.
    let long = format!("{}UPDATE t SET note = 'canary' WHERE id = 1 AND note <> '{}'", comment(TRACE), "x".repeat(500));
    let waiter = server.begin(&long);
    let seen = until(collector, "waiter", |batch| batch.sessions.iter().any(|row| row.true_state == "lock_wait"));
    let wait = seen.sessions.iter().find(|row| row.true_state == "lock_wait").expect("it was seen");
    let held = seen.sessions.iter().rfind(|row| row.state.as_deref() == Some("Timeout:PgSleep")).expect("it was seen");
    assert_eq!((wait.blocked_by, wait.command.as_str()), (Some(held.session_id), "active"));
    assert_eq!(wait.state.as_deref(), Some("Lock:transactionid"));
    assert_eq!(wait.trace_id.as_deref(), Some(TRACE));
    assert!(
        wait.age_ns.is_some_and(|age| age >= 0)
            && wait.client.as_ref().is_some_and(|client| client.starts_with("127.0.0.1:"))
    );
    assert_eq!((wait.user.as_deref(), wait.database.as_deref()), (Some("boss"), Some("postgres")));
    assert_eq!(held.digest_text.as_deref(), Some("SELECT pg_sleep(?)"));
    assert!(seen.sessions.iter().all(|row| row.user.as_deref() != Some("watcher")), "it sees itself");
    let counted = |state: &str| {
        seen.samples.iter().any(|row| {
            row.metric == "postgresql_sessions"
                && row.labels.contains(&[("state", "active"), ("true_state", state)])
                && row.value == 1.0
        })
    };
    assert!(counted("lock_wait") && counted("executing"));
    let texts = format!("{:?}", seen.sessions);
    assert!(!texts.contains("canary") && !texts.contains("xxx"), "{texts}");
    server.run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    holder.stop();
    waiter.end();
    let open = server.begin(&format!("BEGIN; SELECT 4711 AS opened;{}COMMIT;", server.wait_for("opened")));
    // Between BEGIN and the statement it is idle in a transaction as well.
    let is_open = |row: &&Session| row.digest_text.as_deref() == Some("SELECT ? AS opened");
    let is_idle = |row: &&Session| row.true_state == "idle_in_transaction" && is_open(row);
    let seen = until(collector, "open transaction", |batch| batch.sessions.iter().any(|row| is_idle(&row)));
    let row = seen.sessions.iter().find(is_idle).expect("it was seen");
    assert_eq!(row.command, "idle in transaction");
    server.open("opened");
    open.end();
}

fn counters(server: &Server, collector: &mut dyn Collector) {
    for number in 0..5 {
        server.run(&format!("SELECT note FROM t WHERE id IN ({number}, 7)"));
    }
    let digest = holdup_sql::digest("SELECT note FROM t WHERE id IN (1, 2, 3)", holdup_sql::Dialect::PostgreSql);
    let seen = until(collector, "counters of the statement", |batch| {
        batch.statements.iter().any(|row| row.kind == "digest_total" && row.digest == digest && row.calls == 5)
    });
    let row =
        seen.statements.iter().rfind(|row| row.digest == digest && row.kind == "digest_total").expect("it was seen");
    assert_eq!((row.database.as_deref(), row.trace_id.as_deref(), row.rows_sent), (Some("postgres"), None, 2));
    assert!(row.duration_ns > 0);
    // What it asks itself is left out.
    let own = server.run(
        "SELECT regexp_replace(query, '\\s+', ' ', 'g') FROM pg_stat_statements WHERE userid = 'watcher'::regrole AND query ~ 'SELECT'",
    );
    let own: BTreeSet<String> =
        own.lines().map(|query| holdup_sql::digest(query, holdup_sql::Dialect::PostgreSql)).collect();
    assert!(own.len() > 20, "{own:?}");
    let shown = |row: &&holdup_recording::rows::Statement| row.kind == "digest_total" && own.contains(&row.digest);
    assert!(!seen.statements.iter().any(|row| shown(&row)), "{:?}", seen.statements.iter().find(shown));
    // Before version 15 the server's counters of databases come some hundred milliseconds after the transactions.
    until(collector, "counters of the database", |batch| {
        let more_than = |metric: &str, least: f64| {
            batch.samples.iter().any(|row| {
                row.metric == metric
                    && row.labels.get("database").is_none_or(|name| name == "postgres")
                    && row.value > least
            })
        };
        more_than("postgresql_stat_database_xact_commit", 5.0)
            && more_than("postgresql_stat_bgwriter_buffers_alloc", 0.0)
    });
}

fn log(server: &Server, collector: &mut dyn Collector) {
    server.run(&format!("{}SELECT pg_sleep(0.15),\n 'canary';", comment(TRACE)));
    server.run("SELECT count(*), 'of the plan' FROM t;");
    let digests: Vec<String> = ["SELECT pg_sleep(0), ''", "SELECT count(*), '' FROM t"]
        .map(|sql| holdup_sql::digest(sql, holdup_sql::Dialect::PostgreSql))
        .to_vec();
    let mut rows = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(300);
    while !digests.iter().all(|digest| rows.iter().any(|row: &holdup_recording::rows::Statement| row.digest == *digest))
    {
        let mut batch = Batch::default();
        collector.sample(&mut batch).expect("a sample");
        rows.extend(batch.statements.into_iter().filter(|row| row.kind == "execution"));
        assert!(Instant::now() < deadline, "{rows:?} {}", std::fs::read_to_string(server.log()).unwrap_or_default());
        sleep(Duration::from_millis(50));
    }
    let slow: Vec<_> = rows.iter().filter(|row| row.digest == digests[0]).collect();
    assert_eq!(slow.len(), 1, "by its duration or by its plan, not by both: {slow:?}");
    assert_eq!(
        (slow[0].trace_id.as_deref(), slow[0].database.as_deref(), slow[0].calls),
        (Some(TRACE), Some("postgres"), 1)
    );
    assert!(slow[0].duration_ns >= 150_000_000 && slow[0].session_id.is_some_and(|pid| pid > 0));
    let now = holdup_recording::clock::now_ns();
    assert!((now - slow[0].observed_at).abs() < 60_000_000_000, "the log's clock is read wrong");
    assert!(!format!("{rows:?}").contains("canary"));
}

fn settings(collector: &mut dyn Collector) {
    let mut batch = Batch::default();
    collector.settings(&mut batch).expect("settings");
    let value = |name: &str| batch.settings.iter().find(|row| row.name == name).map(|row| row.value.as_str());
    assert_eq!(value("track_activity_query_size"), Some("256B"));
    assert!(value("shared_buffers").is_some() && value("server_version").is_some());
    assert!(value("archive_command").is_none() && value("statement_timeout").is_none());
}

/// What is missing is said with what would give it, and nothing is made up of what can't be seen.
fn grants(server: &Server) {
    let address = server.address("blind", "");
    let refused = watch(&address).probe().expect_err("it may not see others").to_string();
    assert!(refused.contains("GRANT pg_monitor TO blind;") && !refused.contains("canary"), "{refused}");
    let mut partial = collector(&address, &Options { partial: true, ..Options::default() }).expect("an address");
    let coverage = partial.probe().expect("in part");
    assert!(coverage.iter().any(|part| part.source.ends_with(" log") && part.state == CoverageState::Absent));
    assert!(
        coverage.iter().any(|part| part.source.ends_with(" pg_stat_statements") && part.state == CoverageState::Absent)
    );
    let mut batch = Batch::default();
    partial.sample(&mut batch).expect("counters can be read");
    assert!(batch.sessions.is_empty() && batch.statements.is_empty() && !batch.samples.is_empty());
}

fn ways_in(server: &Server) {
    let socket = format!("postgresql://watcher@localhost:{}/postgres?host={}", server.port, server.folder().display());
    watch(&socket).probe().expect("by the socket");
    for (query, words) in [("sslmode=require", "TLS"), ("sslmode=disable&log=/nonexistent/log", "")] {
        let probed = watch(&server.address("watcher", query)).probe();
        match probed {
            Err(error) => assert!(!words.is_empty() && error.to_string().contains(words), "{error}"),
            Ok(coverage) => {
                let log = coverage.iter().find(|part| part.source.ends_with(" log")).expect("an entry");
                assert_eq!((log.state, words), (CoverageState::Absent, ""));
            }
        }
    }
    let nobody = watch(&server.address("nobody", "")).probe().expect_err("no such account").to_string();
    assert!(nobody.contains("nobody") && !nobody.contains("canary"), "{nobody}");
    let closed = watch("postgresql://u:s3cr3t-canary@127.0.0.1:1/x").probe().expect_err("nobody there").to_string();
    assert!(!closed.contains("canary"), "{closed}");
}
