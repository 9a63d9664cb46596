//! Other people's drivers and holdup at once on one server of MongoDB's protocol: pymongo, MongoDB's own Node driver, and
//! a run whose load and whose source are on the same server. FerretDB stands in for `mongod`, which no registry has; its
//! documents are in SQLite or in PostgreSQL. What this server lacks is coverage and no error.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdup_testing::ferretdb::{CANARY, Server};
use serde_json::Value;

use crate::mongodb::{self, ITEMS, address, count, fill};
use crate::program::{Finished, Running, finish, holdup, manifest, root, skip};
use crate::python;
use crate::secrets::nowhere;

/// For whatever only has to happen at some time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Requests that holdup sends: 40/s for 8 s.
const OFFERED: u64 = 320;

/// Parts of the coverage for what FerretDB does not have, with a word of the reason.
const LACKING: [(&str, &str, &str); 5] = [
    ("serverStatus", "partial", "(opcounters)"),
    ("use of collections", "absent", "'top'"),
    ("indexes", "absent", "$indexStats"),
    ("profiler", "absent", "the server does not have it"),
    ("replica set", "absent", "'replSetGetStatus'"),
];

/// Causes that need figures which FerretDB does not have: nothing may be said of them.
const NEVER_NAMED: [&str; 6] =
    ["connection_limit", "connection_storm", "flush_storm", "missing_index", "replication_wait", "tickets_exhausted"];

#[test]
fn beside_holdup_on_sqlite() {
    if let Some(server) = Server::start() {
        all_at_once(&server);
    }
}

#[test]
fn beside_holdup_on_postgresql() {
    let Some((server, postgres)) = mongodb::on_postgresql() else { return };
    all_at_once(&server);
    // That is where the documents are.
    let tables = postgres.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'shop' AND tablename LIKE 'sale%'");
    assert_eq!(tables, "1");
}

