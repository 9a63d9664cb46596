//! Three hosts that serve a load, in network namespaces of their own, with 5 ms between app and
//! database: each recorded by a holdup of its own, and then judged as one case.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use holdup_recording::Recording;
use serde_json::Value;

use super::apart::store;
use super::networks::Networks;
use super::{MS, culprit, host, judged, residual};
use crate::mariadb::{self, CANARY, MariaDb, USER};
use crate::program::{Running, free_port, holdup, skip};

/// What goes wrong after 8 s, for 7 s.
#[derive(Clone, Copy)]
enum Fault {
    Delay,
    Lock,
}

const TABLES: &str = "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, title VARCHAR(40));
    INSERT INTO shop.item SELECT seq, MD5(seq) FROM seq_1_to_1000; CREATE TABLE shop.daily (day INT PRIMARY KEY, views INT);
    INSERT INTO shop.daily VALUES (1, 0); GRANT ALL ON shop.* TO 'holdup'@'%';";

const ROUTE: &str =
    "--route=/=SELECT title FROM item WHERE id = {id}; UPDATE daily SET views = views + 1 WHERE day = 1";

/// holdup with `arguments` in the network `namespace`.
fn within<S: AsRef<str>>(namespace: &str, arguments: &[S]) -> Command {
    let program = holdup::<&str>([]);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program.get_program()).args(arguments.iter().map(AsRef::as_ref));
    command.env("NO_COLOR", "1").env("HOLDUP_MYSQL_PASSWORD", CANARY);
    command
}

/// Records `fault` on three hosts, whose clocks differ by 40 and -25 ms, and judges it.
fn verdict(fault: Fault) -> Option<Value> {
    if !mariadb::is_here() {
        return None;
    }
    let networks = match Networks::make() {
        Ok(networks) => networks,
        Err(why) => {
            skip(&format!("network namespaces with a link cannot be made here: {why}"));
            return None;
        }
    };
    networks.delay(Duration::from_millis(5));
    let server = MariaDb::start_within(&networks.database);
    server.set_up_with(TABLES);
    let (app, port) = (free_port(), server.port());
    let address = format!("--database=mysql://{USER}@{}:{port}/shop", networks.database_address);
    let listen = format!("--listen={}:{app}", networks.app_address);
    let service = [
        "service",
        &listen,
        "--allow-remote",
        "--admin=127.0.0.1:9100",
        &address,
        "--otlp=http://127.0.0.1:4318",
        "--pool=60",
        ROUTE,
    ];
    let mut service = within(&networks.app, &service).stdin(std::process::Stdio::null()).spawn().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let raw = |name: &str| dir.path().join("raw").join(name).display().to_string();
    let watch = |namespace: &str, name: &str, sources: &[String]| {
        let mut words = vec![
            "watch".to_owned(),
            "-q".to_owned(),
            "--for=30s".to_owned(),
            "--interval=500ms".to_owned(),
            format!("-o={}", raw(name)),
        ];
        words.extend(sources.iter().map(|source| format!("--watch={source}")));
        Running::start(&mut within(namespace, &words))
    };
    let database = ["host".to_owned(), format!("pid:{}", server.pid()), format!("mysql://{USER}@127.0.0.1:{port}")];
    let of_database = watch(&networks.database, "db1", &database);
    let sources = ["otlp:127.0.0.1:4318", "prometheus:http://127.0.0.1:9100/metrics", &format!("server:{app}")];
    let of_app = watch(&networks.app, "app1", &sources.map(str::to_owned));
    std::thread::sleep(Duration::from_secs(3));
    let url = format!("http://{}:{app}/", networks.app_address);
    let output = raw("gen1");
    let run = [
        "run",
        "--url",
        &url,
        "--rate=60",
        "--duration=22s",
        "--connections=400",
        "-q",
        "-o",
        &output,
        "--warm-up=none",
    ];
    let load = Running::start(&mut within(&networks.generator, &run));
    std::thread::sleep(Duration::from_secs(9));
    match fault {
        Fault::Delay => {
            networks.delay(Duration::from_millis(30));
            std::thread::sleep(Duration::from_secs(7));
            networks.delay(Duration::from_millis(5));
        }
        Fault::Lock => (0..16).for_each(|_| {
            server.run_and_read("BEGIN; UPDATE shop.daily SET views = views + 1; DO SLEEP(0.4); COMMIT");
        }),
    }
    let load = load.finish(Duration::from_secs(90));
    assert!(matches!(load.code(), Some(0 | 1)), "{}", load.stderr);
    for watch in [of_app, of_database] {
        let done = watch.finish(Duration::from_secs(90));
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
    }
    let _ = service.kill().and_then(|()| service.wait().map(drop));
    let parts = [("gen1", 0), ("app1", 40 * MS), ("db1", -25 * MS)].map(|(name, by_ns)| {
        let from = raw(name);
        let recording = Recording::open(Path::new(&from)).unwrap();
        let place = dir.path().join(name);
        store(&place, recording.manifest, recording.tables.into_batch(), by_ns);
        let _ = std::fs::copy(Path::new(&from).join("latency.hlog"), place.join("latency.hlog"));
        place.display().to_string()
    });
    Some(judged(&[&parts[0], &parts[1], &parts[2]]))
}

/// Clocks, and the ledger, of every fault.
fn measures(verdict: &Value) {
    println!("{}\n{:#}\nresidual {:.3}", verdict["headline"], verdict["fleet"], residual(verdict));
    for (name, offset_ms) in [("app1", -40.0), ("db1", 25.0)] {
        let found = host(verdict, name)["clock"]["offset_ms"].as_f64().unwrap();
        assert!((found - offset_ms).abs() <= 1.0, "{name}: {}", host(verdict, name));
    }
    assert!(residual(verdict) <= 0.05, "{:#}", verdict["ledger"]);
}

#[test]
fn a_slow_way_is_between_two_hosts() {
    let Some(verdict) = verdict(Fault::Delay) else { return };
    measures(&verdict);
    assert_eq!(verdict["culprit"], "network_delay", "{:#}", verdict["findings"]);
    assert_eq!(culprit(&verdict)["hosts"], serde_json::json!(["app1", "db1"]));
}

#[test]
fn a_lock_is_on_the_database_s_host() {
    let Some(verdict) = verdict(Fault::Lock) else { return };
    measures(&verdict);
    assert_eq!(verdict["culprit"], "lock_contention", "{:#}", verdict["findings"]);
    assert_eq!(culprit(&verdict)["hosts"], serde_json::json!(["db1"]));
}
