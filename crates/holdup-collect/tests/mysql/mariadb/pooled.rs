//! A MariaDB with a pool of one thread, a port beside the pool, and everything switched on that holdup can read: own datadir, own
//! ports, on loopback, gone with the test.

use std::ops::{Deref, DerefMut};

use holdup_collect::Collector;
use holdup_collect::watch::{Options, collector};
use holdup_testing::free_port;

use crate::client::{Conn, Refused};

/// Executed in `lab`: statements outside of a database are what the collector itself executes.
const USERS: &str = "CREATE DATABASE lab; USE lab;
CREATE TABLE lab.t (id INT PRIMARY KEY, note VARCHAR(100)) ENGINE=InnoDB;
INSERT INTO lab.t VALUES (1, 'a'), (2, 'b');
CREATE USER 'app'@'%' IDENTIFIED BY 'app';
GRANT ALL ON lab.* TO 'app'@'%';
CREATE USER 'watcher'@'%' IDENTIFIED BY 's3cr3t-canary';
GRANT PROCESS ON *.* TO 'watcher'@'%';
GRANT SELECT ON performance_schema.* TO 'watcher'@'%';
CREATE USER 'poor'@'%' IDENTIFIED BY 's3cr3t-canary';
CREATE USER 'admin'@'%' IDENTIFIED BY 'admin';
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
    server: holdup_testing::MariaDb,
    pub extra_port: u16,
}

impl Deref for MariaDb {
    type Target = holdup_testing::MariaDb;
    fn deref(&self) -> &Self::Target {
        &self.server
    }
}

impl DerefMut for MariaDb {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.server
    }
}

impl MariaDb {
    pub fn start() -> Option<Self> {
        let extra_port = free_port();
        let server = holdup_testing::MariaDb::new()?.with(settings(extra_port, POOL)).start();
        server.run(USERS);
        Some(Self { server, extra_port })
    }

    pub fn client(&self) -> Result<Conn, Refused> {
        self.connect("app", "app")
    }

    pub fn connect(&self, user: &str, password: &str) -> Result<Conn, Refused> {
        Conn::tcp(self.port, user, password)
    }

    pub fn restart(&mut self, more: &[&str]) {
        self.kill();
        let settings = settings(self.extra_port, more);
        self.set(settings);
        self.again();
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

fn settings(extra_port: u16, more: &[&str]) -> Vec<String> {
    let own = ["--extra-max-connections=3".to_owned(), format!("--extra-port={extra_port}")];
    own.into_iter().chain(more.iter().map(|&setting| setting.to_owned())).collect()
}
