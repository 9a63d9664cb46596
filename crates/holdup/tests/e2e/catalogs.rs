//! An index that goes, or is hidden from the planner, under load: the verdict names it, with the statement that
//! makes it again. A harmless change accuses nobody.

use std::path::Path;
use std::time::Duration;

use holdup_testing::{Postgres, Which};
use serde_json::Value;

use crate::mariadb::{self, CANARY, MariaDb, USER};
use crate::program::{Running, holdup};

/// The time after which the change is made, and that the load lasts.
const BEFORE: Duration = Duration::from_secs(12);
const LOAD: &str = "24s";

/// The verdict on a load of lookups by customer on `target`, with `change` in the midst of it.
fn verdict(dir: &Path, target: &str, watch: &str, parameter: &str, change: impl FnOnce()) -> Value {
    let (scenario, out) = (dir.join("shop.yaml"), dir.join("out"));
    let text = format!(
        "name: shop
target: {target}
load: {{rate: 60, duration: {LOAD}, connections: 8}}
operations:
  - name: orders
    query: 'SELECT id, note FROM orders WHERE customer = {parameter}'
    params: ['${{random(1, 20000)}}']
watch: ['{watch}']
"
    );
    std::fs::write(&scenario, text).expect("a scenario");
    let run = Running::start(holdup(["run", "--json"]).arg(&scenario).arg("-o").arg(&out));
    std::thread::sleep(BEFORE);
    change();
    let done = run.finish(Duration::from_secs(90));
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {} {}", done.stdout, done.stderr))
}

/// Rows of the table: a scan of them takes tens of milliseconds.
const ROWS: u32 = 300_000;

fn postgresql() -> Option<Postgres> {
    let server = Postgres::of(Which::System, &[("shared_preload_libraries", "pg_stat_statements")])?;
    server.run(&format!(
        "CREATE EXTENSION pg_stat_statements; CREATE USER watcher; GRANT pg_monitor TO watcher; CREATE USER app;
         CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, note text);
         INSERT INTO orders SELECT n, n % 20000, repeat('x', 80) FROM generate_series(1, {ROWS}) AS n;
         CREATE INDEX orders_customer ON orders (customer); GRANT SELECT ON orders TO app; ANALYZE orders"
    ));
    Some(server)
}

fn on_postgresql(change: impl FnOnce(&Postgres)) -> Option<Value> {
    let server = postgresql()?;
    let dir = tempfile::tempdir().expect("a folder");
    let watch = server.address("watcher", "");
    Some(verdict(dir.path(), &server.url("app", "postgres"), &watch, "$1", || change(&server)))
}

fn headline(verdict: &Value) -> &str {
    verdict["headline"].as_str().unwrap_or_default()
}

fn command(verdict: &Value) -> &str {
    verdict["findings"][0]["fixes"][0]["command"].as_str().unwrap_or_default()
}

#[test]
fn a_dropped_index_of_postgresql_is_named_with_its_statement() {
    let Some(said) = on_postgresql(|server| drop(server.run("DROP INDEX orders_customer"))) else { return };
    assert_eq!(said["culprit"], "missing_index", "{}", headline(&said));
    assert!(
        headline(&said).starts_with("Index orders_customer of public.orders is gone (changed at"),
        "{}",
        headline(&said)
    );
    assert_eq!(command(&said), "CREATE INDEX CONCURRENTLY orders_customer ON public.orders USING btree (customer);");
}

#[test]
fn a_setting_of_the_planner_is_named_with_what_sets_it_back() {
    let off =
        "ALTER SYSTEM SET enable_indexscan = off; ALTER SYSTEM SET enable_bitmapscan = off; SELECT pg_reload_conf()";
    let change = |server: &Postgres| off.split("; ").for_each(|one| drop(server.run(one)));
    let Some(said) = on_postgresql(change) else { return };
    assert_eq!(said["culprit"], "plan_changed", "{}", headline(&said));
    assert!(headline(&said).starts_with("Setting enable_"), "{}", headline(&said));
    assert!(command(&said).starts_with("ALTER SYSTEM SET enable_"), "{}", command(&said));
}

#[test]
fn a_comment_and_an_unrelated_table_are_not_causes() {
    let harmless = |server: &Postgres| {
        drop(server.run(
            "COMMENT ON TABLE orders IS 'orders'; CREATE TABLE other (id int PRIMARY KEY); CREATE INDEX ON other (id)",
        ));
    };
    let Some(said) = on_postgresql(harmless) else { return };
    assert_eq!((said["verdict"].as_str(), said["culprit"].as_str()), (Some("healthy"), None), "{}", headline(&said));
}

fn on_mariadb(change: impl FnOnce(&MariaDb)) -> Option<Value> {
    if !mariadb::is_here() {
        return None;
    }
    let server = mariadb::start();
    server.run(&format!(
        "CREATE DATABASE shop; CREATE USER 'app'@'%' IDENTIFIED BY '{CANARY}'; GRANT SELECT ON shop.* TO 'app'@'%';
         GRANT REFERENCES ON *.* TO '{USER}'@'%';
         CREATE TABLE shop.orders (id INT PRIMARY KEY, customer INT NOT NULL, note VARCHAR(100), KEY orders_customer (customer));
         INSERT INTO shop.orders SELECT seq, seq % 20000, REPEAT('x', 80) FROM shop.seq_1_to_{ROWS};"
    ));
    let dir = tempfile::tempdir().expect("a folder");
    let target = format!("{}/shop", server.address("app", CANARY));
    Some(verdict(dir.path(), &target, &server.address(USER, CANARY), "?", || change(&server)))
}

#[test]
fn an_index_that_mariadb_ignores_is_named_with_what_shows_it_again() {
    let hide = |server: &MariaDb| drop(server.run("ALTER TABLE shop.orders ALTER INDEX orders_customer IGNORED"));
    let Some(said) = on_mariadb(hide) else { return };
    assert_eq!(said["culprit"], "missing_index", "{}", headline(&said));
    let begins = "Index orders_customer of shop.orders is ignored (changed at";
    assert!(headline(&said).starts_with(begins), "{}", headline(&said));
    assert_eq!(command(&said), "ALTER TABLE `shop`.`orders` ALTER INDEX `orders_customer` NOT IGNORED;");
}

#[test]
fn a_dropped_index_of_mariadb_is_named_with_its_statement() {
    let Some(said) = on_mariadb(|server| drop(server.run("DROP INDEX orders_customer ON shop.orders"))) else { return };
    assert_eq!(said["culprit"], "missing_index", "{}", headline(&said));
    assert_eq!(command(&said), "ALTER TABLE `shop`.`orders` ADD INDEX `orders_customer` (`customer`);");
}
