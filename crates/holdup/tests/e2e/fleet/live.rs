//! Hosts that serve a load, in network namespaces of their own, 5 ms from generator to app and from app
//! to database: each recorded by a holdup of its own, two of which make the load. Three things go
//! wrong, one after the other; each must be named with its host.
//!
//! Time namespaces cannot shift the wall clock, so the recorded times are shifted.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdup_recording::{Recording, clock};
use serde_json::Value;

use super::apart::store;
use super::networks::Networks;
use super::{MS, culprit, host, judged_in, residual};
use crate::mariadb::{self, CANARY, MariaDb, USER};
use crate::program::{Running, free_port, holdup, skip};

/// How long a packet takes between two hosts, and while the way is slow.
const WAY: Duration = Duration::from_millis(5);
const SLOW_WAY: Duration = Duration::from_millis(30);

/// The load goes on for so long, in seconds, with these faults in it.
const LOAD_S: u64 = 29;
const QUEUE_S: [u64; 2] = [5, 10];
const DELAY_S: [u64; 2] = [14, 19];
const LOCK_S: [u64; 2] = [23, 28];

const TABLES: &str = "CREATE DATABASE shop; USE shop;
    CREATE TABLE item (id INT PRIMARY KEY, title VARCHAR(70));
    INSERT INTO item SELECT seq, SHA2(seq, 256) FROM seq_1_to_60000;
    CREATE TABLE daily (day INT PRIMARY KEY, views INT); INSERT INTO daily VALUES (1, 0);
    GRANT ALL ON shop.* TO 'holdup'@'%';";

const ROUTE: &str =
    "--route=/=SELECT title FROM item WHERE id = {id}; UPDATE daily SET views = views + 1 WHERE day = 1";

/// Scans that fill a thread pool of one group for about half of the time.
const SCANS: [&str; 4] =
    ["--connections=20", "--every=1s", "--for=5s", "--sql=SELECT COUNT(*) FROM item WHERE title LIKE '%pilot%'"];

/// A transaction that holds the row in which every request counts, four fifths of the time.
const HOLDER: [&str; 3] = [
    "--connections=1",
    "--for=5s",
    "--script=BEGIN; SELECT views FROM daily WHERE day = 1 FOR UPDATE; SLEEP 400ms; COMMIT; SLEEP 100ms",
];

/// holdup with `arguments` in the network `namespace`, on a host of that name.
fn on<S: AsRef<str>>(namespace: &str, host: &str, arguments: &[S]) -> Command {
    let program = holdup::<&str>([]);
    let mut command = Command::new("ip");
    let named = r#"echo "$0" >/proc/sys/kernel/hostname && exec "$@""#;
    command.args(["netns", "exec", namespace, "unshare", "--uts", "sh", "-c", named, host]);
    command.arg(program.get_program()).args(arguments.iter().map(AsRef::as_ref));
    command.env("NO_COLOR", "1").env("HOLDUP_MYSQL_PASSWORD", CANARY).stdin(Stdio::null());
    command
}

/// A service of this test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The hosts while they serve, and the recordings they make.
struct Hosts<'d> {
    networks: Networks,
    database: MariaDb,
    extra_port: u16,
    app_port: u16,
    dir: &'d Path,
}

impl<'d> Hosts<'d> {
    fn start(networks: Networks, dir: &'d Path) -> Self {
        let (extra_port, app_port) = (free_port(), free_port());
        let mut arguments = vec![format!("--extra-port={extra_port}")];
        let pool = [
            "--thread-handling=pool-of-threads",
            "--thread-pool-size=16",
            "--thread-pool-stall-limit=10",
            "--thread-pool-dedicated-listener=ON",
            "--thread-pool-exact-stats=ON",
            "--extra-max-connections=8",
            "--max-connections=300",
            "--innodb-flush-log-at-trx-commit=2",
        ];
        arguments.extend(pool.map(str::to_owned));
        let database = mariadb::start_at(Some(&networks.database), &arguments);
        database.run(TABLES);
        Self { networks, database, extra_port, app_port, dir }
    }

