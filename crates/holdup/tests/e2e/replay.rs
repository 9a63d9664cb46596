//! `holdup replay` between real servers: what one logged of a load is executed by the other, as often and when it was, by whom it was.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use holdup_testing::{Postgres, Which};
use serde_json::Value;

use crate::mariadb::{self, CANARY, MariaDb};
use crate::program::{Finished, Running, finish, holdup};

/// Requests a second that are captured, of which eleven are fourteen statements: where they are counted, and where they are timed.
pub const RATE: u32 = 400;
const FAST: u32 = 1_572;

/// How long, seconds.
pub const SECONDS: u32 = 3;

/// How late statements may go out, milliseconds, of 99 in 100.
const LAG_P99_MS: f64 = 1.0;

/// What the load executes: with values in the text, with parameters, in transactions.
const LOAD: &str = "
operations:
  - {query: 'SELECT id, name FROM item WHERE id = 17', weight: 3}
  - {query: \"SELECT name FROM item WHERE id IN (1, 2, 3) AND name <> 'it''s'\", weight: 2}
  - {query: 'SELECT COUNT(*) FROM item WHERE id < 40', weight: 2}
  - {name: prepared, query: 'SELECT id, name FROM item WHERE id = ?', params: ['${random(1, 1000)}'], weight: 3}
  - name: sell
    transaction:
      - {query: 'SELECT stock FROM item WHERE id = 5'}
      - {query: 'UPDATE item SET stock = stock - 1 WHERE id = 5'}
";

/// Puts the load on a server.
pub fn load(address: &str, rate: u32, dir: &Path) {
    let scenario = dir.join("load.yaml");
    let head = format!("name: mix\ntarget: {address}\nload: {{rate: {rate}, duration: {SECONDS}s, connections: 16}}");
    std::fs::write(&scenario, format!("{head}{LOAD}")).unwrap();
    let run = Running::start(holdup(["run", "--no-collect", "--quiet"]).arg(&scenario).arg("-o").arg(dir.join("load")));
    let done = run.finish(Duration::from_secs(120));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
}

/// How often a log says that each statement was executed by the load's account.
pub fn calls(log: &Path) -> BTreeMap<String, u64> {
    let done = finish(holdup(["digest", "--json", "--limit", "0", "--filter", "user=app"]).arg(log), 120);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let queries = done.json()["queries"].as_array().unwrap().clone();
    let one = |query: &Value| (query["fingerprint"].as_str().unwrap().to_lowercase(), query["calls"].as_u64().unwrap());
    queries.iter().map(one).collect()
}

/// Those that are the mix's own: what holdup says for itself when it connects is none, nor are the protocol's commands.
pub fn own(mut calls: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    calls.retain(|text, _| !text.starts_with("administrator command") && !text.starts_with("set session transaction"));
    calls
}

pub fn replay(log: &Path, address: &str, more: &[&str], out: &Path) -> Finished {
    let mut command = holdup(["replay", "--to", address, "--filter", "user=app", "--json"]);
    let run = Running::start(command.args(more).arg(log).arg("-o").arg(out));
    let done = run.finish(Duration::from_secs(180));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    done
}

/// What holdup says of the replay.
pub fn facts(out: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(out.join("replay.json")).unwrap()).unwrap()
}

fn is_in_time(out: &Path) {
    let facts = facts(out);
    let (lag, length) = (facts["played"]["lag_p99_ms"].as_f64().unwrap(), facts["length_s"].as_f64().unwrap());
    assert!(facts["sent"].as_f64().unwrap() / length > 0.7 * f64::from(FAST) * 14.0 / 11.0, "{facts}");
    assert!(lag < LAG_P99_MS, "{lag} ms: {facts}");
}

/// A server with a shop in it that logs all that is executed from now on.
pub fn shop() -> MariaDb {
    let server = mariadb::start();
    let log = |name: &str| server.file(name).display().to_string();
    server.run(&format!(
        "CREATE DATABASE shop; CREATE USER 'app'@'%' IDENTIFIED BY '{CANARY}'; GRANT ALL ON shop.* TO 'app'@'%';
         CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(40), stock INT NOT NULL);
         INSERT INTO shop.item SELECT seq, CONCAT('item ', seq), 1000000 FROM shop.seq_1_to_1000;
         CREATE TABLE shop.told (id INT);

DELIMITER //
CREATE FUNCTION shop.tell() RETURNS INT BEGIN INSERT INTO shop.told VALUES (1); RETURN 1; END //
DELIMITER ;
         CREATE VIEW shop.teller AS SELECT shop.tell() AS a;
         SET GLOBAL slow_query_log_file='{}'; SET GLOBAL general_log_file='{}'; SET GLOBAL long_query_time=0;
         SET GLOBAL slow_query_log=ON; SET GLOBAL general_log=ON;",
        log("slow"),
        log("general")
    ));
    server
}

