//! MongoDB's commands as load, on FerretDB, a real server of its protocol: what is recorded of them, what is refused,
//! and that neither the password nor values turn up anywhere. Where FerretDB cannot be built the tests say so and pass,
//! unless `CI` is set.

use std::time::Duration;

use holdup_testing::ferretdb::{CANARY, Server};
use holdup_testing::{Postgres, Which};

use crate::program::{Running, finish, holdup, manifest, root};
use crate::secrets::nowhere;
use crate::service::Service;

/// For whatever only has to happen at some time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A value that the scenario writes into a document.
pub const VALUE: &str = "v4lueC4nary";

/// The example that is run here.
pub const EXAMPLE: &str = "mongodb-orders";

/// Documents in `shop.item`: more than a first batch has, which is 101.
pub const ITEMS: i32 = 250;

/// A server with a shop in it.
pub fn shop() -> Option<Server> {
    Server::start().inspect(fill)
}

/// The same server with its documents in a PostgreSQL of its own.
pub fn on_postgresql() -> Option<(Server, Postgres)> {
    let postgres = Postgres::of(Which::System, &[])?;
    Some((Server::on_postgresql(&postgres.url("boss", "postgres"))?, postgres))
}

/// Puts the shop's items into it.
pub fn fill(server: &Server) {
    use holdup_mongodb::Writer;
    let documents = (0..ITEMS).fold(Writer::new(), |list, n| {
        list.document(&n.to_string(), Writer::new().int("_id", n).text("name", VALUE).int("stock", 1_000))
    });
    server.client().run("shop", Writer::new().text("insert", "item").list_of("documents", documents));
}

pub fn address(server: &Server, password: &str) -> String {
    format!("mongodb://holdup:{password}@127.0.0.1:{}/shop?authSource=accounts", server.port)
}

