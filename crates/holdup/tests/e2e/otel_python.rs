//! `examples/python-otel`: a Flask app with OpenTelemetry's stock packages and sqlcommenter, as its README says it is run. What
//! the load sent, what the app says and what the server says are of the same requests: joined by trace id.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdup_recording::Recording;
use holdup_testing::{Postgres, Which};

use crate::mariadb::{self, CANARY};
use crate::program::{Running, finish, free_port, holdup, root, send, skip};

/// Of the requests so many have to be joined.
const JOINED: f64 = 0.95;

fn example() -> PathBuf {
    root().join("examples/python-otel")
}

/// Python with what the example needs, in target/py-otel.
fn python() -> Option<PathBuf> {
    let dir = root().join("target/py-otel");
    let (python, stamp) = (dir.join("bin/python"), dir.join("installed.txt"));
    // Each test is a process of its own: one makes it, and the others wait.
    let lock = std::fs::File::create(root().join("target/py-otel.lock")).unwrap();
    lock.lock().unwrap();
    let list = std::fs::read_to_string(example().join("requirements.txt")).unwrap();
    let run = |command: &mut Command| finish(command, 300).status.success();
    // One that does not start may be of a Python that is gone, or of a clone that lay elsewhere.
    let works = Command::new(&python).args(["-c", "import opentelemetry"]).output().is_ok_and(|it| it.status.success());
    if works && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == list) {
        return Some(python);
    }
    let made = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))
        && run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(example().join("requirements.txt")));
    if !made {
        skip("the packages of examples/python-otel can't be installed; pip needs to reach PyPI or a mirror of it");
        return None;
    }
    std::fs::write(stamp, list).unwrap();
    Some(python)
}

/// The app, stopped when the test ends.
struct App(Running, u16);

impl App {
    fn start(python: &PathBuf, database: &str, otlp: u16) -> Self {
        let port = free_port();
        let running = Running::start(
            Command::new(python)
                .args(["-B", "serve.py", &port.to_string()])
                .current_dir(example())
                .env("DATABASE_URL", database)
                .env("OTEL_SERVICE_NAME", "shop")
                .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{otlp}"))
                .env("OTEL_BSP_SCHEDULE_DELAY", "500")
                .stdin(Stdio::null()),
        );
        let deadline = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "the app does not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        Self(running, port)
    }
}

impl Drop for App {
    fn drop(&mut self) {
        send(self.0.pid(), libc::SIGTERM);
    }
}

#[test]
fn requests_spans_and_statements_of_mariadb_are_joined() {
    if !mariadb::is_here() {
        return;
    }
    let Some(python) = python() else { return };
    let server = mariadb::start();
    server.run(&format!(
        "CREATE DATABASE shop; CREATE USER 'app'@'%' IDENTIFIED BY '{CANARY}'; GRANT SELECT ON shop.* TO 'app'@'%';
         UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME LIKE 'events_statements%'; USE shop; {}",
        std::fs::read_to_string(example().join("schema.sql")).unwrap()
    ));
    let database = format!("{}/shop", server.address("app", CANARY));
    joined(&python, &database, &server.address(mariadb::USER, CANARY), "mysql");
}

#[test]
fn requests_spans_and_statements_of_postgresql_are_joined() {
    let Some(python) = python() else { return };
    let settings = [("log_min_duration_statement", "0"), ("log_line_prefix", "%m [%p] %q%u@%d ")];
    let Some(server) = Postgres::of(Which::System, &settings) else { return };
    server.run(&std::fs::read_to_string(example().join("schema.sql")).unwrap());
    server.run(&format!("CREATE USER watcher PASSWORD '{CANARY}'; GRANT pg_monitor TO watcher;"));
    let place = format!("127.0.0.1:{}/postgres", server.port);
    let watch = format!("postgresql://watcher:{CANARY}@{place}?log={}", server.log().display());
    joined(&python, &format!("postgresql://boss@{place}"), &watch, "postgresql");
}

/// Puts load on the app, watches it and its database, and looks whether what they say is joined.
fn joined(python: &PathBuf, database: &str, watch: &str, system: &str) {
    let otlp = free_port();
    let app = App::start(python, database, otlp);
    let dir = tempfile::tempdir().unwrap();
    let (scenario, out) = (dir.path().join("load.yaml"), dir.path().join("out"));
    let text = std::fs::read_to_string(example().join("load.yaml")).unwrap();
    let text = text.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", app.1)).replace("duration: 10s", "duration: 5s");
    std::fs::write(&scenario, text).unwrap();
    let run = Running::start(
        holdup(["run", "--json"])
            .arg(&scenario)
            .args(["--watch", &format!("otlp:127.0.0.1:{otlp}"), "--watch", watch, "-o"])
            .arg(&out),
    );
    let done = run.finish(Duration::from_secs(120));
    assert!(matches!(done.code(), Some(0 | 1)), "{}", done.stderr);
    assert!(!done.stdout.contains(CANARY) && !done.stderr.contains(CANARY));
    let tables = Recording::open(&out).unwrap().tables;

    let sent: BTreeSet<&str> = tables
        .requests
        .rows
        .iter()
        .filter(|row| row.outcome == "ok")
        .filter_map(|row| row.trace_id.as_deref())
        .collect();
    assert!(sent.len() > 100, "{} of {} requests have a trace id", sent.len(), tables.requests.rows.len());
    let mut said = BTreeMap::<(&str, &str), usize>::new();
    for span in &tables.spans.rows {
        *said.entry((span.trace_id.as_str(), span.resource.as_str())).or_default() += 1;
    }
    let mut digests = BTreeSet::new();
    for row in tables.statements.rows.iter().filter(|row| row.kind == "execution") {
        if let Some(trace) = row.trace_id.as_deref() {
            *said.entry((trace, "execution")).or_default() += 1;
            digests.insert(row.digest.as_str());
        }
    }
    for (what, at_least) in [("request", 1), ("database", 2), ("execution", 2)] {
        let has = |trace: &&&str| said.get(&(**trace, what)).is_some_and(|count| *count >= at_least);
        let joined = sent.iter().filter(has).count();
        assert!(joined as f64 >= JOINED * sent.len() as f64, "{what}: {joined} of {} requests", sent.len());
    }
    // The app's text of a statement and the server's meet under one digest.
    let of_spans: BTreeSet<&str> = tables
        .spans
        .rows
        .iter()
        .filter(|span| span.resource == "database" && span.system.as_deref().is_some_and(|name| name.contains(system)))
        .filter_map(|span| span.digest.as_deref())
        .collect();
    let texts = || tables.spans.rows.iter().filter_map(|span| span.digest_text.as_deref()).collect::<BTreeSet<_>>();
    assert!(of_spans.is_superset(&digests) && digests.len() == 2, "{digests:?} {:?}", texts());
}
