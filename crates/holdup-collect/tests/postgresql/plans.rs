//! Plans that are asked for, and rights that are missing; and nothing of a statement's values anywhere.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_recording::rows::Plan;
use holdup_recording::{Batch, Coverage, CoverageState};
use holdup_sql::{Dialect, digest};

use super::{Server, Which};
use super::{has_number, watch};

const TABLES: &str = "CREATE EXTENSION pg_stat_statements;
CREATE TABLE orders (id int PRIMARY KEY, customer int, note text);
INSERT INTO orders SELECT i, i % 4000, 'n' || i FROM generate_series(1, 60000) AS i;
CREATE INDEX orders_customer ON orders (customer); ANALYZE orders;
CREATE SCHEMA hidden; CREATE TABLE hidden.secrets (id int);
CREATE FUNCTION evil(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RAISE LOG ''executed by %'', current_user; RETURN 1; END';
CREATE USER watcher PASSWORD 's3cr3t-canary'; GRANT pg_monitor TO watcher;";

/// Samples until there is a plan that fits; what else came meanwhile is looked at, too.
fn plan(collector: &mut dyn Collector, what: &str, run: &dyn Fn(), fits: impl Fn(&Plan) -> bool) -> Plan {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        run();
        let mut batch = Batch::default();
        collector.sample(&mut batch).expect("a sample");
        let all = format!("{batch:?}");
        assert!(!all.contains("canary") && !has_number(&all, "471147"), "{all}");
        if let Some(plan) = batch.plans.into_iter().find(&fits) {
            return plan;
        }
        assert!(Instant::now() < deadline, "no plan within 2 min: {what}");
        sleep(Duration::from_millis(100));
    }
}

fn entry(coverage: Vec<Coverage>) -> Coverage {
    coverage.into_iter().find(|part| part.source.ends_with(" plans")).expect("an entry")
}

#[test]
fn plans_that_are_asked_for_of_13() {
    asked_for(Which::Fetched(13));
}

#[test]
fn plans_that_are_asked_for_of_the_systems() {
    asked_for(Which::System);
}

#[test]
fn plans_that_are_asked_for_of_18() {
    asked_for(Which::Fetched(18));
}

fn asked_for(which: Which) {
    let options = &[("shared_preload_libraries", "pg_stat_statements"), ("autovacuum", "off")];
    let Some(server) = Server::of(which, options) else { return };
    server.run(TABLES);
    rights(&server);
    let mut collector = watch(&server.address("watcher", "plans=explain"));
    let coverage = entry(collector.probe().expect("it can be watched"));
    assert_eq!(coverage.state, CoverageState::Complete, "{coverage:?}");
    a_dropped_index(&server, collector.as_mut());
    the_reading_part(&server, collector.as_mut());
    parameters(&server, collector.as_mut());
    a_statement_behind_a_comment(&server, collector.as_mut());
    what_is_executed(&server);
    let kept = server.run("SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%EXPLAIN%'");
    assert_eq!(kept, "0", "the server's counters hold what we asked");
    let log = std::fs::read_to_string(server.log()).expect("its log");
    assert!(
        log.contains("executed by boss") && !log.contains("executed by watcher"),
        "planning evaluates functions of constants"
    );
}

/// What is missing is said with what would give it, one after another.
fn rights(server: &Server) {
    let address = server.address("watcher", "plans=explain");
    let knows_role = server.run("SELECT count(*) FROM pg_roles WHERE rolname = 'pg_read_all_data'") == "1";
    let grant = if knows_role {
        "GRANT pg_read_all_data TO watcher;"
    } else {
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO watcher;"
    };
    let off = entry(watch(&server.address("watcher", "")).probe().expect("without plans"));
    let enable = off.enable.unwrap_or_default();
    assert_eq!(off.state, CoverageState::Absent);
    assert!(enable.starts_with("add plans=explain") && enable.contains(grant), "{enable}");
    let tracked = entry(watch(&address).probe().expect("in part"));
    assert_eq!(tracked.enable.as_deref(), Some("ALTER ROLE watcher SET pg_stat_statements.track = none;"));
    server.run(&tracked.enable.unwrap_or_default());
    let mut blind = watch(&address);
    let blind_entry = entry(blind.probe().expect("in part"));
    assert_eq!(blind_entry.state, CoverageState::Partial);
    let open = server.begin(&format!("SELECT note FROM orders WHERE customer = 471147;{}", server.wait_for("blind")));
    for _ in 0..10 {
        let mut batch = Batch::default();
        blind.sample(&mut batch).expect("a denial is no gap");
        assert!(batch.plans.is_empty(), "{:?}", batch.plans);
        sleep(Duration::from_millis(50));
    }
    server.open("blind");
    open.end();
    let enable = blind_entry.enable.unwrap_or_default();
    assert!(enable.contains(grant), "{enable}");
    let each =
        |schema: &str| enable.replace("SCHEMA public", &format!("SCHEMA {schema}")).replace("(for each schema)", "");
    server.run(&each("public"));
    server.run(&each("hidden"));
}

