//! The servers under watch: real ones, which stay for all draws of one process, each with a small load while a draw is played.

use holdup_testing::Postgres;

use crate::mariadb::{self, CANARY, MariaDb, POOR, USER};
use crate::program::{Running, holdup};

use super::draw::{Fault, Which};

/// The account on PostgreSQL.
const WATCHER: &str = "watcher";

pub struct Servers {
    mariadb: MariaDb,
    postgresql: Postgres,
}

impl Servers {
    /// None where one of them is not installed.
    pub fn start() -> Option<Self> {
        if !mariadb::is_here() {
            return None;
        }
        let postgresql = Postgres::of(holdup_testing::Which::System, &[])?;
        postgresql.run(&format!("CREATE ROLE {WATCHER} LOGIN; GRANT pg_monitor TO {WATCHER}"));
        Some(Self { mariadb: mariadb::start(), postgresql })
    }

    /// Waits until both answer.
    pub fn wait(&mut self) {
        self.mariadb.wait();
        self.postgresql.wait();
    }

    /// What to watch.
    pub fn addresses(&self) -> [String; 2] {
        [self.mariadb.address(USER, CANARY), self.postgresql.url(WATCHER, "postgres")]
    }

    /// What they are called in recordings.
    pub fn sources(&self) -> [String; 2] {
        [self.mariadb.source(), self.postgresql.source()]
    }

    pub fn source(&self, which: Which) -> String {
        match which {
            Which::MariaDb => self.mariadb.source(),
            Which::PostgreSql => self.postgresql.source(),
        }
    }

    /// A load on each, until it is dropped.
    pub fn load(&self) -> [(Running, tempfile::TempDir); 2] {
        let loads = [
            (self.mariadb.address(POOR, CANARY), "SELECT SLEEP(0.01)"),
            (self.postgresql.url("boss", "postgres"), "SELECT count(*) FROM generate_series(1, 2000)"),
        ];
        loads.map(|(address, query)| {
            let to = tempfile::tempdir().unwrap();
            let mut command = holdup(["run", "--url", &address, "--query", query, "--rate=20", "--duration=10m"]);
            command.args(["--connections=4", "--no-collect", "--quiet", "-o"]).arg(to.path().join("load"));
            (Running::start(&mut command), to)
        })
    }

    pub fn begin(&self, fault: Fault, which: Which) {
        match fault {
            Fault::ServerKilled => self.signal(which, libc::SIGKILL),
            Fault::ServerHung => self.signal(which, libc::SIGSTOP),
            _ => self.refuse(which, true),
        }
    }

    pub fn end(&mut self, fault: Fault, which: Which) {
        match (fault, which) {
            (Fault::ServerKilled, Which::MariaDb) => self.mariadb.launch(),
            (Fault::ServerKilled, Which::PostgreSql) => self.postgresql.launch(),
            (Fault::ServerHung, _) => self.signal(which, libc::SIGCONT),
            _ => self.refuse(which, false),
        }
    }

    fn signal(&self, which: Which, signal: i32) {
        match which {
            Which::MariaDb => self.mariadb.signal(signal),
            Which::PostgreSql => self.postgresql.process().signal_all(signal),
        }
    }

    fn refuse(&self, which: Which, refuses: bool) {
        match (which, refuses) {
            (Which::MariaDb, true) => {
                let lock = format!("ALTER USER '{USER}'@'%' ACCOUNT LOCK; KILL USER '{USER}'");
                self.mariadb.run(&lock);
            }
            (Which::MariaDb, false) => drop(self.mariadb.run(&format!("ALTER USER '{USER}'@'%' ACCOUNT UNLOCK"))),
            (Which::PostgreSql, true) => {
                self.postgresql.run(&format!("ALTER ROLE {WATCHER} NOLOGIN"));
                let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename =";
                self.postgresql.run(&format!("{end} '{WATCHER}'"));
            }
            (Which::PostgreSql, false) => drop(self.postgresql.run(&format!("ALTER ROLE {WATCHER} LOGIN"))),
        }
    }
}
