//! The soak's MariaDB and PostgreSQL: empty folders, private ports on loopback, started by the scripts of the labs. They are stopped
//! when the soak ends, also if it is killed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::steps::{ask, command, run as run_command};

/// Longest that a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(120);

/// Runs what follows the signal's name, and sends it that signal when standard input ends: so it does not outlive the
/// process that holds the other end.
const GUARD: &str = r#"signal=$1; shift; "$@" </dev/null & pid=$!; read -r _; kill -s "$signal" $pid; wait $pid"#;

/// A folder of servers is called so, with the process id of its soak behind it.
const FOLDER: &str = "holdup-soak-";

/// Rows of each table that the load works on.
pub const ROWS: u32 = 10_000;

/// A server, and the folder it may write to.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Both, running.
pub struct Servers {
    dir: PathBuf,
    mariadb_port: u16,
    postgres_port: u16,
    running: Vec<Server>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.running.clear();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Servers {
    /// Installs them if need be, starts them and makes the tables of the load.
    pub fn start(root: &Path) -> Result<Self> {
        run_command(command(root, "sh", &["labs/kit/need.sh", "mariadb-server", "postgresql"]))?;
        // PostgreSQL does not run as root and has to get through to its folder: the checkout may be closed to others.
        let temporary = std::env::temp_dir();
        remove_leftovers(&temporary);
        let dir = temporary.join(format!("{FOLDER}{}", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("failed to create {}", dir.display()))?;
        let mut servers = Self { dir, mariadb_port: free_port()?, postgres_port: free_port()?, running: Vec::new() };
        servers.start_mariadb(root)?;
        servers.start_postgres(root)?;
        Ok(servers)
    }

    fn start_mariadb(&mut self, root: &Path) -> Result<()> {
        let data = self.dir.join("mariadb");
        let path = |name: &str| self.dir.join(name).display().to_string();
        run_command(command(root, "sh", &["labs/kit/mariadb-init.sh", &path("mariadb")]))?;
        let arguments = [
            "labs/kit/mariadbd.sh".to_owned(),
            "--no-defaults".to_owned(),
            format!("--datadir={}", data.display()),
            format!("--socket={}", path("mariadb.socket")),
            format!("--pid-file={}", path("mariadb.pid")),
            format!("--port={}", self.mariadb_port),
            "--bind-address=127.0.0.1".to_owned(),
            "--innodb-buffer-pool-size=64M".to_owned(),
            "--performance-schema=ON".to_owned(),
        ];
        let server = guarded(root, "TERM", &arguments, &self.dir.join("mariadb.log"))?;
        self.running.push(server);
        let tables = format!(
            "CREATE DATABASE soak; CREATE TABLE soak.item (id INT PRIMARY KEY, stock INT NOT NULL) ENGINE=InnoDB;
             INSERT INTO soak.item SELECT seq, 0 FROM soak.seq_1_to_{ROWS}"
        );
        until("MariaDB", || self.mariadb("SELECT 1").is_some())?;
        self.mariadb(&tables).context("MariaDB does not take the tables of the load").map(drop)
    }

    fn start_postgres(&mut self, root: &Path) -> Result<()> {
        let data = self.dir.join("postgres").display().to_string();
        run_command(command(root, "sh", &["labs/kit/postgresql.sh", "init", "here", &data]))?;
        let port = self.postgres_port;
        let arguments = ["labs/kit/postgresql.sh", "serve", "here", "-D", &data].map(str::to_owned);
        let settings = [
            format!("--port={port}"),
            "--listen_addresses=127.0.0.1".to_owned(),
            "--unix_socket_directories=".to_owned(),
            "--shared_preload_libraries=pg_stat_statements".to_owned(),
        ];
        let log = self.dir.join("postgres.log");
        // It ends at once, without waiting for sessions.
        let server = guarded(root, "QUIT", &[&arguments[..], &settings].concat(), &log)?;
        self.running.push(server);
        let tables = format!(
            "CREATE EXTENSION pg_stat_statements; CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL);
             INSERT INTO item SELECT id, 0 FROM generate_series(1, {ROWS}) id"
        );
        until("PostgreSQL", || self.postgres("SELECT 1").is_some())?;
        self.postgres(&tables).context("PostgreSQL does not take the tables of the load").map(drop)
    }

    /// Address of MariaDB and the database of the load.
    pub fn mariadb_address(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/soak", self.mariadb_port)
    }

    /// Address of PostgreSQL and the database of the load.
    pub fn postgres_address(&self) -> String {
        format!("postgresql://boss@127.0.0.1:{}/postgres", self.postgres_port)
    }

    /// A session each that comes, executes a statement that there was not before, and goes: what is kept by session, statement or
    /// process must not grow with them.
    pub fn come_and_go(&self, number: usize) -> Result<()> {
        let statement = format!("SELECT COUNT(*) AS visit_{number} FROM item WHERE stock < 0");
        self.mariadb(&format!("USE soak; {statement}")).context("MariaDB is gone")?;
        self.postgres(&statement).context("PostgreSQL is gone").map(drop)
    }

    fn mariadb(&self, statements: &str) -> Option<String> {
        let port = self.mariadb_port.to_string();
        let arguments = ["--no-defaults", "-h127.0.0.1", "-uroot", "-P", &port, "-e", statements];
        ask(command(&self.dir, "mariadb", &arguments))
    }

    fn postgres(&self, statements: &str) -> Option<String> {
        let address = self.postgres_address();
        ask(command(&self.dir, "psql", &["-qX", "-v", "ON_ERROR_STOP=1", "-c", statements, &address]))
    }
}

fn guarded(root: &Path, signal: &str, arguments: &[String], log: &Path) -> Result<Server> {
    let log = File::create(log).with_context(|| format!("failed to create {}", log.display()))?;
    let mut shell = Command::new("sh");
    shell.args(["-c", GUARD, "sh", signal, "sh"]).args(arguments).current_dir(root).stdin(Stdio::piped());
    shell.stdout(log.try_clone()?).stderr(log);
    shell.spawn().map(Server).context("could not start sh")
}

fn until(name: &str, is_there: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_there() {
        if begun.elapsed() > START_WITHIN {
            bail!("{name} does not answer {} s after its start", START_WITHIN.as_secs());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Removes the folders of soaks that were killed: their servers ended with them.
fn remove_leftovers(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?.port())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_folders_of_ended_soaks_are_removed() {
        let temporary = std::env::temp_dir().join(format!("holdup-soak-leftovers-{}", std::process::id()));
        let folder = |name: String| temporary.join(FOLDER.to_owned() + &name);
        // Above the largest process id of Linux (2^22), so it is of no process.
        let (ended, running) = (folder("4194305".to_owned()), folder(std::process::id().to_string()));
        let other = folder("other".to_owned());
        for dir in [&ended, &running, &other] {
            fs::create_dir_all(dir.join("data")).unwrap();
        }
        remove_leftovers(&temporary);
        assert_eq!((ended.exists(), running.exists(), other.exists()), (false, true, true));
        fs::remove_dir_all(&temporary).unwrap();
    }
}
