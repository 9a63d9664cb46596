//! A real PostgreSQL of the test's own: data in a folder of its own, on loopback, on a free port, gone with the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{end, finish, free_port, root, send, skip};

pub struct Postgres {
    process: Child,
    dir: tempfile::TempDir,
    port: u16,
    settings: Vec<String>,
}

fn kit() -> PathBuf {
    root().join("labs/kit/postgresql.sh")
}

impl Postgres {
    /// The system's server with these settings; none, with a reason, where it isn't installed.
    pub fn start(settings: &[(&str, &str)]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let made = finish(Command::new("sh").arg(kit()).args(["init", "here"]).arg(&data), 120);
        if made.code() == Some(3) {
            skip("PostgreSQL is not installed; run: cargo xtask setup");
            return None;
        }
        assert_eq!(made.code(), Some(0), "{}", made.stderr);
        let port = free_port();
        let settings: Vec<String> =
            settings.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]).collect();
        let process = serve(dir.path(), port, &settings);
        let server = Self { process, dir, port, settings };
        server.wait();
        Some(server)
    }

    /// Waits until it answers.
    pub fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while finish(&mut self.psql("SELECT 1"), 30).code() != Some(0) {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            assert!(Instant::now() < deadline, "PostgreSQL does not come up: {log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends `signal` to all its processes.
    pub fn signal(&self, signal: i32) {
        let own = self.process.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        // The postmaster first: it starts others in place of those that end.
        send(own, signal);
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            // SAFETY: kill(2) takes two numbers; a child that has just ended is not there any more, which is as well.
            let _ = unsafe { libc::kill(child, signal) };
        }
    }

    /// Starts it again once its processes have been killed.
    pub fn again(&mut self) {
        self.process.wait().unwrap();
        self.process = serve(self.dir.path(), self.port, &self.settings);
    }

    /// What it is called in recordings.
    pub fn source(&self) -> String {
        format!("postgresql://127.0.0.1:{}", self.port)
    }

    /// Where it writes what it logs.
    pub fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// An address with `user` and `database`.
    pub fn address(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    fn psql(&self, sql: &str) -> Command {
        let mut command = Command::new("psql");
        command.args([
            "-X",
            "-q",
            "-t",
            "-A",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-U",
            "boss",
            "-d",
            "postgres",
        ]);
        command.args(["-p", &self.port.to_string(), "-c", sql]).current_dir(Path::new("/"));
        command
    }

    /// Executes `sql` as the owner of all, in the database `postgres`; what it answers.
    pub fn run(&self, sql: &str) -> String {
        let done = finish(&mut self.psql(sql), 60);
        assert_eq!(done.code(), Some(0), "{sql}: {}", done.stderr);
        done.stdout.trim().to_owned()
    }
}

/// Starts the server on the data in `dir`.
fn serve(dir: &Path, port: u16, settings: &[String]) -> Child {
    let data = dir.join("data");
    Command::new("sh")
        .arg(kit())
        .args(["serve", "here", "-D"])
        .arg(&data)
        .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
        .args(["-c", &format!("unix_socket_directories={}", data.display())])
        .args(settings)
        .current_dir(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(dir.join("log")).unwrap())
        .spawn()
        .unwrap()
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once: who is connected is sent away.
        end(&mut self.process, libc::SIGINT);
    }
}
