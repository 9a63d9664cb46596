//! The MySQL collector on a real MariaDB with a real thread pool. Where `mariadbd` is not installed the test says so and passes,
//! unless `CI` is set.

mod pooled;

use std::process::{Command, Stdio};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use holdup_collect::watch::{Options, collector};
use holdup_collect::{Collector, ProbeError};
use holdup_recording::rows::Session;
use holdup_recording::{Batch, Coverage, CoverageState, clock};
use holdup_testing::free_port;

use self::pooled::MariaDb;
use crate::client::Conn;

const PASSWORD: &str = "s3cr3t-canary";
const TRACE: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";

/// The first takes part of a second: meanwhile all the others arrive. The second computes until its server is gone: what holds the
/// pool's only thread then never gives it back, and has found the others waiting when it was given to it.
const HEAVY: [&str; 2] = [
    "SELECT BENCHMARK(400000, SHA2('literal-canary', 512))",
    "SELECT BENCHMARK(1000000000000, SHA2('literal-canary', 512))",
];

fn sample(collector: &mut Box<dyn Collector>) -> Batch {
    let mut batch = Batch::default();
    collector.sample(&mut batch).unwrap();
    let all = format!("{batch:?}");
    assert!(!all.contains("canary"), "a secret or a literal came out");
    batch
}

/// Samples until `found` says so, for at most two minutes.
fn sample_until(collector: &mut Box<dyn Collector>, what: &str, found: impl Fn(&Batch) -> bool) -> Batch {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let batch = sample(collector);
        if found(&batch) {
            return batch;
        }
        assert!(Instant::now() < deadline, "{what}: not seen in {:#?}", batch.sessions);
        sleep(Duration::from_millis(200));
    }
}

fn value(batch: &Batch, metric: &str) -> f64 {
    batch.samples.iter().find(|sample| sample.metric == metric).unwrap_or_else(|| panic!("no {metric}")).value
}

fn in_state<'a>(batch: &'a Batch, state: &str) -> Vec<&'a Session> {
    batch.sessions.iter().filter(|session| session.true_state == state).collect()
}

/// The message of a probe that must fail.
fn refusal(collector: &mut Box<dyn Collector>) -> (ProbeError, String) {
    let error = collector.probe().expect_err("it must not be usable");
    let text = error.to_string();
    assert!(!text.contains("canary"), "{text}");
    (error, text)
}

#[test]
fn a_real_mariadb() {
    let Some(mut server) = MariaDb::start() else { return };
    refusals(&server);
    let mut watcher = server.watch("watcher", PASSWORD, "", false);
    let coverage = watcher.probe().unwrap();
    let off: Vec<&Coverage> = coverage.iter().filter(|part| part.state != CoverageState::Complete).collect();
    let off: Vec<&str> = off.iter().filter_map(|part| part.source.split_once(' ')).map(|(_, part)| part).collect();
    assert_eq!((off, coverage.len()), (vec!["metadata locks", "plans", "catalogs"], 8), "{coverage:#?}");
    assert_eq!(watcher.source(), format!("mysql://127.0.0.1:{}", server.port));
    settings(&mut watcher);
    statements(&server, &mut watcher);
    plans(&server);
    locks(&server, &mut watcher);
    let clients = full_pool(&server);

    server.kill();
    for client in clients {
        client.join().unwrap();
    }
    let mut batch = Batch::default();
    let gap = watcher.sample(&mut batch).unwrap_err().to_string();
    assert!(!gap.contains("canary"), "{gap}");
    assert!(batch.is_empty(), "a gap is no row");
    assert!(watcher.sample(&mut batch).unwrap_err().to_string().contains("cannot connect"));
    server.restart(&["--performance-schema=OFF"]);
    // It may be in a pause between two attempts.
    let deadline = Instant::now() + Duration::from_secs(120);
    while let Err(gap) = watcher.sample(&mut batch) {
        assert!(Instant::now() < deadline, "holdup does not come back: {gap}");
        sleep(Duration::from_millis(50));
    }
    assert!(!format!("{batch:?}").contains("canary"));
    assert!(value(&batch, "mysql_global_status_uptime") < 120.0);
    assert!(batch.events.iter().any(|event| event.kind == "restart"), "{:?}", batch.events);
    drop(watcher);
    what_is_off(&mut server);
    encrypted(&mut server);
}