#[test]
fn a_log_of_one_mariadb_is_executed_on_another() {
    if !mariadb::is_here() {
        return;
    }
    let (old, new, dir) = (shop(), shop(), tempfile::tempdir().unwrap());
    let to = |server: &MariaDb| format!("{}/shop", server.address("app", CANARY));
    load(&to(&old), RATE, dir.path());
    let captured = own(calls(&old.file("slow")));
    assert!(captured.values().sum::<u64>() > u64::from(RATE * SECONDS), "{captured:?}");
    let out = dir.path().join("slow");
    replay(&old.file("slow"), &to(&new), &["--writes", "--hash"], &out);
    assert_eq!(own(calls(&new.file("slow"))), captured);
    let stock = "SELECT stock FROM shop.item WHERE id = 5";
    assert_eq!(old.run(stock), new.run(stock));
    let facts = facts(&out);
    assert_eq!((&facts["format"], &facts["left_out"]), (&"slowlog".into(), &serde_json::json!({})), "{facts}");
    assert_eq!((&facts["played"]["failed"], &facts["sent"]), (&0.into(), &captured.values().sum::<u64>().into()));
    // Only what reads, and the general log: the same statements, to the second.
    let before = own(calls(&new.file("slow")));
    let out = dir.path().join("general");
    replay(&old.file("general"), &to(&new), &[], &out);
    let mut reading = own(calls(&new.file("slow")));
    for (text, calls) in &mut reading {
        *calls -= before.get(text).copied().unwrap_or(0);
    }
    let is_writing = |text: &str| text.starts_with("update");
    for (text, calls) in &captured {
        assert_eq!(reading.get(text), Some(if is_writing(text) { &0 } else { calls }), "{text}: {reading:?}");
    }
    assert_eq!(old.run(stock), new.run(stock), "nothing was changed again");
    let facts = self::facts(&out);
    assert_eq!(facts["left_out"]["changes"], captured[captured.keys().find(|text| is_writing(text)).unwrap()]);
    assert!(facts["spread"].as_u64().unwrap() > u64::from(RATE), "{facts}");
}

/// The same of PostgreSQL.
pub fn items() -> Option<Postgres> {
    let settings = [("log_min_duration_statement", "0"), ("log_line_prefix", "%m [%p] user=%u,db=%d ")];
    let server = Postgres::of(Which::System, &settings)?;
    server.run("CREATE ROLE app LOGIN");
    server.run(
        "CREATE TABLE item (id int PRIMARY KEY, name text, stock int NOT NULL);
         INSERT INTO item SELECT n, 'item ' || n, 1000000 FROM generate_series(1, 1000) n; GRANT ALL ON item TO app",
    );
    Some(server)
}

#[test]
#[holdup_witness::judged(TO_THE_MILLISECOND)]
#[ignore = "full: milliseconds, wants a quiet machine"]
fn statements_go_out_when_they_were_due() {
    if mariadb::is_here() {
        let (server, dir) = (shop(), tempfile::tempdir().unwrap());
        let to = format!("{}/shop", server.address("app", CANARY));
        load(&to, FAST, dir.path());
        let captured = dir.path().join("captured");
        std::fs::copy(server.file("slow"), &captured).unwrap();
        let out = dir.path().join("out");
        replay(&captured, &to, &["--writes"], &out);
        is_in_time(&out);
    }
    if let Some(server) = items() {
        let (to, dir) = (server.url("app", "postgres"), tempfile::tempdir().unwrap());
        load(&to, FAST, dir.path());
        let captured = dir.path().join("captured");
        std::fs::copy(server.log(), &captured).unwrap();
        let out = dir.path().join("out");
        replay(&captured, &to, &["--writes"], &out);
        is_in_time(&out);
    }
}

