//! `holdup advise` on a real MariaDB: what its slow log says takes the time, and what would take it away.

use serde_json::Value;

use crate::mariadb::{self, CANARY};
use crate::program::{Finished, finish, holdup};

/// Three statements: one that reads a whole table for a row, one that finds its row, one that writes.
const LOG: &str = "\
# Time: 261122 10:00:00
# User@Host: app[app] @ localhost []
# Query_time: 0.500000  Lock_time: 0.000010 Rows_sent: 1  Rows_examined: 30000
use shop;
SET timestamp=1795341600;
SELECT * FROM orders WHERE customer = 17 AND at > '2026-01-01';
# Time: 261122 10:00:10
# User@Host: app[app] @ localhost []
# Query_time: 0.100000  Lock_time: 0.000010 Rows_sent: 1  Rows_examined: 1
SET timestamp=1795341610;
SELECT name FROM customers WHERE id = 3;
# Time: 261122 10:00:20
# User@Host: app[app] @ localhost []
# Query_time: 0.200000  Lock_time: 0.000010 Rows_sent: 0  Rows_examined: 1
SET timestamp=1795341620;
UPDATE orders SET at = NOW() WHERE id = 5;
";

fn advised(arguments: &[&str]) -> Finished {
    finish(holdup(["advise"]).args(arguments), 60)
}

#[test]
fn an_index_that_is_missing_is_named_and_what_a_replica_could_take() {
    if !mariadb::is_here() {
        return;
    }
    let server = mariadb::start();
    server.run(
        "CREATE DATABASE shop; USE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, customer INT, at DATETIME, KEY (at));
         INSERT INTO shop.orders SELECT seq, seq % 900, '2026-02-01' FROM seq_1_to_30000;
         CREATE TABLE shop.customers (id INT PRIMARY KEY, name TEXT);
         INSERT INTO shop.customers SELECT seq, 'x' FROM seq_1_to_2000; ANALYZE TABLE shop.orders, shop.customers;
         GRANT SELECT ON shop.* TO 'holdup'@'%';",
    );
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("slow.log");
    std::fs::write(&log, LOG).unwrap();
    let file = log.to_str().unwrap();
    let address = server.address("holdup", CANARY);
    let done = advised(&[file, "--on", &address, "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let first = &report["advice"][0];
    assert_eq!(first["indexes"][0]["columns"], serde_json::json!(["customer", "at"]), "{first}");
    assert_eq!(first["indexes"][0]["statement"], "ALTER TABLE `orders` ADD INDEX (`customer`, `at`)");
    assert_eq!(first["examined_per_sent"], 30_000.0);
    let all: Vec<usize> = (0..3).map(|i| report["advice"][i]["indexes"].as_array().unwrap().len()).collect();
    assert_eq!(all, [1, 0, 0], "the others find their row by its key");
    let ratio = |name: &str| (report[name].as_f64().unwrap() * 1_000.0).round();
    assert_eq!(ratio("replica_never_stale_ratio"), 125.0);
    assert_eq!(ratio("replica_stale_ratio"), 625.0);
    assert_eq!(ratio("stays_ratio"), 250.0);

    let told = advised(&[file, "--on", &address, "--fresh", "orders"]);
    assert!(told.stdout.contains("orders has to be fresh"), "{}", told.stdout);
    assert!(told.stdout.contains("this server cannot plan with a hypothetical index"), "{}", told.stdout);
    for wrong in ["redis://x:secr3t@h", "mysql://holdup:wr0ngword@127.0.0.1:1"] {
        let refused = advised(&[file, "--on", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(!refused.stderr.contains("secr3t") && !refused.stderr.contains("wr0ngword"), "{}", refused.stderr);
    }
    let alone = advised(&[file]);
    assert!(alone.stdout.contains("--on ADDRESS") && !alone.stdout.contains("ADD INDEX"), "{}", alone.stdout);
}
