//! What tests have a PostgreSQL execute, by `psql`: to its end, or in a session of its own that waits for the test's word.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{PATIENCE, Postgres};

/// A statement that is being run by `psql`.
pub struct Running(Child);

impl Running {
    /// Waits until it has ended, well or not.
    pub fn stop(self) {
        let _ = self.0.wait_with_output();
    }

    /// Its output, once it has ended.
    pub fn end(self) -> String {
        let done = self.0.wait_with_output().expect("psql ends");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

impl Postgres {
    pub(crate) fn psql(&self, user: &str) -> Command {
        let client = Some(self.programs.join("psql")).filter(|program| program.exists());
        let mut command = Command::new(client.unwrap_or_else(|| "psql".into()));
        let port = self.port.to_string();
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-d", "postgres"]);
        command.args(["-p", &port, "-U", user]).current_dir("/");
        command
    }

    /// Runs statements to their end, in one session; the output.
    pub fn run(&self, sql: &str) -> String {
        self.begin(sql).end()
    }

    /// Begins to run statements in a session of their own.
    pub fn begin(&self, sql: &str) -> Running {
        self.begin_as("boss", sql)
    }

    /// The same as another account.
    pub fn begin_as(&self, user: &str, sql: &str) -> Running {
        let mut psql = self.psql(user);
        let mut process =
            psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql");
        process.stdin.take().expect("its input").write_all(sql.as_bytes()).expect("it reads");
        Running(process)
    }

    /// Waits until a query that counts says something else than none.
    pub fn until_some(&self, sql: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.run(sql) == "0" {
            assert!(Instant::now() < deadline, "none: {sql}");
            sleep(Duration::from_millis(50));
        }
    }

    /// For `psql`: goes on once the gate of this name was opened, or the test has ended.
    pub fn wait_for(&self, gate: &str) -> String {
        let folder = self.folder().display();
        format!("\n\\! while [ -d {folder} ] && ! [ -e {folder}/{gate} ]; do sleep 0.05; done\n")
    }

    /// Lets on what waits by [`Self::wait_for`].
    pub fn open(&self, gate: &str) {
        std::fs::write(self.file(gate), "").expect("a gate");
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.run("SHOW server_version_num").parse::<u32>().expect("a number") / 10_000
    }
}
