//! Statements of others that try to have something of theirs run while holdup plans them.

use holdup_collect::watch::{Options, collector};
use holdup_recording::Batch;
use holdup_sql::{Dialect, digest};

use crate::client::Conn;
use crate::old::mysql_5_6;
use crate::raw::Raw;
use crate::server::{CANARY, Server, mariadb};

/// What the attacker makes in its own database, and what holdup's account may do there: more than it is told to be given.
const TRAPS: &[&str] = &[
    "CREATE TABLE lab.ran (who VARCHAR(100), what VARCHAR(100)) ENGINE=InnoDB",
    "CREATE SQL SECURITY INVOKER VIEW lab.v AS SELECT id, GET_LOCK(CONCAT('view', CONNECTION_ID()), 0) AS a FROM lab.t WHERE id = 1",
    "CREATE FUNCTION lab.initcap(a INT) RETURNS INT DETERMINISTIC SQL SECURITY INVOKER RETURN GET_LOCK(CONCAT('function', CONNECTION_ID()), 0)",
    "GRANT SELECT, SHOW VIEW, EXECUTE ON lab.* TO 'watcher'@'127.0.0.1'",
    "GRANT INSERT ON lab.ran TO 'watcher'@'127.0.0.1'",
];

/// What is left to be seen, as what each session ran last.
fn attacks() -> Vec<String> {
    let behind = "SET SESSION TRANSACTION READ WRITE; INSERT INTO lab.ran VALUES (CURRENT_USER(), 'second'); -- ";
    let mut all: Vec<String> = (1..=0x1f_u8)
        .chain([0x7f])
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .map(|byte| format!("SELECT note FROM t WHERE id = 471147 --{}'\n; {behind}'", char::from(byte)))
        .collect();
    all.push("SELECT note FROM t WHERE initcap(1) = 471147".to_owned());
    all.push("SELECT id FROM v WHERE a = 471147".to_owned());
    all.push("SELECT id FROM lab.v WHERE a = 471147".to_owned());
    all.push("SELECT x.id FROM t AS x JOIN (SELECT id FROM v) AS y ON x.id = y.id".to_owned());
    all
}

/// What the gate relies on: a connection that does not ask for several statements in a text gets one.
fn one_statement_is_run(server: &Server) {
    let several =
        ["SELECT 1; SELECT 2", "EXPLAIN FORMAT=JSON SELECT 1; DELETE FROM lab.t", "SELECT 1 --\x7f\n; SELECT 2"];
    let mut client = Raw::connect(server, 45);
    assert!(client.run(b"SELECT 1").is_some());
    for sql in several {
        assert!(client.run(sql.as_bytes()).is_none(), "{sql:?}");
    }
}

fn nobodys_statement_runs(server: &Server) {
    one_statement_is_run(server);
    let mut root = server.root().unwrap();
    for statement in TRAPS {
        root.query_drop(statement).unwrap();
    }
    let innocent = format!("SELECT note FROM t WHERE id = 471147 AND note <> '{CANARY}'");
    for query in ["?plans=explain", "?plans=analyze"] {
        let mut watcher = collector(&format!("{}{query}", server.address("watcher")), &Options::default()).unwrap();
        watcher.probe().unwrap();
        // Of one that takes one statement only the server keeps the whole text.
        let mut client = Raw::connect(server, 33);
        client.run(b"USE lab");
        let (mut planned, mut ran) = (0, Vec::new());
        for sql in attacks().into_iter().chain([innocent.clone()]) {
            client.run(sql.as_bytes());
            for _ in 0..2 {
                let mut batch = Batch::default();
                watcher.sample(&mut batch).unwrap();
                assert!(!format!("{batch:?}").contains(CANARY));
                planned += batch.plans.iter().filter(|plan| plan.digest == digest(&innocent, Dialect::MySql)).count();
            }
            ran.extend(what_ran(&mut root).into_iter().map(|what| format!("{what}, in {query}: {sql:?}")));
        }
        assert!(ran.is_empty(), "{ran:#?}");
        assert!(planned > 0, "what harms nobody is planned");
    }
}

/// What has run as holdup.
fn what_ran(root: &mut Conn) -> Vec<String> {
    let second: i64 = root.query_first("SELECT COUNT(*) FROM lab.ran WHERE who LIKE 'watcher@%'").unwrap().unwrap();
    root.query_drop("DELETE FROM lab.ran").unwrap();
    let ours: Vec<i64> = root.query("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'watcher'").unwrap();
    let mut ran = if second > 0 { vec!["a second statement".to_owned()] } else { Vec::new() };
    for (lock, id) in ["view", "function"].into_iter().flat_map(|lock| ours.iter().map(move |id| (lock, id))) {
        let holder: Option<Option<i64>> = root.query_first(format!("SELECT IS_USED_LOCK('{lock}{id}')")).unwrap();
        ran.extend(holder.flatten().map(|_| format!("a {lock}")));
    }
    ran
}

/// What lets holdup see what sessions ran last.
const HISTORY: &[&str] = &[
    "--performance-schema-consumer-events-statements-current=ON",
    "--performance-schema-consumer-events-statements-history=ON",
    "--performance-schema-consumer-events-statements-history-long=ON",
];

#[test]
fn no_users_function_runs_as_holdup_on_mariadb() {
    let Some(server) = mariadb(&[&["--performance-schema=ON"], HISTORY].concat()) else { return };
    nobodys_statement_runs(&server);
}

#[test]
fn no_users_function_runs_as_holdup_on_mysql_5_6() {
    let Some(server) = mysql_5_6(HISTORY) else { return };
    nobodys_statement_runs(&server);
}