/// With a certificate of its own authority: refused by who wants to verify it against another, taken by who knows it.
fn encrypted(server: &mut MariaDb) {
    let dir = server.folder().to_owned();
    let path = |name: &str| dir.join(name).display().to_string();
    let (key, certificate) = (path("key.pem"), path("cert.pem"));
    let openssl = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).stderr(Stdio::null()).status();
        assert!(made.is_ok_and(|status| status.success()), "openssl is needed to make a certificate");
    };
    let fresh = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", &key];
    let own = ["-x509", "-days", "2", "-addext", "basicConstraints=critical,CA:FALSE"];
    openssl(&[&fresh[..], &own, &["-addext", "subjectAltName=IP:127.0.0.1", "-out", &certificate]].concat());
    server.restart(&[&format!("--ssl-cert={certificate}"), &format!("--ssl-key={key}")]);
    server.as_admin("ALTER USER 'watcher'@'%' REQUIRE SSL;");
    assert!(server.watch("watcher", PASSWORD, "", true).probe().is_err(), "the account may not come in plain text");
    assert!(server.watch("watcher", PASSWORD, "?tls=verify", true).probe().is_err(), "no public authority signed it");
    for tls in ["?tls=require".to_owned(), format!("?tls_ca={certificate}")] {
        let mut watcher = server.watch("watcher", PASSWORD, &tls, true);
        watcher.probe().unwrap();
        assert!(value(&sample(&mut watcher), "mysql_global_status_questions") >= 1.0, "{tls}");
    }
    // Of the first version of X.509, as older tools make it: its signatures cannot be read, and none matters where any
    // server is accepted.
    let (request, old) = (path("request.pem"), path("old.pem"));
    openssl(&[&fresh[..], &["-out", &request]].concat());
    openssl(&["x509", "-req", "-in", &request, "-signkey", &key, "-days", "2", "-out", &old]);
    server.restart(&[&format!("--ssl-cert={old}"), &format!("--ssl-key={key}")]);
    server.watch("watcher", PASSWORD, "?tls=require", true).probe().unwrap();
    assert!(server.watch("watcher", PASSWORD, &format!("?tls_ca={old}"), true).probe().is_err());
}

/// Coverage of a server with nothing switched on, and of the same once it was done what the coverage says.
fn what_is_off(server: &mut MariaDb) {
    let part =
        |coverage: &[Coverage], name: &str| coverage.iter().find(|part| part.source.ends_with(name)).cloned().unwrap();
    let coverage = server.watch("watcher", PASSWORD, "", false).probe().unwrap();
    let pool = part(&coverage, "thread pool");
    assert_eq!(pool.state, CoverageState::Complete);
    assert!(pool.why.unwrap().contains("one-thread-per-connection"));
    for name in ["statement digests", "statement history"] {
        let part = part(&coverage, name);
        assert_eq!((part.state, part.why.as_deref()), (CoverageState::Absent, Some("performance_schema is OFF")));
        assert!(part.enable.unwrap().contains("performance_schema=ON"));
    }

    server.restart(&["--performance-schema=ON"]);
    let mut watcher = server.watch("watcher", PASSWORD, "", false);
    let coverage = watcher.probe().unwrap();
    assert_eq!(part(&coverage, "statement digests").state, CoverageState::Complete);
    let history = part(&coverage, "statement history");
    assert_eq!(history.state, CoverageState::Absent);
    assert!(sample(&mut watcher).statements.iter().all(|row| row.kind == "digest_total"));
    server.as_admin(&history.enable.unwrap());
    let coverage = server.watch("watcher", PASSWORD, "", false).probe().unwrap();
    assert_eq!(part(&coverage, "statement history").state, CoverageState::Complete);

    let ProbeError::MissingGrant { grant, .. } = refusal(&mut server.watch("poor", PASSWORD, "", false)).0 else {
        panic!("a grant is missing");
    };
    server.as_admin(&grant);
    server.watch("poor", PASSWORD, "", false).probe().unwrap();
}

fn refusals(server: &MariaDb) {
    let (error, text) = refusal(&mut server.watch("watcher", "canary-wrong", "", false));
    assert!(matches!(error, ProbeError::Denied { .. }) && text.contains("Access denied for user 'watcher'"), "{text}");

    let (error, text) = refusal(&mut server.watch("poor", PASSWORD, "", false));
    assert!(matches!(error, ProbeError::MissingGrant { .. }), "{text}");
    assert!(
        text.ends_with(
            "run: GRANT PROCESS ON *.* TO 'poor'@'%'; GRANT SELECT ON performance_schema.* TO 'poor'@'%'; \
             (or continue without it: --partial)"
        ),
        "{text}"
    );

    let mut poor = server.watch("poor", PASSWORD, "", true);
    let coverage = poor.probe().unwrap();
    assert_eq!(coverage[0].state, CoverageState::Partial);
    assert_eq!(coverage[0].enable.as_deref(), Some("GRANT PROCESS ON *.* TO 'poor'@'%';"));
    assert!(
        coverage[1..].iter().all(|part| part.state == CoverageState::Absent && part.enable.is_some()),
        "{coverage:#?}"
    );
    let seen = sample(&mut poor);
    assert!(value(&seen, "mysql_global_status_questions") >= 1.0);
    // Only its own sessions are shown to it: to count those would look as if nobody else was there.
    assert!(seen.sessions.is_empty() && seen.samples.iter().all(|s| s.metric != "mysql_sessions"));

    let mut nobody =
        collector(&format!("mysql://u:{PASSWORD}@127.0.0.1:{}", free_port()), &Options::default()).unwrap();
    let (error, text) = refusal(&mut nobody);
    assert!(matches!(error, ProbeError::Unreachable { .. }) && text.contains("refused"), "{text}");
}