#[test]
fn a_log_of_one_postgresql_is_executed_on_another() {
    let (Some(old), Some(new)) = (items(), items()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let to = |server: &Postgres| server.url("app", "postgres");
    load(&to(&old), RATE, dir.path());
    let captured = own(calls(&old.log()));
    let out = dir.path().join("out");
    replay(&old.log(), &to(&new), &["--writes", "--hash=any"], &out);
    assert_eq!(own(calls(&new.log())), captured);
    let stock = "SELECT stock FROM item WHERE id = 5";
    assert_eq!(old.run(stock), new.run(stock));
    let facts = facts(&out);
    assert_eq!((&facts["left_out"], &facts["played"]["failed"]), (&serde_json::json!({}), &0.into()), "{facts}");
    // Twice as fast, and only what reads: all but the updates.
    let fast = dir.path().join("fast");
    replay(&old.log(), &to(&new), &["--speed", "2"], &fast);
    assert_eq!(old.run(stock), new.run(stock), "nothing was changed again");
    let sent = self::facts(&fast)["sent"].as_u64().unwrap();
    assert_eq!(sent + captured["update item set stock = stock - ? where id = ?"], facts["sent"].as_u64().unwrap());
}

#[test]
fn hidden_writes_are_refused_by_the_server() {
    if !mariadb::is_here() {
        return;
    }
    let (server, dir) = (shop(), tempfile::tempdir().unwrap());
    let log = dir.path().join("slow.log");
    let entry = |second: u32, sql: &str| {
        format!(
            "# Time: 2025-11-03T10:00:00.{second:03}103Z\n# User@Host: app[app] @ web1 []  Id: 3\n# Query_time: 0.000100  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\nuse shop;\nSET timestamp=1762164000;\n{sql};\n"
        )
    };
    let text = [
        entry(1, "BEGIN"),
        entry(2, "SELECT a FROM teller"),
        entry(3, "SELECT tell()"),
        entry(4, "INSERT INTO told VALUES (1)"),
        entry(5, "ROLLBACK"),
        entry(6, "SELECT COUNT(*) FROM item"),
    ];
    std::fs::write(&log, text.concat()).unwrap();
    let address = server.address("app", CANARY);
    let check = finish(holdup(["replay", "--check", "--to", &address]).arg(&log), 60);
    assert_eq!(check.code(), Some(0), "{}", check.stderr);
    assert!(check.stdout.contains("4 of the log's 6 statements") && !check.stdout.contains(CANARY), "{}", check.stdout);
    let out = dir.path().join("out");
    replay(&log, &address, &[], &out);
    let facts = facts(&out);
    assert_eq!(facts["left_out"], serde_json::json!({"calls": 1, "changes": 1}), "{facts}");
    assert_eq!((&facts["played"]["completed"], &facts["played"]["failed"]), (&3.into(), &1.into()), "{facts}");
    assert_eq!(server.run("SELECT COUNT(*) FROM shop.told").trim(), "0");
    // What is wrong is said before anything is sent.
    std::fs::write(dir.path().join("empty.log"), "").unwrap();
    let wrong = server.address("app", "wr0ng");
    let postgres = address.replace("mysql://", "postgres://");
    for (arguments, word) in [
        (vec!["slow.log", "--to", wrong.as_str()], "HOLDUP_MYSQL_PASSWORD"),
        (vec!["slow.log", "--to", "http://127.0.0.1/"], "mysql://"),
        (vec!["slow.log", "--to", postgres.as_str()], "MySQL or MariaDB"),
        (vec!["empty.log", "--to", address.as_str()], "no statement to send"),
        (vec!["-", "--to", address.as_str()], "standard input"),
        (vec!["absent.log", "--to", address.as_str()], "absent.log"),
        (vec!["slow.log", "--to", address.as_str(), "--speed", "0"], "0.001"),
        (vec!["slow.log", "--to", address.as_str(), "--rounds", "2"], "--to twice"),
        (vec!["slow.log", "--to", address.as_str(), "--to", wrong.as_str()], "new: "),
        (vec!["slow.log", "--to", address.as_str(), "--to", postgres.as_str()], "MySQL or MariaDB"),
        (
            vec!["slow.log", "--to", address.as_str(), "--to", wrong.as_str(), "--watch", wrong.as_str()],
            "old=… or new=…",
        ),
    ] {
        let done = finish(holdup(["replay"]).args(&arguments).current_dir(dir.path()), 60);
        assert_eq!(done.code(), Some(2), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(word) && !done.stderr.contains("wr0ng"), "{arguments:?}: {}", done.stderr);
        assert!(!dir.path().join("recordings").exists(), "{arguments:?}");
    }
}
