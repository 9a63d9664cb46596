//! A MariaDB with a pool of one thread, a port beside the pool, and everything switched on that holdup can read: own datadir, own
//! ports, on loopback, gone with the test.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::watch::{Options, collector};

use crate::client::{Conn, Refused};
use crate::template;

/// The server's program.
pub const MARIADBD: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";

const USERS: &str = "CREATE DATABASE IF NOT EXISTS lab;
CREATE TABLE IF NOT EXISTS lab.t (id INT PRIMARY KEY, note VARCHAR(100)) ENGINE=InnoDB;
REPLACE INTO lab.t VALUES (1, 'a'), (2, 'b');
CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY 'app';
GRANT ALL ON lab.* TO 'app'@'%';
CREATE USER IF NOT EXISTS 'watcher'@'%' IDENTIFIED BY 's3cr3t-canary';
GRANT PROCESS ON *.* TO 'watcher'@'%';
GRANT SELECT ON performance_schema.* TO 'watcher'@'%';
CREATE USER IF NOT EXISTS 'poor'@'%' IDENTIFIED BY 's3cr3t-canary';
CREATE USER IF NOT EXISTS 'admin'@'%' IDENTIFIED BY 'admin';
GRANT ALL ON *.* TO 'admin'@'%' WITH GRANT OPTION;
";

/// A pool that adds no thread during the test (what waits, waits) and all that holdup can read switched on.
const POOL: &[&str] = &[
    "--thread-handling=pool-of-threads",
    "--thread-pool-size=1",
    "--thread-pool-oversubscribe=1",
    // Longer than the test: no thread is added because one is held.
    "--thread-pool-stall-limit=3600000",
    "--performance-schema=ON",
    "--performance-schema-consumer-events-statements-current=ON",
    "--performance-schema-consumer-events-statements-history-long=ON",
    "--performance-schema-instrument=stage/sql/%=ON",
    "--performance-schema-consumer-events-stages-current=ON",
    "--performance-schema-consumer-events-stages-history-long=ON",
];

/// The server.
pub struct MariaDb {
    pub process: Child,
    pub dir: tempfile::TempDir,
    pub port: u16,
    pub extra_port: u16,
}

impl MariaDb {
    pub fn new() -> Self {
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
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        });
        std::fs::write(dir.path().join("init.sql"), USERS).unwrap();
        let (port, extra_port) = (free_port(), free_port());
        let process = start(dir.path(), port, extra_port, POOL);
        let server = Self { process, dir, port, extra_port };
        server.wait();
        server
    }

    pub fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.client().is_err() {
            assert!(Instant::now() < deadline, "mariadbd does not come up: {}", self.log());
            sleep(Duration::from_millis(100));
        }
    }

    pub fn client(&self) -> Result<Conn, Refused> {
        self.connect("app", "app")
    }

    pub fn connect(&self, user: &str, password: &str) -> Result<Conn, Refused> {
        Conn::tcp(self.port, user, password)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub fn restart(&mut self, settings: &[&str]) {
        self.kill();
        self.process = start(self.dir.path(), self.port, self.extra_port, settings);
        self.wait();
    }

    /// Runs what a coverage entry or an error tells the user to run.
    pub fn as_admin(&self, statements: &str) {
        let mut admin = self.connect("admin", "admin").unwrap();
        for statement in statements.split_inclusive(';') {
            admin.query_drop(statement).unwrap();
        }
    }

    pub fn watch(&self, user: &str, password: &str, more: &str, partial: bool) -> Box<dyn Collector> {
        let address = format!("mysql://{user}:{password}@127.0.0.1:{}{more}", self.port);
        collector(&address, &Options { partial, ..Options::default() }).unwrap()
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start(dir: &Path, port: u16, extra_port: u16, settings: &[&str]) -> Child {
    let log = std::fs::File::create(dir.join("log")).unwrap();
    Command::new(MARIADBD)
        .env("TMPDIR", dir)
        .args(["--no-defaults", "--bind-address=127.0.0.1", "--extra-max-connections=3"])
        .args(settings)
        .arg(format!("--datadir={}", dir.join("data").display()))
        .arg(format!("--socket={}", dir.join("socket").display()))
        .arg(format!("--init-file={}", dir.join("init.sql").display()))
        .arg(format!("--port={port}"))
        .arg(format!("--extra-port={extra_port}"))
        .args(as_root())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn as_root() -> &'static [&'static str] {
    // SAFETY: it reads the process's own user id and cannot fail.
    if unsafe { libc::geteuid() } == 0 { &["--user=root"] } else { &[] }
}

/// A port on which nothing listens.
pub fn free_port() -> u16 {
    holdup_lab::ports::free().unwrap()
}