/// Runs the three on `server`, each for as long as holdup's load lasts, and looks at what each says.
fn all_at_once(server: &Server) {
    fill(server);
    let Some((mut pymongo, mut node)) = pymongo(server).zip(node(server)) else { return };
    let drivers = [("pymongo", Running::start(&mut pymongo)), ("node", Running::start(&mut node))];
    let begun = Instant::now();
    while drivers.iter().any(|(name, _)| count(server, &format!("{name}_orders")) == 0) {
        if begun.elapsed() > PATIENCE {
            let said = drivers.map(|(_, driver)| ended(driver)).map(|done| done.stdout + &done.stderr);
            panic!("no documents of a driver: {said:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("shop.yaml"), dir.path().join("out"));
    std::fs::write(&file, scenario(server)).unwrap();
    let done = finish(holdup(["run", "--json"]).arg(&file).arg("-o").arg(&out), 60);
    for (name, driver) in drivers {
        worked(name, &ended(driver), count(server, &format!("{name}_orders")));
    }
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let totals = manifest(&out)["load"]["totals"].clone();
    let totals = totals.as_array().unwrap();
    assert!(totals.iter().all(|total| total["errors"] == serde_json::json!({})), "{totals:?}\n{}", done.stderr);
    assert_eq!(totals.iter().map(|total| total["completed"].as_u64().unwrap()).sum::<u64>(), OFFERED);
    let inserted = totals.iter().find(|total| total["operation"] == "insert sale").unwrap();
    assert_eq!(counted_by_pymongo(server, "sale"), inserted["completed"].as_u64().unwrap());
    lacks(server, &manifest(&out)["coverage"]);
    lacks(server, &done.json()["coverage"]);
    says_nothing_false(&done.json());
    nowhere(&out, CANARY);
    python::check("absent.py", &[CANARY.as_ref(), out.as_path()]);
    assert!(!done.stdout.contains(CANARY) && !done.stderr.contains(CANARY), "{}", done.stderr);
}

/// Finds, inserts, updates, aggregates; and watches the server and the machine.
fn scenario(server: &Server) -> String {
    let url = address(server, CANARY);
    let item = "{_id: {$numberInt: '${random(0, 249)}'}}";
    format!(
        "name: shop
target: {url}
load: {{rate: 40, duration: 8s, connections: 6}}
operations:
  - {{name: by id, command: {{find: item, filter: {item}, limit: 1}}, check: [rows == 1, column stock > 0], weight: 2}}
  - {{name: all, command: {{aggregate: item, pipeline: [], cursor: {{batchSize: 50}}}}, check: rows == {ITEMS}}}
  - {{name: sell, command: {{update: item, updates: [{{q: {item}, u: {{$inc: {{stock: -1}}}}}}]}}, check: column nModified == 1}}
  - {{command: {{insert: sale, documents: [{{_id: '${{uuid()}}'}}]}}, check: column n == 1, weight: 2}}
watch: [host, '{url}']
"
    )
}

fn pymongo(server: &Server) -> Option<Command> {
    let mut command = python::command("pymongo_orders.py")?;
    command.args(["run", &ITEMS.to_string()]).env("MONGODB_URL", address(server, CANARY)).stdin(Stdio::null());
    Some(command)
}

/// Documents in a collection, by pymongo once more.
fn counted_by_pymongo(server: &Server, collection: &str) -> u64 {
    let mut command = python::command("pymongo_orders.py").unwrap();
    let done = finish(command.args(["count", collection]).env("MONGODB_URL", address(server, CANARY)), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    done.stdout.trim().parse().unwrap()
}

/// The Node program; none where its driver is not installed.
fn node(server: &Server) -> Option<Command> {
    let list = root().join("target/node/package.json");
    if !root().join("target/node/installed.json").exists() {
        skip("target/node has no MongoDB driver; run: cargo xtask setup");
        return None;
    }
    // The set-up puts a Node there if the system's is missing or too old.
    let own = root().join("target/py/bin/node");
    let mut command = Command::new(if own.exists() { own } else { PathBuf::from("node") });
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/node/orders.mjs"));
    command.arg(list).arg(ITEMS.to_string()).env("MONGODB_URL", address(server, CANARY)).stdin(Stdio::null());
    Some(command)
}

/// Asks a driver's program to end, and waits for that.
fn ended(driver: Running) -> Finished {
    driver.signal(libc::SIGTERM);
    driver.finish(PATIENCE)
}

/// A driver's program had no error, did each kind of work, and read back what it wrote.
fn worked(name: &str, done: &Finished, documents: u64) {
    assert_eq!(done.code(), Some(0), "{name}: {}", done.stderr);
    let said = done.json();
    assert_eq!((&said["errors"], &said["wrong"]), (&serde_json::json!([]), &serde_json::json!([])), "{name}");
    let succeeded = |command: &str| said["commands"][command].as_u64().unwrap_or(0);
    for command in ["find", "insert", "update", "aggregate"] {
        assert!(succeeded(command) > 1, "{name}, {command}: {said}");
    }
    assert!(succeeded("getMore") > 5 * succeeded("aggregate"), "{name}: a cursor takes several: {said}");
    assert_eq!(documents, 5 * succeeded("insert"), "{name}: {said}");
}

/// Each command and section that the server lacks is a line of the coverage, with a reason; and nothing else is.
fn lacks(server: &Server, coverage: &Value) {
    let coverage = coverage.as_array().unwrap();
    let own = server.source();
    let parts: Vec<&Value> =
        coverage.iter().filter(|entry| entry["source"].as_str().unwrap().starts_with(&own)).collect();
    for (part, state, word) in LACKING {
        let entry = parts.iter().find(|entry| entry["source"] == format!("{own} {part}")).unwrap();
        assert!(entry["state"] == state && entry["why"].as_str().unwrap().contains(word), "{entry}");
    }
    let whole = parts.iter().find(|entry| entry["source"] == own).unwrap();
    assert!(whole["state"] == "partial" && whole["why"].as_str().unwrap().contains("without: serverStatus"), "{whole}");
    assert_eq!(parts.len(), 1 + LACKING.len(), "{parts:#?}");
}

/// No cause whose figures are missing is found or cleared, and the advice for MongoDB is not given for another server.
fn says_nothing_false(verdict: &Value) {
    for list in ["findings", "cleared"] {
        let named = crate::program::causes(verdict, list);
        assert!(!named.iter().any(|cause| NEVER_NAMED.contains(cause)), "{list}: {named:?}");
    }
    let notes = verdict["notes"].as_array().unwrap();
    assert!(!notes.iter().any(|note| note["vendor"] == "MongoDB"), "{notes:#?}");
}
