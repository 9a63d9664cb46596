//! What the server logs of its own work, in each of its three kinds of log at once: plans, vacuum, checkpoints, waits, errors. Written
//! by a real server; no value of a statement comes out.

use std::fs;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_recording::plan::Node;
use holdup_recording::rows::Event;
use holdup_recording::{Batch, CoverageState};
use holdup_sql::{Dialect, digest};

use super::{Server, Which};
use super::{has_number, watch};

const SQL: &str = "SELECT note FROM orders WHERE customer = 471147 AND note <> 'literal-canary'";

/// Samples all until each has had `enough`; what each has had.
fn until(collectors: &mut [(&str, Box<dyn Collector>)], what: &str, enough: impl Fn(&Batch) -> bool) -> Vec<Batch> {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut all: Vec<Batch> = collectors.iter().map(|_| Batch::default()).collect();
    while !all.iter().all(&enough) {
        for ((_, collector), all) in collectors.iter_mut().zip(&mut all) {
            let mut batch = Batch::default();
            collector.sample(&mut batch).expect("a sample");
            // Only what came out of the log.
            batch.samples.clear();
            batch.sessions.clear();
            batch.statements.retain(|row| row.kind == "execution");
            let text = format!("{batch:?}");
            assert!(!text.contains("canary") && !has_number(&text, "471147"), "{text}");
            all.append(batch);
        }
        let missing: Vec<&str> =
            collectors.iter().zip(&all).filter(|(_, all)| !enough(all)).map(|((name, _), _)| *name).collect();
        assert!(Instant::now() < deadline, "{what}: not in {missing:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    all
}

#[test]
fn a_log_of_each_kind_of_13() {
    each_kind(Which::Fetched(13));
}

#[test]
fn a_log_of_each_kind_of_the_systems() {
    each_kind(Which::System);
}

#[test]
fn a_log_of_each_kind_of_18() {
    each_kind(Which::Fetched(18));
}

fn each_kind(which: Which) {
    let logs = tempfile::tempdir().expect("a folder");
    fs::set_permissions(logs.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("ours");
    let folder = logs.path().display().to_string();
    // JSON since 15.
    let names: &[&str] = if which == Which::Fetched(13) {
        &["server.log", "server.csv"]
    } else {
        &["server.log", "server.csv", "server.json"]
    };
    let destination = if names.len() == 3 { "stderr,csvlog,jsonlog" } else { "stderr,csvlog" };
    let options = &[
        ("shared_preload_libraries", "auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_analyze", "on"),
        ("log_line_prefix", "%m [%p] %q%u@%d/%a %e "),
        ("logging_collector", "on"),
        ("log_directory", &folder),
        ("log_filename", "server.log"),
        ("log_file_mode", "0644"),
        ("log_destination", destination),
        ("log_checkpoints", "on"),
        ("log_autovacuum_min_duration", "0"),
        ("autovacuum_naptime", "1"),
        ("log_lock_waits", "on"),
        ("deadlock_timeout", "100ms"),
        ("log_temp_files", "0"),
    ];
    let Some(server) = Server::of(which, options) else { return };
    server.run(
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, note text);
         INSERT INTO orders SELECT i, i % 4000, 'n' || i FROM generate_series(1, 20000) AS i;
         CREATE INDEX orders_customer ON orders (customer); ANALYZE orders;
         CREATE TABLE churn AS SELECT i FROM generate_series(1, 2000) AS i;
         CREATE USER watcher PASSWORD 's3cr3t-canary'; GRANT pg_monitor TO watcher;",
    );
    let mut collectors: Vec<(&str, Box<dyn Collector>)> =
        names.iter().map(|name| (*name, watch(&server.address("watcher", &format!("log={folder}/{name}"))))).collect();
    for (name, collector) in &mut collectors {
        let coverage = collector.probe().expect("it can be watched");
        let plans = coverage.iter().find(|part| part.source.ends_with(" plans")).expect("an entry");
        assert_eq!(plans.state, CoverageState::Complete, "{name}: {plans:?}");
    }
    a_dropped_index(&server, &mut collectors);
    its_own_work(&server, &mut collectors);
}

fn a_dropped_index(server: &Server, collectors: &mut [(&str, Box<dyn Collector>)]) {
    let theirs = digest(SQL, Dialect::PostgreSql);
    // The text format, and JSON: one plan is one shape.
    server.run(&format!("{SQL};"));
    let text = until(collectors, "a plan as text", |batch| batch.plans.iter().any(|plan| plan.digest == theirs));
    server.run(&format!("SET auto_explain.log_format = 'json'; {SQL};"));
    let json = until(collectors, "a plan as JSON", |batch| batch.plans.iter().any(|plan| plan.digest == theirs));
    server.run(&format!("DROP INDEX orders_customer; {SQL};"));
    let after = until(collectors, "another plan", |batch| batch.plans.iter().any(|plan| plan.digest == theirs));
    for ((text, json), after) in text.iter().zip(&json).zip(&after) {
        let of = |batch: &Batch| batch.plans.iter().find(|plan| plan.digest == theirs).cloned().expect("it was there");
        let (text, json, after) = (of(text), of(json), of(after));
        assert_eq!(
            (text.shape.as_str(), text.kind.as_str()),
            (json.shape.as_str(), "auto_explain"),
            "{} {}",
            text.plan,
            json.plan
        );
        assert_ne!(after.shape, json.shape);
        assert_eq!((text.rows_actual, text.database.as_deref()), (Some(0.0), Some("postgres")));
        assert!(text.session_id.is_some() && text.duration_ns.is_some_and(|took| took > 0));
        let scan = Node::from_json(&after.plan).expect("a tree");
        assert_eq!((scan.name().as_str(), scan.rows_removed), ("Seq Scan orders", Some(20_000.0)));
        assert!(scan.filter.as_deref().is_some_and(|filter| filter.contains("customer = ?")), "{scan:?}");
    }
}

/// The vacuum that removed what the test made.
fn vacuum(batch: &Batch) -> Option<&Event> {
    let theirs = [("table", "public.churn"), ("tuples_removed", "2000")];
    batch.events.iter().find(|event| event.kind == "autovacuum" && event.labels.contains(&theirs))
}

fn its_own_work(server: &Server, collectors: &mut [(&str, Box<dyn Collector>)]) {
    let gate = server.wait_for("holder");
    let holder = server.begin(&format!("BEGIN; UPDATE orders SET note = 'canary' WHERE id = 1;{gate}COMMIT;"));
    server.until_some("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'");
    let waiter = server.begin("UPDATE orders SET note = 'other canary' WHERE id = 1");
    server.until_some("SELECT count(*) FROM pg_locks WHERE NOT granted");
    // Longer than what the server lets pass before it logs a wait.
    std::thread::sleep(Duration::from_secs(1));
    server.open("holder");
    holder.end();
    waiter.end();
    server.run("UPDATE churn SET i = i + 1; SET work_mem = '64kB'; SELECT note FROM orders ORDER BY note || 'canary' OFFSET 19999; CHECKPOINT;");
    server.run("\\set ON_ERROR_STOP off\nSELECT 'canary'::int;\nINSERT INTO orders VALUES (471, 471147, 'canary');");
    let kinds = ["autovacuum", "autoanalyze", "checkpoint", "lock_wait", "temporary_file", "error"];
    let seen = until(collectors, "events", |batch| {
        let has = |kind: &str| batch.events.iter().filter(|event| event.kind == kind).count();
        kinds.iter().all(|kind| has(kind) > 0) && vacuum(batch).is_some() && has("error") >= 2
    });
    for batch in &seen {
        let of = |kind: &str| batch.events.iter().find(|event| event.kind == kind).expect("it was there");
        let vacuum = &vacuum(batch).expect("it was there").labels;
        assert_eq!(vacuum.get("database"), Some("postgres"), "{vacuum}");
        for figure in [
            "elapsed_ms",
            "buffers_hit",
            "write_bytes_per_second",
            "wal_bytes",
            "pages_remain",
            "tuples_dead_not_removable",
        ] {
            assert!(vacuum.get(figure).is_some(), "{figure}: {vacuum}");
        }
        let checkpoint = batch
            .events
            .iter()
            .find(|event| event.labels.get("cause").is_some_and(|cause| cause.contains("immediate")));
        assert!(checkpoint.is_some_and(|event| event.labels.get("total_ms").is_some()), "{:?}", of("checkpoint"));
        let waits = of("lock_wait");
        assert!(
            waits.labels.contains(&[("state", "waiting"), ("mode", "ShareLock"), ("lock", "transaction")]),
            "{waits:?}"
        );
        assert!(waits.labels.get("blocked_by").is_some(), "{waits:?}");
        assert_eq!(
            waits.labels.get("digest"),
            Some(digest("UPDATE orders SET note = '' WHERE id = 1", Dialect::PostgreSql).as_str())
        );
        assert!(of("temporary_file").labels.get("size_bytes").is_some());
        let codes: Vec<_> = batch
            .events
            .iter()
            .filter(|event| event.kind == "error")
            .filter_map(|event| event.labels.get("sqlstate"))
            .collect();
        assert!(codes.contains(&"22P02") && codes.contains(&"23505"), "{codes:?}");
    }
}