/// The scenario, with the operations of the first test. Each of its 240 requests sells another one of the 250 items: two updates
/// of one document at once lose one in this server.
pub fn scenario(server: &Server) -> String {
    format!(
        "name: shop
target: {}
load: {{rate: 60, duration: 4s, connections: 6}}
operations:
  - name: by id
    command: {{find: item, filter: {{_id: {{$numberInt: '${{random(0, 249)}}'}}}}, limit: 1}}
    check: [rows == 1, column stock > 0]
    capture: {{name: column name}}
    weight: 2
  - {{name: all, command: {{aggregate: item, pipeline: [{{$match: {{name: {VALUE}}}}}], cursor: {{batchSize: 50}}}}, check: rows == {ITEMS}}}
  - name: sell
    command: {{update: item, updates: [{{q: {{_id: {{$numberInt: '${{number()}}'}}}}, u: {{$inc: {{stock: -1}}}}}}]}}
    check: column nModified == 1
  - command: {{insert: sale, documents: [{{_id: '${{uuid()}}', at: {{$date: \"${{now('ms')}}\"}}, item: {VALUE}}}]}}
    check: column n == 1
  - {{name: twice, command: {{insert: item, documents: [{{_id: 1, name: {VALUE}}}]}}}}
thresholds: [errors < 50%, sell p99 < 20s]
watch: [host]
",
        address(server, CANARY)
    )
}

#[test]
fn a_scenario_of_commands_is_recorded_and_judged() {
    let Some(server) = shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (scenario_file, out) = (dir.path().join("shop.yaml"), dir.path().join("out"));
    std::fs::write(&scenario_file, scenario(&server)).unwrap();
    let run = Running::start(holdup(["run", "--json"]).arg(&scenario_file).arg("-o").arg(&out));
    let done = run.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert_eq!(done.json()["load"]["protocol"], "mongodb");
    let manifest = manifest(&out);
    let load = &manifest["load"];
    assert!(load["target"].as_str().unwrap().starts_with("mongodb://holdup@127.0.0.1:"), "{load}");
    let totals = load["totals"].as_array().unwrap();
    assert_eq!(totals.iter().map(|t| t["offered"].as_u64().unwrap()).sum::<u64>(), 240);
    for (total, name) in totals.iter().zip(["by id", "all", "sell", "insert sale", "twice"]) {
        assert_eq!(total["operation"], name);
        match name {
            "twice" => assert_eq!(total["errors"]["statement_failed"], total["offered"], "{total}"),
            _ => assert_eq!(total["errors"], serde_json::json!({}), "{total}"),
        }
    }
    // What the server said of it, once, by its code and without values.
    let said = "twice: statement_failed: first message of the database: 11000 E";
    assert_eq!(done.stderr.matches(said).count(), 1, "{}", done.stderr);
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("insert sale") && !report.contains(VALUE));
    for kept in ["requests.parquet", "events.parquet", "latency.hlog"] {
        let bytes = std::fs::read(out.join(kept)).unwrap();
        assert!(!bytes.windows(VALUE.len()).any(|window| window == VALUE.as_bytes()), "{kept}");
    }
    nowhere(&out, CANARY);
    // What was sent has been done, each once.
    let sold = totals[2]["completed"].as_u64().unwrap();
    let inserted = totals[3]["completed"].as_u64().unwrap();
    assert_eq!(stock(&server), u64::from(ITEMS.unsigned_abs()) * 1_000 - sold);
    assert_eq!(count(&server, "sale"), inserted);
}

fn stock(server: &Server) -> u64 {
    use holdup_mongodb::Writer;
    let find = Writer::new().text("find", "item").int("batchSize", ITEMS);
    let answer = server.client().run("shop", find);
    let batch = answer.at(&["cursor", "firstBatch"]).unwrap().items();
    batch.iter().map(|item| item.get("stock").unwrap().number().unwrap() as u64).sum()
}

pub fn count(server: &Server, collection: &str) -> u64 {
    let answer = server.client().run("shop", holdup_mongodb::Writer::new().text("count", collection));
    answer.get("n").unwrap().number().unwrap() as u64
}

#[test]
fn the_example_does_what_it_says() {
    let Some(server) = Server::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("example.yaml"), dir.path().join("out"));
    let text = std::fs::read_to_string(root().join(format!("examples/{EXAMPLE}.yaml"))).unwrap();
    let text = text.replace("mongodb://127.0.0.1:27017/shop ", &address(&server, CANARY)).replace("30s", "2s");
    std::fs::write(&file, text).unwrap();
    let done = finish(holdup(["run", "--no-collect"]).arg(&file).arg("-o").arg(&out), 60);
    assert!(out.exists(), "{}", done.stderr);
    let totals = manifest(&out)["load"]["totals"].clone();
    let none = serde_json::json!({});
    assert!(totals.as_array().unwrap().iter().all(|total| total["errors"] == none), "{totals}\n{}", done.stderr);
    let inserted = totals.as_array().unwrap().iter().find(|total| total["operation"] == "new").unwrap();
    assert_eq!(count(&server, "order"), 200 + inserted["completed"].as_u64().unwrap());
}

#[test]
fn the_quick_form_hides_the_password() {
    let Some(server) = shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let query = r#"{"find": "item", "filter": {"_id": {"$numberInt": "${random(0, 249)}"}}}"#;
    let bare = address(&server, CANARY).replace(&format!(":{CANARY}"), "");
    let out = dir.path().join("out");
    let mut command = holdup(["run", "--closed", "--connections=2", "--duration=2s", "--url", &bare, "--query", query]);
    let done = finish(command.env("HOLDUP_MONGODB_PASSWORD", CANARY).arg("-o").arg(&out), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    nowhere(&out, CANARY);
    let manifest = manifest(&out);
    let totals = &manifest["load"]["totals"][0];
    assert_eq!(totals["operation"], "find item filter { _id: ? }", "{totals}");
    assert!(totals["completed"].as_u64().unwrap() >= 50 && totals["errors"] == serde_json::json!({}), "{totals}");
    // What is kept of the quick form is a scenario that can be run.
    let again = dir.path().join("again.yaml");
    std::fs::write(&again, manifest["scenario"].as_str().unwrap()).unwrap();
    let again = finish(holdup(["run", "--check"]).arg(&again), 30);
    assert_eq!(again.code(), Some(0), "{}", again.stderr);
}

#[test]
fn a_server_that_stops_is_timed_from_the_intended_start() {
    let Some(server) = shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (out, url) = (dir.path().join("out"), address(&server, CANARY));
    let mut command = holdup(["run", "--rate=40", "--duration=5s", "--connections=10", "--timeout=1s", "--no-collect"]);
    command.args(["--url", &url, "--query", r#"{"find": "item", "limit": 1}"#]).arg("-o").arg(&out);
    let run = Running::start(&mut command);
    std::thread::sleep(Duration::from_secs(2));
    server.stop();
    let done = run.finish(PATIENCE);
    server.signal(libc::SIGCONT);
    let totals = &manifest(&out)["load"]["totals"][0];
    let errors = |name: &str| totals["errors"][name].as_u64().unwrap_or(0);
    assert!(errors("timeout") > 0 && errors("never_sent") > 0, "{totals}\n{}", done.stderr);
    let (completed, failed) = (totals["completed"].as_u64().unwrap(), totals["offered"].as_u64().unwrap());
    assert!(completed > 0 && completed < failed && failed == 200, "{totals}");
}

#[test]
fn errors_are_reported_before_anything_is_written() {
    let Some(server) = shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let (good, wrong) = (address(&server, CANARY), address(&server, "wr0ngC4nary"));
    let web = service.url().replace("http://", "mongodb://") + "/shop";
    let no_database = good.replace("/shop", "/");
    let tls = format!("{good}&tls=true");
    let ping = ["--query", r#"{"ping": 1}"#];
    let cases: [(&str, &[&str], &[&str]); 9] = [
        (&good, &[], &["--query '{\"find\""]),
        (&wrong, &ping, &["HOLDUP_MONGODB_PASSWORD", "authSource"]),
        (&web, &ping, &["MongoDB"]),
        (&no_database, &ping, &["mongodb://HOST/shop"]),
        (&good, &["--query", "SELECT 1"], &["as JSON"]),
        (&good, &["--query", r#"{"ping": 1}"#, "--param", "1"], &["--param"]),
        (&good, &["--query", r#"{"insertMany": "item"}"#], &["insert: orders"]),
        (&good, &["--query", r#"{"ping": 1}"#, "--http=2"], &["--http", "database"]),
        (&tls, &ping, &["did not answer"]),
    ];
    for (url, more, words) in cases {
        let mut command = holdup(["run", "--rate=1", "--duration=1s", "--url", url]);
        let done = finish(command.args(more).current_dir(dir.path()), 60);
        assert_eq!(done.code(), Some(2), "{url} {more:?}: {}", done.stderr);
        assert!(words.iter().all(|word| done.stderr.contains(word)), "{more:?}, {words:?}: {}", done.stderr);
        assert!(!done.stderr.contains(CANARY) && !done.stderr.contains("wr0ng"), "{}", done.stderr);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{more:?} left something");
    }
    // FerretDB is in no replica set.
    let file = dir.path().join("t.yaml");
    let operation = "transaction: [{command: {insert: item, documents: [{_id: 9999}]}}]";
    let text = format!("target: {good}\nload: {{rate: 1, duration: 1s}}\noperations: [{{{operation}}}]\n");
    std::fs::write(&file, text).unwrap();
    let done = finish(holdup(["run"]).arg(&file).current_dir(dir.path()), 60);
    assert!(done.code() == Some(2) && done.stderr.contains("replica set"), "{}", done.stderr);
    assert_eq!(count(&server, "item"), u64::from(ITEMS.unsigned_abs()));
}

/// The size of a collection waits for a lock here, as FerretDB on SQLite reads the whole database for it: the source is watched without.
#[test]
fn sizes_that_take_too_long_are_left_out_and_said() {
    let Some((server, postgres)) = on_postgresql() else { return };
    fill(&server);
    let table = postgres.run("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'item%'");
    let lock = format!("BEGIN; LOCK TABLE shop.\"{table}\" IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(9); COMMIT");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    std::thread::scope(|scope| {
        scope.spawn(|| postgres.run(&lock));
        while postgres.run("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted") == "0" {
            std::thread::sleep(Duration::from_millis(20));
        }
        let source = address(&server, CANARY);
        let done = finish(holdup(["watch", "--for=1s", "--watch", &source, "-o"]).arg(&out), 60);
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
    });
    let coverage = manifest(&out)["coverage"].clone();
    let part = format!("{} collections", server.source());
    let own = |entry: &&serde_json::Value| entry["source"] == part.as_str();
    let entry = coverage.as_array().unwrap().iter().find(own).expect("a line of the coverage");
    assert!(entry["state"] == "absent" && entry["why"].as_str().unwrap().contains("no answer within"), "{entry}");
}
