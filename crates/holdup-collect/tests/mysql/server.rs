//! A server of a test's own, and what is asked of the collector again and again.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::slow::SlowRequests;
use holdup_collect::watch::{Options, collector};
use holdup_recording::rows::Session;
use holdup_recording::{Batch, Coverage};

use crate::client::{Conn, Refused};
use crate::template;

/// In every literal, and nowhere else: it must not come out.
pub const CANARY: &str = "literal-canary";

/// What any of the servers is given once it runs.
pub const SETUP: &[&str] = &[
    "CREATE DATABASE lab",
    "CREATE TABLE lab.t (id INT PRIMARY KEY, note VARCHAR(100)) ENGINE=InnoDB",
    "INSERT INTO lab.t VALUES (1, 'a'), (2, 'b')",
    "GRANT ALL ON lab.* TO 'app'@'127.0.0.1' IDENTIFIED BY 'app'",
    "GRANT PROCESS ON *.* TO 'watcher'@'127.0.0.1' IDENTIFIED BY 'watcher'",
    "GRANT SELECT ON performance_schema.* TO 'watcher'@'127.0.0.1'",
    "GRANT USAGE ON *.* TO 'poor'@'127.0.0.1' IDENTIFIED BY 'poor'",
];

/// A server that is killed when it is dropped.
pub struct Server {
    process: Child,
    pub port: u16,
    pub dir: tempfile::TempDir,
}

impl Server {
    /// Starts `command`, whose data is in `dir` already, and waits for it.
    pub fn start(command: Command, dir: tempfile::TempDir) -> Self {
        let port = holdup_lab::ports::free().unwrap();
        let server = Self { process: spawn(command, &dir, port), port, dir };
        server.wait();
        let mut root = server.root().unwrap();
        for statement in SETUP {
            root.query_drop(statement).unwrap();
        }
        server
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.root().is_err() {
            let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server does not come up: {}", log());
            sleep(Duration::from_millis(100));
        }
    }

    /// User and system time that it has used.
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        // Fields 14 and 15 of proc(5), counted from the third; a hundred ticks are a second.
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is our own child, which has not been waited for.
        unsafe { libc::kill(i32::try_from(self.process.id()).unwrap(), signal) };
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts a killed one again, by `command` on the same data and port.
    pub fn again(&mut self, command: Command) {
        self.process = spawn(command, &self.dir, self.port);
        self.wait();
    }

    /// As root over the socket, who needs no password there.
    pub fn root(&self) -> Result<Conn, Refused> {
        Conn::root(&self.dir.path().join("socket"))
    }

    pub fn client(&self) -> Conn {
        Conn::tcp(self.port, "app", "app").unwrap()
    }

    pub fn address(&self, user: &str) -> String {
        format!("mysql://{user}:{user}@127.0.0.1:{}", self.port)
    }

    /// The collector, and what it says it can see.
    pub fn watch(&self, slow: Option<SlowRequests>) -> (Box<dyn Collector>, Vec<Coverage>) {
        let options = Options { slow, ..Options::default() };
        let mut watcher = collector(&self.address("watcher"), &options).unwrap();
        let coverage = watcher.probe().unwrap();
        (watcher, coverage)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(mut command: Command, dir: &tempfile::TempDir, port: u16) -> Child {
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    command
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--port={port}"))
        .arg(format!("--datadir={}", dir.path().join("data").display()))
        .arg(format!("--socket={}", dir.path().join("socket").display()))
        .arg(format!("--pid-file={}", dir.path().join("pid").display()))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

const MARIADBD: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";

/// MariaDB with an empty data folder; none where it is not installed, which without `CI` is no failure.
pub fn mariadb() -> Option<(Command, tempfile::TempDir)> {
    if !Path::new(MARIADBD).exists() {
        assert!(std::env::var_os("CI").is_none(), "{MARIADBD} is not installed (apt-get install mariadb-server)");
        eprintln!("skipped: {MARIADBD} is not installed (apt-get install mariadb-server)");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    // A server that starts removes what it takes for its left-overs there: each has its own.
    let data = dir.path().join("data");
    template::fill(&data, Path::new(MARIADBD), || {
        let made = Command::new(INSTALL)
            .env("TMPDIR", dir.path())
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", data.display()))
            .args(as_root())
            .output()
            .unwrap();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(made.status.success(), "{} {} {}", made.status, words(&made.stdout), words(&made.stderr));
    });
    let command = mariadbd(dir.path());
    Some((command, dir))
}

/// The server whose folder is `dir`.
pub fn mariadbd(dir: &Path) -> Command {
    let mut command = Command::new(MARIADBD);
    command.arg("--no-defaults").env("TMPDIR", dir).args(as_root());
    command
}

fn as_root() -> &'static [&'static str] {
    // SAFETY: it reads the process's own user id and cannot fail.
    if unsafe { libc::geteuid() } == 0 { &["--user=root"] } else { &[] }
}

/// Adds samples to `batch` until `found` says that it is all there, for at most two minutes.
pub fn sample_until(collector: &mut Box<dyn Collector>, what: &str, found: impl Fn(&Batch) -> bool) -> Batch {
    let mut batch = Batch::default();
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        collector.sample(&mut batch).unwrap();
        let all = format!("{batch:?}");
        assert!(!all.contains(CANARY), "a literal came out");
        if found(&batch) {
            return batch;
        }
        assert!(Instant::now() < deadline, "{what}: not seen in {batch:#?}");
        sleep(Duration::from_millis(100));
    }
}

pub fn part<'a>(coverage: &'a [Coverage], name: &str) -> &'a Coverage {
    coverage.iter().find(|part| part.source.ends_with(name)).unwrap_or_else(|| panic!("{name}: {coverage:#?}"))
}

pub fn value(batch: &Batch, metric: &str) -> f64 {
    batch.samples.iter().rfind(|sample| sample.metric == metric).unwrap_or_else(|| panic!("no {metric}")).value
}

/// The newest row of that session.
pub fn session(batch: &Batch, id: i64) -> Option<&Session> {
    batch.sessions.iter().rfind(|session| session.session_id == id)
}

pub fn id(client: &Conn) -> i64 {
    i64::from(client.connection_id())
}
