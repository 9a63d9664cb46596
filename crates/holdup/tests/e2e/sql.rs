//! Statements as load, from the outside: what is recorded of them, what is refused, and that neither passwords nor
//! values turn up anywhere.

use std::time::Duration;

use crate::mariadb::{self, CANARY, MariaDb};
use crate::program::{Running, finish, holdup, manifest};
use crate::secrets::{nowhere, shows_nothing};
use crate::service::Service;

/// The account that the load uses; its password is [`CANARY`], too.
const APP: &str = "app";

/// A value that the scenario writes into a statement.
const VALUE: &str = "v4lueC4nary";

/// A server with a shop in it.
fn shop() -> Option<MariaDb> {
    if !mariadb::is_here() {
        return None;
    }
    let server = mariadb::start();
    server.run(&format!(
        "CREATE DATABASE shop; CREATE USER '{APP}'@'%' IDENTIFIED BY '{CANARY}';
         GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO '{APP}'@'%';
         CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(40), stock INT NOT NULL);
         INSERT INTO shop.item SELECT seq, CONCAT('item ', seq), 1000000 FROM shop.seq_1_to_1000;"
    ));
    Some(server)
}

fn address(server: &MariaDb, password: &str) -> String {
    format!("{}/shop", server.address(APP, password))
}

