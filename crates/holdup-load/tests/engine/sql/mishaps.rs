//! What can go wrong with a database, before the load and in the midst of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use holdup_load::engine::Engine;
use holdup_recording::clock;
use holdup_recording::rows::Request;
use holdup_testing::PASSWORD;
use holdup_testing::lab::MariaDb;

use super::{Database, at, await_nobody, count, read, run};
use crate::play::{age_ms, keep_going, outcomes, play, play_until};
use crate::servers::{http1, server as little_server};

const OPERATION: &str = "operations: [{name: op, query: SELECT 1}]";

pub fn all<D: Database + Send + Sync>(server: &mut D) {
    refused_at_first(server);
    over_tls(server);
    full(server);
    slow(server);
    killed(server);
}

/// What a scenario against `target` says when it begins.
fn refusal(target: &str) -> String {
    let scenario = at(target, &format!("load: {{rate: 1, duration: 1s}}\n{OPERATION}"));
    match Engine::prepare(&scenario) {
        Ok(_) => panic!("{target}: nothing was wrong"),
        Err(error) => error.to_string(),
    }
}

fn refused_at_first<D: Database>(server: &D) {
    let variable = if D::IS_MYSQL { "HOLDUP_MYSQL_PASSWORD" } else { "HOLDUP_POSTGRES_PASSWORD" };
    for wrong in ["wr0ng-canary", ""] {
        let said = refusal(&server.target("app", wrong));
        assert!(said.contains(variable) && said.contains("app@127.0.0.1"), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
    let said = refusal(&server.nowhere());
    assert!(said.contains("nowhere") && said.contains("slash") && !said.contains(variable), "{said}");
    // All the same: each is counted.
    let scenario = keep_going(at(
        &server.target("app", "wrong"),
        &format!("load: {{rate: 20, duration: 500ms, connections: 3}}\n{OPERATION}"),
    ));
    let played = play(&scenario, None);
    played.all("login_failed");
    let code = if D::IS_MYSQL { "1045" } else { "28P01" };
    assert!(played.summary.refusals[0].2.starts_with(code), "{:?}", played.summary.refusals);
}

/// A port where HTTP is spoken. It waits for words of the other, as some servers do, so that it takes a while.
pub fn wrong_port(target: &str) {
    let http = little_server(|stream| http1::answer(stream, http1::OK, || ()));
    let (host, _) = target.rsplit_once(':').unwrap();
    let said = refusal(&format!("{host}:{http}/lab"));
    let system = if target.starts_with("mysql") { "MySQL or MariaDB" } else { "PostgreSQL" };
    assert!(said.contains(system) && !said.contains(PASSWORD), "{said}");
}

fn over_tls<D: Database>(server: &D) {
    let target = format!("{}?tls=on", server.target("app", PASSWORD));
    let steps = if D::IS_MYSQL {
        "{name: op, query: \"SHOW STATUS LIKE 'Ssl_cipher'\", check: [column Value contains \"_\"]}"
    } else {
        "{name: op, query: 'SELECT ssl::text AS ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()', check: column ssl == true}"
    };
    let large = if D::IS_MYSQL { "SELECT REPEAT(?, 3000000)" } else { "SELECT repeat(?, 3000000)" };
    let rest = format!(
        "http: {{tls: {{ca: {}}}}}\nload: {{rate: 100, duration: 1s, connections: 5}}\noperations:\n  - {steps}\n  - {{name: large, query: '{large}', params: [y]}}",
        server.certificate().display()
    );
    let played = play(&at(&target, &rest), None);
    played.all("ok");
    assert_eq!(played.offered(), 100);
    assert!(played.rows.iter().all(|row| row.operation != "large" || row.response_bytes > 3_000_000));
    // In the clear it is not encrypted, which the same check sees.
    let clear = play(&at(&server.target("app", PASSWORD), &rest), None);
    assert!(count(&clear, "op", "check_failed") > 40 && count(&clear, "op", "ok") == 0, "{:?}", clear.outcomes());
    // Nobody has signed it.
    let said = refusal(&target);
    assert!(said.contains("certificate") && said.contains("--tls-ca") && !said.contains(PASSWORD), "{said}");
    let untrusted = keep_going(at(&target, &format!("load: {{rate: 20, duration: 500ms}}\n{OPERATION}")));
    play(&untrusted, None).all("tls_certificate");
    let insecure = "http: {tls: {insecure: true}}";
    play(&at(&target, &format!("{insecure}\nload: {{users: 3, iterations: 30, duration: 9s}}\n{OPERATION}")), None)
        .all("ok");
}

/// It takes fewer connections than the load has.
fn full<D: Database>(server: &D) {
    let mut boss = server.boss();
    let (mut limit, code) = if D::IS_MYSQL {
        ("SET GLOBAL max_connections = 10".to_owned(), "1040")
    } else {
        boss.query("DROP ROLE IF EXISTS reader").done();
        boss.query(&format!("CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 9")).done();
        (String::new(), "53300")
    };
    if !limit.is_empty() {
        boss.query(&limit).done();
    }
    // Users of a closed model: those who get in go on, the others keep trying.
    let target = server.target("reader", PASSWORD);
    let sleep = if D::IS_MYSQL { "SELECT SLEEP(0.01)" } else { "SELECT pg_sleep(0.01)" };
    let operation = format!("operations: [{{name: op, query: {sleep}}}]");
    let played = play(&at(&target, &format!("load: {{users: 14, duration: 1s}}\n{operation}")), None);
    let (well, ill) = (count(&played, "op", "ok"), count(&played, "op", "login_failed"));
    assert!(well > 10 && (4..=14 * 11).contains(&ill), "{:?}", played.outcomes());
    assert_eq!(well + ill, played.offered());
    assert!(played.summary.refusals[0].2.starts_with(code), "{:?}", played.summary.refusals);
    // Those who never got in are seen in the rows as what they are.
    let rows = outcomes(&played.rows);
    assert!(rows["login_failed"] as u64 == ill && played.rows.iter().all(|r| r.outcome == "ok" || r.sent_at.is_none()));
    limit = limit.replace("10", "151");
    if !limit.is_empty() {
        boss.query(&limit).done();
    }
}

/// One that takes longer than the timeout: the connection is replaced, and the next ones work.
fn slow<D: Database>(server: &D) {
    let sleep = if D::IS_MYSQL { "SELECT SLEEP(5)" } else { "SELECT pg_sleep(5)" };
    let played = run(
        server,
        &format!(
            "
load: {{users: 2, iterations: 2, duration: 60s, timeout: 2s}}
steps:
  - {{name: quick, query: SELECT 1}}
  - {{name: slow, query: {sleep}, on_failure: go_on}}
  - {{name: next, query: SELECT 1}}
"
        ),
    );
    for (operation, outcome) in [("quick", "ok"), ("slow", "timeout"), ("next", "ok")] {
        assert_eq!(count(&played, operation, outcome), 2, "{operation}: {:?}", played.outcomes());
    }
    for row in played.rows.iter().filter(|row| row.operation == "slow") {
        assert!(age_ms(row) >= 2_000.0, "{row:?}");
    }
    // The server may still be at those that were given up; it is waited for.
    await_nobody(server);
}

/// It goes down in the midst and comes up again: every statement is counted, and the load finds back.
fn killed<D: Database + Send + Sync>(server: &mut D) {
    let scenario = read(server, &format!("load: {{rate: 200, duration: 300s, connections: 5}}\n{OPERATION}"));
    let stop = AtomicBool::new(false);
    let (played, up_again) = thread::scope(|scope| {
        let load = scope.spawn(|| play_until(&scenario, &stop));
        thread::sleep(Duration::from_millis(700));
        server.kill();
        thread::sleep(Duration::from_millis(300));
        // Until it answers, however long that takes.
        server.restart();
        let up_again = clock::now_ns();
        thread::sleep(Duration::from_secs(1));
        stop.store(true, Ordering::Relaxed);
        (load.join().unwrap(), up_again)
    });
    let counts = played.outcomes();
    let known = ["ok", "connect_failed", "connection_closed", "connection_reset", "login_failed", "bad_response"];
    assert!(counts.keys().all(|kind| known.contains(&kind.as_str())), "{counts:?}");
    assert!(counts["connect_failed"] > 0, "{counts:?}");
    let is_well = |row: &&Request| row.outcome == "ok" && row.intended_at > up_again;
    assert!(played.rows.iter().any(|row| is_well(&row)), "it is up again: {counts:?}");
}

/// A server that stands for a second while statements are due at a rate: they wait for what is left of it, and that is
/// what is reported. The arithmetic is that of the test of HTTP.
pub fn stopped(server: &MariaDb) {
    const RATE: f64 = 200.0;
    const LENGTH: f64 = 4.0;
    let scenario = read(server, &format!("load: {{rate: {RATE}, duration: {LENGTH}s, connections: 10}}\n{OPERATION}"));
    let played = thread::scope(|scope| {
        let load = scope.spawn(|| play(&scenario, None));
        thread::sleep(Duration::from_millis(1_500));
        server.signal(libc::SIGSTOP);
        thread::sleep(Duration::from_secs(1));
        server.signal(libc::SIGCONT);
        load.join().unwrap()
    });
    played.all("ok");
    let operation = played.operation();
    assert_eq!(operation.offered, (RATE * LENGTH) as u64);
    // Of 1 s in 4, the slowest share q waits for at least 1 s - q x 4 s. A busy machine makes it longer and never shorter.
    for q in [0.0, 0.01, 0.05, 0.10] {
        let measured = operation.latencies.response.value_at_quantile(1.0 - q) as f64 / 1e6;
        let expected = 1e3 - q * LENGTH * 1e3;
        assert!(measured > expected - 30.0, "p{} is {measured} ms, not {expected} ms", 100.0 * (1.0 - q));
    }
    // Those on their way saw it in their service time, and not the hundred that were due in the half second before its end.
    let service = &operation.latencies.service;
    let slow = service.count_between(500_000_000, service.max());
    assert!((1..=50).contains(&slow), "{slow}");
}
