//! Statements as load, on a real MariaDB and a real PostgreSQL: what they do, and what is made of a server that is slow,
//! full, stopped or killed. A server runs many of them, one after the other, for starting one costs a second.

mod mishaps;
mod statements;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use holdup_load::scenario::Scenario;
use holdup_testing::PASSWORD;
use holdup_testing::client::Client;
use holdup_testing::lab::{MariaDb, Postgres};

use crate::play::{Played, patient, play};

/// Either server, as far as the tests need it.
pub trait Database {
    /// Whether it is MySQL's dialect.
    const IS_MYSQL: bool;
    /// A target for this account.
    fn target(&self, user: &str, password: &str) -> String;
    /// The same in a database that there is not.
    fn nowhere(&self) -> String;
    /// Somebody with all rights.
    fn boss(&self) -> Client;
    /// See [`MariaDb::certificate_file`].
    fn certificate(&self) -> PathBuf;
    /// Ends it as a crash does.
    fn kill(&mut self);
    /// Starts it again.
    fn restart(&mut self);
}

impl Database for MariaDb {
    const IS_MYSQL: bool = true;
    fn target(&self, user: &str, password: &str) -> String {
        self.address(user, password)
    }
    fn nowhere(&self) -> String {
        self.address("app", PASSWORD).replace("/lab", "/nowhere")
    }
    fn boss(&self) -> Client {
        self.client()
    }
    fn certificate(&self) -> PathBuf {
        self.certificate_file()
    }
    fn kill(&mut self) {
        (**self).kill();
    }
    fn restart(&mut self) {
        self.again();
    }
}

impl Database for Postgres {
    const IS_MYSQL: bool = false;
    fn target(&self, user: &str, password: &str) -> String {
        self.address(user, password, "lab")
    }
    fn nowhere(&self) -> String {
        self.address("app", PASSWORD, "nowhere")
    }
    fn boss(&self) -> Client {
        self.client()
    }
    fn certificate(&self) -> PathBuf {
        self.certificate_file()
    }
    fn kill(&mut self) {
        (**self).kill();
    }
    fn restart(&mut self) {
        self.again();
    }
}

/// A scenario of the account that has all rights.
fn read<D: Database>(server: &D, rest: &str) -> Scenario {
    at(&server.target("app", PASSWORD), rest)
}

fn at(target: &str, rest: &str) -> Scenario {
    let text = patient(&format!("target: {target}\n{rest}"));
    Scenario::parse(&text, "test.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run<D: Database>(server: &D, rest: &str) -> Played {
    play(&read(server, rest), None)
}

/// How often `operation` ended so.
fn count(played: &Played, operation: &str, outcome: &str) -> u64 {
    let found = played.summary.operations.iter().find(|o| o.operation == operation);
    let names: Vec<&str> = played.summary.operations.iter().map(|o| o.operation.as_str()).collect();
    let found = found.unwrap_or_else(|| panic!("no {operation}: {names:?}"));
    if outcome == "ok" { found.completed } else { found.failures.get(outcome).copied().unwrap_or(0) }
}

/// Connections of the load that the server has now.
fn connections<D: Database>(boss: &mut Client) -> u64 {
    let text = if D::IS_MYSQL {
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER <> 'system user'"
    } else {
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'holdup'"
    };
    boss.value(text).parse().unwrap()
}

/// Until what the server was given up for, and who said goodbye, has gone.
fn await_nobody<D: Database>(server: &D) {
    let (mut boss, begun) = (server.boss(), Instant::now());
    while connections::<D>(&mut boss) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(120), "connections of the load stay");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn statements_of_mariadb() {
    let Some(server) = MariaDb::start() else { return };
    server.boss().query("SET GLOBAL max_statement_time = 30");
    statements::all(&server);
}

#[test]
fn mishaps_of_mariadb() {
    let Some(mut server) = MariaDb::start() else { return };
    let target = server.target("app", PASSWORD);
    let wrong_port = thread::spawn(move || mishaps::wrong_port(&target));
    mishaps::all(&mut server);
    mishaps::stopped(&server);
    wrong_port.join().unwrap();
}

#[test]
fn statements_of_postgres() {
    let Some(server) = Postgres::start() else { return };
    statements::all(&server);
}

#[test]
fn mishaps_of_postgres() {
    let Some(mut server) = Postgres::start() else { return };
    let target = server.target("app", PASSWORD);
    let wrong_port = thread::spawn(move || mishaps::wrong_port(&target));
    mishaps::all(&mut server);
    wrong_port.join().unwrap();
}

/// It relies on a process of its own, as cargo-nextest gives each test: what the process needs is measured.
#[test]
fn a_gigabyte_of_mariadb() {
    let Some(server) = MariaDb::start() else { return };
    statements::gigabyte(&server);
}

/// See [`a_gigabyte_of_mariadb`].
#[test]
fn a_gigabyte_of_postgres() {
    let Some(server) = Postgres::start() else { return };
    statements::gigabyte(&server);
}