fn settings(watcher: &mut Box<dyn Collector>) {
    let mut batch = Batch::default();
    watcher.settings(&mut batch).unwrap();
    let setting =
        |name: &str| batch.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str());
    assert_eq!((setting("thread_pool_size"), setting("thread_handling")), (Some("1"), Some("pool-of-threads")));
    assert!(setting("innodb_buffer_pool_size").is_some() && setting("init_connect").is_none());
}

fn statements(server: &MariaDb, watcher: &mut Box<dyn Collector>) {
    let mut client = server.client().unwrap();
    sample(watcher);
    let sql = format!(
        "/*traceparent='00-{TRACE}-c532cb4098ac3dd2-01'*/ SELECT note FROM t WHERE id = 1 AND note <> 'literal-canary'"
    );
    let _: Vec<String> = client.query(&sql).unwrap();
    let sent_at = clock::now_ns();
    let batch = sample(watcher);
    let run =
        batch.statements.iter().find(|row| row.trace_id.as_deref() == Some(TRACE)).expect("the execution is seen");
    assert_eq!(run.digest, holdup_sql::digest(&sql, holdup_sql::Dialect::MySql));
    assert_eq!((run.kind.as_str(), run.calls, run.rows_sent, run.errors), ("execution", 1, 1, 0));
    assert_eq!((run.session_id, run.database.as_deref()), (Some(i64::from(client.connection_id())), Some("lab")));
    // The server counts picoseconds since it began: a wrong unit or origin is minutes off, a machine that stalls is not.
    assert!((run.observed_at - sent_at).abs() < 10_000_000_000, "{} ns off", run.observed_at - sent_at);
    assert!(run.duration_ns > 0);
    let total = batch
        .statements
        .iter()
        .find(|row| row.kind == "digest_total" && row.digest == run.digest)
        .expect("it is counted");
    assert_eq!(total.calls, 1);
    let again = sample(watcher);
    assert!(again.statements.iter().all(|row| row.trace_id.is_none()), "no execution is taken twice");
    for batch in [&batch, &again] {
        let ours = batch.statements.iter().find(|row| {
            let text = row.digest_text.to_lowercase();
            ["_schema.", "@@", "connection_id", "set session", "show "].iter().any(|part| text.contains(part))
                && row.database.is_none()
        });
        assert!(ours.is_none(), "our own statements are left out: {ours:?}");
    }
}

/// A plan before and after its index was dropped; nothing without the right, which the coverage names.
fn plans(server: &MariaDb) {
    let mut client = server.client().unwrap();
    client
        .query_drop("CREATE TABLE o (id INT PRIMARY KEY, customer INT, note TEXT, KEY o_customer (customer))")
        .unwrap();
    client.query_drop("INSERT INTO o SELECT seq, seq % 4000, CONCAT('n', seq) FROM seq_1_to_40000").unwrap();
    let sql = "SELECT note FROM o WHERE customer = 471147 AND note <> 'literal-canary'";
    let theirs = holdup_sql::digest(sql, holdup_sql::Dialect::MySql);
    let mut run = |times: usize| (0..times).for_each(|_| client.query_drop(sql).unwrap());
    let mut watcher = server.watch("watcher", PASSWORD, "?plans=explain", false);
    let coverage = watcher.probe().unwrap();
    let entry = coverage.iter().find(|part| part.source.ends_with(" plans")).unwrap();
    let grant = entry.why.as_ref().and_then(|why| why.split_once("(if not: ")?.1.split_once(')')).unwrap().0;
    for _ in 0..8 {
        run(1);
        assert!(sample(&mut watcher).plans.is_empty(), "it may not read the table");
    }
    server.as_admin(grant.replace("SCHEMA", "lab").trim_end_matches(';'));
    for (query, kinds) in [("?plans=explain", ["ref", "ALL"]), ("?plans=analyze", ["ref", "ALL"])] {
        for kind in kinds {
            // A new one asks at once.
            let mut watcher = server.watch("watcher", PASSWORD, query, false);
            watcher.probe().unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            let plan = loop {
                run(5);
                let found = sample(&mut watcher).plans.into_iter().find(|plan| plan.digest == theirs);
                if let Some(plan) = found.filter(|plan| plan.plan.contains(&format!("\"kind\":\"{kind}\""))) {
                    break plan;
                }
                assert!(Instant::now() < deadline, "no plan with {kind}");
                sleep(Duration::from_millis(100));
            };
            assert!(plan.plan.contains("note != ?") && plan.database.as_deref() == Some("lab"), "{}", plan.plan);
            assert_eq!(
                (plan.kind == "analyze", plan.plan.contains("rows_actual")),
                (query.ends_with("analyze"), query.ends_with("analyze"))
            );
            let change = if kind == "ref" {
                "DROP INDEX o_customer ON lab.o"
            } else {
                "CREATE INDEX o_customer ON lab.o (customer)"
            };
            server.as_admin(change);
        }
    }
}

