//! A server of a test's own, and what is asked of the collector again and again.

use std::ops::{Deref, DerefMut};
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::slow::SlowRequests;
use holdup_collect::watch::{Options, collector};
use holdup_recording::rows::Session;
use holdup_recording::{Batch, Coverage};
use holdup_testing::MariaDb;

use crate::client::{Conn, Refused};

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

/// A server with what [`SETUP`] makes.
pub struct Server(MariaDb);

impl Deref for Server {
    type Target = MariaDb;
    fn deref(&self) -> &MariaDb {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut MariaDb {
        &mut self.0
    }
}

/// MariaDB with these settings; none where it is not installed, which without `CI` is no failure.
pub fn mariadb(settings: &[&str]) -> Option<Server> {
    Some(Server::start(MariaDb::new()?, settings))
}

impl Server {
    /// Starts `server` with these settings.
    pub fn start(server: MariaDb, settings: &[&str]) -> Self {
        let server = server.with(settings.iter().copied()).start();
        server.run(&SETUP.join(";"));
        Self(server)
    }

    /// User and system time that it has used.
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process().pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        // Fields 14 and 15 of proc(5), counted from the third; a hundred ticks are a second.
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// As root over the socket, who needs no password there.
    pub fn root(&self) -> Result<Conn, Refused> {
        Conn::root(&self.socket())
    }

    pub fn client(&self) -> Conn {
        Conn::tcp(self.port, "app", "app").unwrap()
    }

    pub fn address(&self, user: &str) -> String {
        self.0.address(user, user)
    }

    /// The collector, and what it says it can see.
    pub fn watch(&self, slow: Option<SlowRequests>) -> (Box<dyn Collector>, Vec<Coverage>) {
        let options = Options { slow, ..Options::default() };
        let mut watcher = collector(&self.address("watcher"), &options).unwrap();
        let coverage = watcher.probe().unwrap();
        (watcher, coverage)
    }
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