#[test]
fn a_scenario_of_statements_is_recorded_and_judged() {
    let Some(server) = shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (scenario, out) = (dir.path().join("shop.yaml"), dir.path().join("out"));
    let text = format!(
        "name: shop
target: {}
load: {{rate: 80, duration: 4s, connections: 6}}
operations:
  - {{query: 'SELECT id, name FROM item WHERE id = ?', params: ['${{random(1, 1000)}}'], check: rows == 1, weight: 2}}
  - {{query: \"SELECT COUNT(*) FROM item WHERE name = '{VALUE}'\"}}
  - name: sell
    transaction:
      - {{query: 'UPDATE item SET stock = stock - 1 WHERE id = ?', params: ['${{random(1, 1000)}}']}}
      - {{query: INSERT INTO nowhere VALUES (1)}}
thresholds: [errors < 50%, sell p99 < 20s]
watch: [host]
",
        address(&server, CANARY)
    );
    std::fs::write(&scenario, text).unwrap();
    let run = Running::start(holdup(["run", "--json"]).arg(&scenario).arg("-o").arg(&out));
    let done = run.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let verdict = done.json();
    assert_eq!(verdict["load"]["protocol"], "mysql", "{}", verdict["load"]);
    let manifest = manifest(&out);
    let load = &manifest["load"];
    assert!(load["target"].as_str().unwrap().starts_with("mysql://app@127.0.0.1:"), "{load}");
    let names = ["SELECT id, name FROM item WHERE id = ?", "SELECT COUNT(*) FROM item WHERE name = ?", "sell"];
    let totals = load["totals"].as_array().unwrap();
    for (total, name) in totals.iter().zip(names) {
        assert_eq!(total["operation"], name);
    }
    assert_eq!(totals.iter().map(|t| t["offered"].as_u64().unwrap()).sum::<u64>(), 320);
    assert_eq!((&totals[0]["errors"], &totals[1]["errors"]), (&serde_json::json!({}), &serde_json::json!({})));
    assert_eq!(totals[2]["errors"]["statement_failed"], totals[2]["offered"]);
    // What the server said of it, once, without values.
    let said = "sell: statement_failed: first message of the database: statement 2: 1146 Table";
    assert_eq!(done.stderr.matches(said).count(), 1, "{}", done.stderr);
    // The whole report has the statements without their values; the manifest keeps the scenario's text as it was given.
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("SELECT id, name FROM item WHERE id = ?") && !report.contains(VALUE));
    for kept in ["requests.parquet", "events.parquet", "latency.hlog"] {
        let bytes = std::fs::read(out.join(kept)).unwrap();
        assert!(!bytes.windows(VALUE.len()).any(|window| window == VALUE.as_bytes()), "{kept}");
    }
    assert!(!done.stdout.contains(VALUE) && !done.stderr.contains(VALUE));
    assert!(manifest["scenario"].as_str().unwrap().contains("mysql://app:***@127.0.0.1"), "{}", manifest["scenario"]);
    nowhere(&out, CANARY);
    // What failed was rolled back.
    assert!(server.run("SELECT COUNT(*) FROM shop.item WHERE stock <> 1000000").trim() == "0");
}

#[test]
fn the_quick_form_hides_the_password() {
    let Some(server) = shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let url = address(&server, CANARY);
    let bare = format!("mysql://{APP}@{}", url.split_once('@').unwrap().1);
    let query = ["--query", "SELECT id FROM item WHERE id IN (?, ?)", "--param=${random(1, 500)}", "--param", "-1"];
    let (given, variable) = (dir.path().join("given"), dir.path().join("variable"));
    let mut by_url = holdup(["run", "--rate=50", "--duration=3s", "--url", &url]);
    let mut by_variable = holdup(["run", "--closed", "--connections=2", "--duration=3s", &format!("--url={bare}")]);
    by_variable.env("HOLDUP_MYSQL_PASSWORD", CANARY);
    for (command, out) in [(&mut by_url, &given), (&mut by_variable, &variable)] {
        shows_nothing(command.args(query).arg("-o").arg(out), out);
        let manifest = manifest(out);
        let totals = &manifest["load"]["totals"][0];
        assert_eq!(totals["operation"], "SELECT id FROM item WHERE id IN (?+)", "{totals}");
        assert!(totals["completed"].as_u64().unwrap() >= 100 && totals["errors"] == serde_json::json!({}), "{totals}");
    }
    // What is kept of the quick form is a scenario that can be run.
    let text = manifest(&given)["scenario"].as_str().unwrap().to_owned();
    assert!(!text.contains(CANARY), "{text}");
    let again = dir.path().join("again.yaml");
    std::fs::write(&again, &text).unwrap();
    let checked = finish(holdup(["run", "--check"]).arg(&again), 30);
    assert_eq!(checked.code(), Some(0), "{text}\n{}", checked.stderr);
}

#[test]
fn errors_are_reported_before_anything_is_written() {
    let Some(server) = shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let good = address(&server, CANARY);
    let (web, wrong) = (service.url(), address(&server, "wr0ngC4nary"));
    let nowhere = good.replace("/shop", "/nowhere");
    let tls = format!("{good}?tls=on");
    let postgres = good.replace("mysql://", "postgres://");
    let one = ["--query", "SELECT 1"];
    let cases: [(&str, &[&str], &[&str]); 10] = [
        (&good, &[], &["--query 'SELECT 1'"]),
        (&web, &one, &["--query", "mysql://"]),
        (&wrong, &one, &["Access denied", "HOLDUP_MYSQL_PASSWORD"]),
        (&nowhere, &one, &["nowhere", "slash"]),
        (&good, &["--query", "SELECT ?", "--param", "${nothing}"], &["nothing", "params"]),
        (&good, &["--query", "SELECT 1", "--http=2"], &["--http", "database"]),
        (&good, &["--query", "SELECT 1", "-H", "A: b"], &["--header", "database"]),
        (&good, &["--param", "1"], &["--query"]),
        (&tls, &one, &["TLS"]),
        (&postgres, &one, &["PostgreSQL"]),
    ];
    for (url, more, words) in cases {
        let done =
            finish(holdup(["run", "--rate=1", "--duration=1s", "--url", url]).args(more).current_dir(dir.path()), 60);
        assert_eq!(done.code(), Some(2), "{url} {more:?}: {}", done.stderr);
        assert!(words.iter().all(|word| done.stderr.contains(word)), "{more:?}, {words:?}: {}", done.stderr);
        assert!(!done.stderr.contains(CANARY) && !done.stderr.contains("wr0ng"), "{}", done.stderr);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{more:?} left something");
    }
}
