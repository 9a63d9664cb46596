//! A PostgreSQL of the test's own: its folder, its port; gone with the test. The system's, whose folder of programs
//! `HOLDUP_POSTGRES_BIN` may name, or one of those that `labs/kit/postgresql.sh` fetches. `boss` may do everything and needs no
//! password; other accounts and tables are the test's.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{
    PASSWORD, Process, command_of_nobody as command, folder_of_nobody as folder, free_port, kit, output, skip, template,
};

/// The server; it runs from [`Postgres::start`] on.
pub struct Postgres {
    /// On loopback.
    pub port: u16,
    pub(crate) programs: PathBuf,
    dir: TempDir,
    settings: Vec<String>,
    process: Option<Process>,
}

/// Which PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The system's, of any version.
    System,
    /// One of this major version, which is fetched.
    Fetched(u32),
}

impl Which {
    fn programs(self) -> Result<PathBuf, String> {
        match self {
            Self::System => {
                let given = std::env::var_os("HOLDUP_POSTGRES_BIN").map(PathBuf::from);
                let installed = (10..=18).rev().map(|major| PathBuf::from(format!("/usr/lib/postgresql/{major}/bin")));
                let found = given.into_iter().chain(installed).chain([PathBuf::from("/usr/bin")]);
                let found = found.into_iter().find(|folder| folder.join("postgres").exists());
                found.ok_or_else(|| "install with: sudo apt-get install postgresql".to_owned())
            }
            Self::Fetched(major) => {
                let mut fetch = Command::new("sh");
                output(fetch.arg(kit("postgresql.sh")).args(["fetch", &major.to_string()])).map(PathBuf::from)
            }
        }
    }
}

impl Postgres {
    /// One with an empty data folder; none, with a reason, where it can't be had.
    pub fn new(which: Which) -> Option<Self> {
        let programs = match which.programs() {
            Ok(programs) => programs,
            Err(why) => {
                skip(&format!("{which:?}: {why}"));
                return None;
            }
        };
        let dir = folder();
        let data = dir.path().join("data");
        template::fill(&data, &programs.join("postgres"), || {
            let mut init = command(&programs.join("initdb"));
            init.args(["--username=boss", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync", "-D"]);
            output(init.arg(&data).current_dir(dir.path())).expect("a data folder");
        });
        Some(Self { port: free_port(), programs, dir, settings: Vec::new(), process: None })
    }

    /// The same with `settings`, started.
    pub fn of(which: Which, settings: &[(&str, &str)]) -> Option<Self> {
        Some(Self::new(which)?.with(settings).start())
    }

    /// Further settings.
    pub fn with(mut self, settings: &[(&str, &str)]) -> Self {
        self.settings.extend(settings.iter().map(|(name, value)| format!("--{name}={value}")));
        self
    }

    /// A replica of it, which streams; the slot that keeps what it has not read is called `followed`.
    pub fn replica(&self, settings: &[(&str, &str)]) -> Self {
        let dir = folder();
        let mut copy = command(&self.programs.join("pg_basebackup"));
        copy.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "boss", "-c", "fast", "-R", "-C"]);
        copy.args(["-S", "followed", "-D"]).arg(dir.path().join("data")).current_dir(dir.path());
        output(&mut copy).expect("a copy");
        let replica =
            Self { port: free_port(), programs: self.programs.clone(), dir, settings: Vec::new(), process: None };
        replica.with(settings).start()
    }

    /// Starts it and waits until it answers.
    pub fn start(mut self) -> Self {
        self.again();
        self
    }

    /// Starts it on the same data and port, once it has ended.
    pub fn again(&mut self) {
        self.launch();
        self.wait();
    }

    /// The same without waiting for its answer.
    pub fn launch(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.reap();
        }
        let mut server = command(&self.programs.join("postgres"));
        server.arg("-D").arg(self.file("data")).args(["--listen_addresses=127.0.0.1", "--fsync=off"]);
        server.arg(format!("--port={}", self.port));
        server.arg(format!("--unix_socket_directories={}", self.folder().display()));
        server.args(&self.settings).current_dir(self.folder());
        // At once, with its children: who is connected is not waited for.
        self.process = Some(Process::start(&mut server, &self.log(), libc::SIGQUIT));
    }

    /// Waits until it answers.
    pub fn wait(&mut self) {
        let mut psql = self.psql("boss");
        psql.args(["-c", "SELECT 1"]);
        let process = self.process.as_mut().expect("it was started");
        process.wait("answer", || psql.output().is_ok_and(|done| done.status.success()));
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("it was started")
    }

    /// Ends it at once, with its children.
    pub fn kill(&mut self) {
        drop(self.process.take());
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// A file of its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where it writes what it logs.
    pub fn log(&self) -> PathBuf {
        self.file("log")
    }

    /// The address of `--watch`.
    pub fn address(&self, user: &str, query: &str) -> String {
        format!("postgresql://{user}:{PASSWORD}@127.0.0.1:{}/postgres?{query}", self.port)
    }

    /// The address of a database for `user`, which may have a password behind a colon.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// What it is called in recordings.
    pub fn source(&self) -> String {
        format!("postgresql://127.0.0.1:{}", self.port)
    }
}