    fn serve(&self) -> Service {
        let Self { networks, database, app_port, .. } = self;
        let arguments = [
            "service".to_owned(),
            format!("--listen={}:{app_port}", networks.app_address),
            "--allow-remote".to_owned(),
            "--admin=127.0.0.1:9100".to_owned(),
            format!("--database=mysql://{USER}@{}:{}/shop", networks.database_address, database.port),
            "--otlp=http://127.0.0.1:4318".to_owned(),
            "--pool=50".to_owned(),
            ROUTE.to_owned(),
        ];
        let mut service = Service(on(&networks.app, "app1", &arguments).stdout(Stdio::piped()).spawn().unwrap());
        let mut said = String::new();
        let _ = BufReader::new(service.0.stdout.take().unwrap()).read_line(&mut said);
        assert!(said.starts_with("ready"), "the service does not start: {said}");
        service
    }

    /// Watches `sources` on a host until the load is over.
    fn watch(&self, namespace: &str, name: &str, sources: &[String]) -> Running {
        let output = self.raw(name);
        let length = format!("--for={}s", LOAD_S + 5);
        let mut words = vec!["watch", "-q", &length, "--interval=500ms", "--recording-id=live", "-o", &output];
        words.extend(sources.iter().flat_map(|source| ["--watch", source]));
        Running::start(&mut on(namespace, name, &words))
    }

    /// Makes a half of the load from the time `at` on.
    fn load(&self, name: &str, shard: &str, at: &str) -> Running {
        let (url, length) = (format!("http://{}:{}/", self.networks.app_address, self.app_port), format!("{LOAD_S}s"));
        let output = self.raw(name);
        let words = ["run", "--url", &url, "--rate=40", "--duration", &length, "--connections=200", "-q"];
        let more = ["--shard", shard, "--start-at", at, "--warm-up=none", "--recording-id=live", "-o", &output];
        Running::start(&mut on(&self.networks.generator, name, &[&words[..], &more].concat()))
    }

    /// Makes trouble on the database's host.
    fn disturb(&self, port: u16, arguments: &[&str]) -> Running {
        let database = format!("--database=mysql://{USER}@127.0.0.1:{port}/shop");
        Running::start(&mut on(&self.networks.database, "db1", &[&["hog", database.as_str()][..], arguments].concat()))
    }

    fn raw(&self, name: &str) -> String {
        self.dir.join("raw").join(name).display().to_string()
    }

    /// Three faults in the load that began at `begun`.
    fn go_wrong(&self, begun: Instant) {
        let until = |second: u64| {
            std::thread::sleep((begun + Duration::from_secs(second)).saturating_duration_since(Instant::now()));
        };
        until(QUEUE_S[0]);
        self.database.run("SET GLOBAL thread_pool_size = 1; SET GLOBAL thread_pool_stall_limit = 500");
        let scans = self.disturb(self.database.port, &SCANS);
        until(QUEUE_S[1]);
        drop(scans);
        self.database.run("SET GLOBAL thread_pool_size = 16; SET GLOBAL thread_pool_stall_limit = 10");
        until(DELAY_S[0]);
        self.networks.app_to_database.delay(SLOW_WAY);
        until(DELAY_S[1]);
        self.networks.app_to_database.delay(WAY);
        until(LOCK_S[0]);
        let holder = self.disturb(self.extra_port, &HOLDER);
        until(LOCK_S[1]);
        drop(holder);
    }
}

