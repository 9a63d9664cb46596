//! The collector of PgBouncer's console, on a real PgBouncer in front of a real PostgreSQL.

use std::fs;
use std::process::Command;
use std::thread::{sleep, spawn};
use std::time::Duration;

use holdup_collect::Collector;
use holdup_recording::Batch;
use holdup_testing::{Process, command_of_nobody, folder_of_nobody, free_port, give_to_nobody, program};

use crate::watch;
use crate::{Server, Which};

const CLIENTS: usize = 8;

/// A PgBouncer of the test's own.
struct Pool {
    port: u16,
    _process: Process,
    _folder: tempfile::TempDir,
}

impl Pool {
    /// Two connections to `server`; none where PgBouncer is not installed.
    fn start(server: &Server, mode: &str) -> Option<Self> {
        let program = program("pgbouncer", "pgbouncer")?;
        let (folder, port) = (folder_of_nobody(), free_port());
        let users = folder.path().join("users");
        let options = folder.path().join("options");
        fs::write(&users, "\"boss\" \"s3cr3t-canary\"\n\"watcher\" \"s3cr3t-canary\"\n").expect("a file");
        let text = format!(
            "[databases]\nshop = host=127.0.0.1 port={} dbname=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             auth_type = md5\nauth_file = {}\nunix_socket_dir =\npool_mode = {mode}\ndefault_pool_size = 2\nstats_users = watcher\n",
            server.port,
            users.display()
        );
        fs::write(&options, text).expect("a file");
        [&users, &options].into_iter().for_each(|path| give_to_nobody(path));
        let mut command = command_of_nobody(&program);
        command.arg(&options).current_dir(folder.path());
        let mut process = Process::start(&mut command, &folder.path().join("log"), libc::SIGKILL);
        let mut asked = psql(port, &["SELECT 1"]);
        process.wait("answer", || asked.output().is_ok_and(|done| done.status.success()));
        Some(Self { port, _process: process, _folder: folder })
    }

    fn address(&self, user: &str) -> String {
        format!("pgbouncer://{user}:s3cr3t-canary@127.0.0.1:{}/pgbouncer", self.port)
    }
}

/// A session of the pool on this port that runs `statements`, and prints how long each took.
fn psql(port: u16, statements: &[&str]) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-U", "boss", "-d", "shop", "-p", &port.to_string()]);
    psql.args(["-c", "\\timing on"]).env("PGPASSWORD", "s3cr3t-canary");
    psql.args(statements.iter().flat_map(|statement| ["-c", statement]));
    psql
}

/// The sum of `metric` over the pools and databases of the app.
fn value(batch: &Batch, metric: &str) -> f64 {
    let rows = batch.samples.iter().filter(|row| row.metric == metric && row.labels.get("database") == Some("shop"));
    rows.map(|row| row.value).sum()
}

fn sampled(collector: &mut dyn Collector) -> Batch {
    let mut batch = Batch::default();
    collector.sample(&mut batch).expect("a sample");
    batch
}

#[test]
fn statements_that_wait_for_a_connection_in_transaction_mode() {
    // 8 clients of 5 statements each.
    waits("transaction", 1, 5);
}

#[test]
fn sessions_that_wait_for_a_connection_in_session_mode() {
    // 8 clients of 3 sessions each, of 2 statements.
    waits("session", 3, 2);
}

/// What clients measure beyond the time in PostgreSQL is what PgBouncer says they waited.
fn waits(mode: &str, sessions: usize, statements: usize) {
    let Some(server) = Server::of(Which::System, &[]) else { return };
    let Some(pool) = Pool::start(&server, mode) else { return };
    let mut collector = watch(&pool.address("watcher"));
    collector.probe().expect("it can be watched");
    let before = sampled(collector.as_mut());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut all: Vec<Command> =
                (0..sessions).map(|_| psql(pool.port, &vec!["SELECT pg_sleep(0.2)"; statements])).collect();
            spawn(move || all.iter_mut().map(|session| session.output().expect("psql ends")).collect::<Vec<_>>())
        })
        .collect();
    let (mut waiting, mut active, mut longest) = (0.0_f64, 0.0_f64, 0.0_f64);
    while !clients.iter().all(std::thread::JoinHandle::is_finished) {
        let now = sampled(collector.as_mut());
        waiting = waiting.max(value(&now, "pgbouncer_waiting_clients"));
        active = active.max(value(&now, "pgbouncer_active_servers"));
        longest = longest.max(value(&now, "pgbouncer_longest_wait_seconds"));
        sleep(Duration::from_millis(20));
    }
    let mut client_s = 0.0;
    for done in clients.into_iter().flat_map(|client| client.join().expect("it ends")) {
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let times = text.lines().filter_map(|line| line.strip_prefix("Time: ")?.split(' ').next()?.parse::<f64>().ok());
        client_s += times.map(|ms| ms / 1e3).sum::<f64>();
    }
    let after = sampled(collector.as_mut());
    let grew = |metric: &str| value(&after, metric) - value(&before, metric);
    let asked = (CLIENTS * sessions * statements) as f64;
    assert!(grew("pgbouncer_queries_total") >= asked, "{} of {asked}", grew("pgbouncer_queries_total"));
    // Six wait while two work; more for the moment in which a connection is opened or changes hands.
    assert!((6.0..=8.0).contains(&waiting), "{waiting}");
    assert_eq!((active, value(&after, "pgbouncer_pool_size")), (2.0, 2.0));
    assert!(longest > 0.2, "{longest} s");
    let (waited_s, worked_s) = (grew("pgbouncer_wait_time_seconds_total"), 0.2 * asked);
    // Six of eight wait while two work.
    assert!(waited_s > 1.5 * worked_s, "{waited_s} s of {worked_s} s");
    let by_clients_s = client_s - worked_s;
    assert!((waited_s / by_clients_s - 1.0).abs() < 0.05, "PgBouncer says {waited_s} s, clients {by_clients_s} s");
    // PgBouncer counts a statement from its arrival.
    let query_s = grew("pgbouncer_query_time_seconds_total");
    assert!((query_s / client_s - 1.0).abs() < 0.05, "PgBouncer says {query_s} s, clients {client_s} s");
    let mut batch = Batch::default();
    collector.settings(&mut batch).expect("settings");
    let setting = |name: &str| batch.settings.iter().find(|row| row.name == name).map(|row| row.value.as_str());
    assert_eq!((setting("pool_mode"), setting("default_pool_size")), (Some(mode), Some("2")));
    assert!(
        setting("pgbouncer_version").is_some_and(|version| version.contains("PgBouncer"))
            && setting("auth_file").is_none()
    );
}

#[test]
fn a_missing_right_is_named() {
    let Some(server) = Server::of(Which::System, &[]) else { return };
    let Some(pool) = Pool::start(&server, "session") else { return };
    let refused = |address: &str| watch(address).probe().expect_err("no source").to_string();
    let not_listed = refused(&pool.address("boss"));
    assert!(not_listed.contains("stats_users = boss") && not_listed.contains("pgbouncer.ini"), "{not_listed}");
    let wrong = refused(&format!("pgbouncer://watcher:canary@127.0.0.1:{}", pool.port));
    assert!(wrong.contains("user watcher, password given") && !wrong.contains("canary"), "{wrong}");
    let other = refused(&format!("pgbouncer://boss@127.0.0.1:{}", server.port));
    assert!(other.contains("is this its port"), "{other}");
    let closed = refused("pgbouncer://boss:canary@127.0.0.1:1");
    assert!(closed.contains("is PgBouncer running") && !closed.contains("canary"), "{closed}");
}