/// The same statement, again with other values, before and after.
fn a_dropped_index(server: &Server, collector: &mut dyn Collector) {
    let sql = "SELECT note FROM orders WHERE customer = 471147 AND note <> 'literal-canary'";
    let is_theirs = digest(sql, Dialect::PostgreSql);
    let run = || {
        server.run(&format!("{sql};{sql};{sql};"));
    };
    // A session that stays: the statement that it ran last is seen.
    let open = server.begin(&format!("{sql};{}", server.wait_for("stays")));
    let before = plan(collector, "by the index", &run, |plan| plan.digest == is_theirs);
    assert_eq!((before.kind.as_str(), before.database.as_deref()), ("explain", Some("postgres")));
    assert!(
        before.plan.contains("orders_customer") && before.plan.contains("\"schema\":\"public\""),
        "{}",
        before.plan
    );
    assert!(before.plan.contains("orders.note != ?") && before.cost.is_some() && before.rows_actual.is_none());
    let evil = server.begin(&format!("SELECT evil(1);{}", server.wait_for("evil")));
    let same = plan(collector, "again", &run, |plan| plan.digest == is_theirs);
    assert_eq!(same.shape, before.shape);
    server.open("evil");
    evil.end();
    server.run("DROP INDEX orders_customer");
    let after = plan(collector, "without it", &run, |plan| plan.digest == is_theirs && plan.shape != before.shape);
    let tree = holdup_recording::plan::Node::from_json(&after.plan).expect("a tree");
    assert!(tree.structure().contains("Seq Scan orders"), "{}", tree.structure());
    server.run("CREATE INDEX orders_customer ON orders (customer)");
    server.open("stays");
    open.end();
}

fn the_reading_part(server: &Server, collector: &mut dyn Collector) {
    let sql = "UPDATE orders SET note = 'literal-canary' WHERE id = 471147";
    let open = server.begin(&format!("{sql};{}", server.wait_for("updated")));
    let update = plan(collector, "of an UPDATE", &|| (), |plan| plan.digest == digest(sql, Dialect::PostgreSql));
    assert!(update.plan.contains("orders_pkey") && update.digest_text.starts_with("UPDATE orders"), "{update:?}");
    server.open("updated");
    open.end();
}

/// A statement as drivers send it, with `$1` in its text.
fn parameters(server: &Server, collector: &mut dyn Collector) {
    let sql = "SELECT note FROM orders WHERE customer = $1 AND id > $2";
    let mut line = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
    let mut send = |kind: Option<u8>, body: &[u8]| send(&mut line, kind, body);
    send(None, LOGIN);
    send(Some(b'P'), format!("\0{sql}\0\0\0").as_bytes());
    send(Some(b'B'), b"\0\0\0\0\0\x02\0\0\0\x0217\0\0\0\x016\0\0");
    send(Some(b'E'), b"\0\0\0\0\0");
    send(Some(b'S'), b"");
    let found = plan(collector, "with parameters", &|| (), |plan| plan.digest == digest(sql, Dialect::PostgreSql));
    assert!(found.plan.contains("orders_customer"), "{}", found.plan);
    let mut heard = [0; 4096];
    assert!(line.read(&mut heard).expect("an answer") > 0);
}

const LOGIN: &[u8] = b"\0\x03\0\0user\0boss\0database\0postgres\0\0";

fn send(line: &mut TcpStream, kind: Option<u8>, body: &[u8]) {
    let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
    let bytes: Vec<u8> = kind.into_iter().chain(length).chain(body.iter().copied()).collect();
    line.write_all(&bytes).expect("it reads");
}

/// A comment ends at a carriage return: what stands behind it is a statement, and nobody's but the session's own.
fn a_statement_behind_a_comment(server: &Server, collector: &mut dyn Collector) {
    let sql = "SELECT note FROM orders WHERE id = 471147 --\r; SELECT evil(2)";
    let mut line = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
    send(&mut line, None, LOGIN);
    send(&mut line, Some(b'Q'), format!("{sql}\0").as_bytes());
    let shown = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%--' || chr(13) || '; SELECT evil(2)'";
    let deadline = Instant::now() + Duration::from_secs(120);
    while server.run(shown) != "1" {
        assert!(Instant::now() < deadline, "it is not seen");
        sleep(Duration::from_millis(50));
    }
    for _ in 0..3 {
        let mut batch = Batch::default();
        collector.sample(&mut batch).expect("a sample");
        assert!(batch.plans.iter().all(|plan| plan.digest != digest(sql, Dialect::PostgreSql)), "{:?}", batch.plans);
    }
}

/// Only if that was asked for, and only what reads.
fn what_is_executed(server: &Server) {
    let mut collector = watch(&server.address("watcher", "plans=analyze"));
    collector.probe().expect("it can be watched");
    let sql = "SELECT note FROM orders WHERE customer = 471147";
    let open = server.begin(&format!("{sql};{}", server.wait_for("executed")));
    let update = "UPDATE orders SET note = 'canary' WHERE id = 471147";
    let other = server.begin(&format!("{update};{}", server.wait_for("executed")));
    let seen = plan(collector.as_mut(), "executed", &|| (), |plan| plan.digest == digest(sql, Dialect::PostgreSql));
    assert_eq!((seen.kind.as_str(), seen.rows_actual), ("analyze", Some(0.0)));
    let mut fresh = watch(&server.address("watcher", "plans=analyze"));
    fresh.probe().expect("it can be watched");
    let seen = plan(fresh.as_mut(), "not executed", &|| (), |plan| plan.digest == digest(update, Dialect::PostgreSql));
    assert_eq!((seen.kind.as_str(), seen.rows_actual), ("explain", None));
    server.open("executed");
    open.end();
    other.end();
}