fn locks(server: &MariaDb, watcher: &mut Box<dyn Collector>) {
    let mut holder = server.client().unwrap();
    holder.query_drop("BEGIN").unwrap();
    holder.query_drop("UPDATE t SET note = 'x' WHERE id = 1").unwrap();
    let waiters: Vec<JoinHandle<()>> =
        ["UPDATE t SET note = 'y' WHERE id = 1", "UPDATE t SET note = 'z' WHERE id = 1", "ALTER TABLE t COMMENT 'c'"]
            .into_iter()
            .map(|sql| {
                let mut client = server.client().unwrap();
                let waiter = std::thread::spawn(move || client.query_drop(sql).unwrap());
                sleep(Duration::from_millis(100));
                waiter
            })
            .collect();
    let batch = sample_until(watcher, "three lock waits", |batch| in_state(batch, "lock_wait").len() == 3);
    let holder_id = i64::from(holder.connection_id());
    let blocked = in_state(&batch, "lock_wait").iter().filter(|session| session.blocked_by == Some(holder_id)).count();
    assert_eq!(blocked, 2, "{:#?}", batch.sessions);
    let metadata = in_state(&batch, "lock_wait").into_iter().find(|session| session.blocked_by.is_none()).unwrap();
    assert_eq!(metadata.state.as_deref(), Some("Waiting for table metadata lock"));
    assert!(batch.sessions.iter().any(|session| session.session_id == holder_id && session.true_state == "idle"));
    holder.query_drop("ROLLBACK").unwrap();
    for waiter in waiters {
        waiter.join().unwrap();
    }
}

/// Returns clients that pile on until the server is gone. It is watched past the pool, where they wait.
fn full_pool(server: &MariaDb) -> Vec<JoinHandle<()>> {
    let mut watcher = server.watch("watcher", PASSWORD, &format!("?extra_port={}", server.extra_port), false);
    watcher.probe().unwrap();
    let clients: Vec<Conn> = (0..20).map(|_| server.client().unwrap()).collect();
    let run = |mut client: Conn| std::thread::spawn(move || HEAVY.iter().for_each(|sql| drop(client.query_drop(*sql))));
    let clients: Vec<JoinHandle<()>> = clients.into_iter().map(run).collect();
    let batch = sample_until(&mut watcher, "ten queued", |batch| in_state(batch, "queued").len() >= 10);
    let queued = in_state(&batch, "queued");
    for session in &queued {
        assert_eq!(
            (session.command.as_str(), session.state.as_deref(), session.digest.as_deref()),
            ("Sleep", None, None),
            "the server says Sleep"
        );
        assert!(session.queued_ns.is_some());
    }
    let executing = in_state(&batch, "executing");
    assert!(
        executing.iter().any(|session| session.digest_text.as_deref() == Some("SELECT BENCHMARK(?, SHA2(?+))")),
        "{executing:#?}"
    );
    assert!(value(&batch, "mysql_thread_pool_queue_length") >= 5.0);
    assert!(value(&batch, "mysql_thread_pool_queueing_time_seconds_max") > 0.0);
    let counted = batch
        .samples
        .iter()
        .find(|s| s.metric == "mysql_sessions" && s.labels.contains(&[("command", "Sleep"), ("true_state", "queued")]));
    assert_eq!(counted.map(|sample| sample.value), Some(queued.len() as f64));

    // The way in that users take is blocked; the message says which one isn't.
    let (error, text) = refusal(&mut server.watch("watcher", PASSWORD, "", false));
    assert!(matches!(error, ProbeError::Unreachable { .. }) && text.contains("?extra_port=N"), "{text}");
    clients
}
