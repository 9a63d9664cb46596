//! An index that goes under load: the verdict names it, with the statement that makes it again.

use std::path::Path;
use std::time::Duration;

use holdup_testing::{Postgres, Which};
use serde_json::Value;

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
        headline(&said).starts_with("Index orders_customer of public.orders is gone (changed "),
        "{}",
        headline(&said)
    );
    assert_eq!(command(&said), "CREATE INDEX CONCURRENTLY orders_customer ON public.orders USING btree (customer);");
}