/// Records all faults on four hosts into `dir`, by clocks that differ by 40 and -25 ms. False where
/// that cannot be done.
fn record(dir: &Path) -> bool {
    if !mariadb::is_here() {
        return false;
    }
    let networks = match Networks::make() {
        Ok(networks) => networks,
        Err(why) => {
            skip(&format!("network namespaces with a delayed link cannot be made here: {why}"));
            return false;
        }
    };
    networks.generator_to_app.delay(WAY);
    networks.app_to_database.delay(WAY);
    let hosts = Hosts::start(networks, dir);
    let service = hosts.serve();
    let Hosts { networks, database, extra_port, app_port, .. } = &hosts;
    let port = database.port;
    let of_database = [
        "host".to_owned(),
        format!("pid:{}", database.process().pid()),
        format!("mysql://{USER}@127.0.0.1:{port}?extra_port={extra_port}"),
        format!("wire:{port}=mysql"),
    ];
    let of_app = [
        "otlp:127.0.0.1:4318".to_owned(),
        "prometheus:http://127.0.0.1:9100/metrics".to_owned(),
        format!("server:{app_port}"),
        format!("wire:{port}=mysql"),
    ];
    let watches = [hosts.watch(&networks.database, "db1", &of_database), hosts.watch(&networks.app, "app1", &of_app)];
    let at = clock::now_ns() + 3_000_000_000;
    let text = clock::rfc3339(at);
    let loads = [hosts.load("gen1", "1/2", &text), hosts.load("gen2", "2/2", &text)];
    let begun = Instant::now() + Duration::from_nanos((at - clock::now_ns()).unsigned_abs());
    hosts.go_wrong(begun);
    for load in loads {
        let load = load.finish(Duration::from_secs(60));
        assert!(matches!(load.code(), Some(0 | 1)), "{}", load.stderr);
    }
    for watch in watches {
        let done = watch.finish(Duration::from_secs(60));
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
    }
    drop(service);
    for (name, by_ns) in [("gen1", 0), ("gen2", 0), ("app1", 40 * MS), ("db1", -25 * MS)] {
        let from = hosts.raw(name);
        let recording = Recording::open(Path::new(&from)).unwrap();
        store(&dir.join(name), recording.manifest, recording.tables.into_batch(), by_ns);
        let _ = std::fs::copy(Path::new(&from).join("latency.hlog"), dir.join(name).join("latency.hlog"));
    }
    true
}

/// The arguments that judge the seconds from `from` to `to` of the load, which began so many seconds
/// after the recordings.
fn part(began_s: u64, from: u64, to: u64) -> Vec<String> {
    let window = [format!("--from={}s", began_s + from), format!("--to={}s", began_s + to)];
    ["gen1", "gen2", "app1", "db1"].map(str::to_owned).into_iter().chain(window).collect()
}

/// The clocks as they were found, and the ledger.
fn measures(verdict: &Value) {
    for (name, offset_ms) in [("gen2", 0.0), ("app1", -40.0), ("db1", 25.0)] {
        let clock = &host(verdict, name)["clock"];
        println!("{name}: {}", clock["text"]);
        let [found, error] = ["offset_ms", "error_ms"].map(|key| clock[key].as_f64().unwrap());
        println!("{name}: off by {:.3} ms", found - offset_ms);
        assert!((found - offset_ms).abs() <= error, "{name}: {clock}");
    }
    // Packets of both ends tell more than spans, whose beginning waits for a thread.
    let [app, database] = ["app1", "db1"].map(|name| host(verdict, name)["clock"]["offset_ms"].as_f64().unwrap());
    assert!((database - app - 65.0).abs() <= 1.0, "{:#}", verdict["fleet"]);
    println!("residual {:.3}", residual(verdict));
    assert!(residual(verdict) <= 0.05, "{:#}", verdict["ledger"]);
}

#[test]
#[holdup_witness::judged(VERDICTS)]
fn three_faults_are_found_on_their_hosts() {
    let dir = tempfile::tempdir().unwrap();
    if !record(dir.path()) {
        return;
    }
    let began = ["gen1", "gen2"].map(|name| {
        let manifest = Recording::manifest(&dir.path().join(name)).unwrap();
        (manifest.started_at, manifest.phases[0].from)
    });
    let started_at = began.iter().map(|(started_at, _)| *started_at).min().unwrap();
    let began_s = (began[0].1 - started_at).unsigned_abs() / 1_000_000_000;
    let faults = [
        (part(began_s, 0, DELAY_S[0] - 2), "thread_pool_queue", vec!["db1"]),
        (part(began_s, QUEUE_S[1] + 1, LOCK_S[0] - 2), "network_delay", vec!["app1", "db1"]),
        (part(began_s, DELAY_S[1] + 1, LOAD_S), "lock_contention", vec!["db1"]),
    ];
    for (arguments, cause, hosts) in faults {
        let verdict = judged_in(dir.path(), &arguments);
        measures(&verdict);
        assert_eq!(verdict["culprit"], cause, "{:#}", verdict["findings"]);
        assert_eq!(culprit(&verdict)["hosts"], serde_json::json!(hosts));
    }
}
