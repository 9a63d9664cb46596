//! A real MariaDB of the test's own: data in a folder of its own, on loopback, on a free port, gone with the test.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{end, finish, free_port, root, send, skip};
use crate::template;

/// The account that may see everything holdup asks for.
pub const USER: &str = "holdup";

/// Its password: it must turn up nowhere.
pub const CANARY: &str = "c4naryW0rd";

/// An account without a grant.
pub const POOR: &str = "poor";

/// Where MariaDB's server is, if it is installed.
fn program() -> Option<&'static Path> {
    ["/usr/sbin/mariadbd", "/usr/bin/mariadbd", "/usr/local/sbin/mariadbd"]
        .map(Path::new)
        .into_iter()
        .find(|p| p.exists())
}

/// Whether MariaDB's server is installed; says so if not.
pub fn is_here() -> bool {
    let here = program().is_some();
    if !here {
        skip("mariadbd is not installed; run: cargo xtask setup");
    }
    here
}

pub struct MariaDb {
    process: Child,
    dir: tempfile::TempDir,
    port: u16,
    place: Place,
}

/// Where a server runs, and how.
#[derive(Default)]
pub struct Place {
    /// The network namespace, on all of whose addresses it listens; without one it listens on loopback.
    pub namespace: Option<String>,
    /// Further arguments.
    pub arguments: Vec<String>,
}

impl MariaDb {
    pub fn start() -> Self {
        Self::start_at(Place::default())
    }

    pub fn start_at(place: Place) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        template::fill(&data, program().unwrap(), || {
            let made = finish(Command::new("sh").arg(kit("mariadb-init.sh")).arg(&data), 60);
            assert!(made.status.success(), "{}", made.stderr);
        });
        let port = free_port();
        let process = serve(dir.path(), port, &place);
        let server = Self { process, dir, port, place };
        server.set_up();
        server
    }

    /// Sends `signal` to its process.
    pub fn signal(&self, signal: i32) {
        send(self.process.id(), signal);
    }

    /// Starts it again once its process has been killed.
    pub fn again(&mut self) {
        self.process.wait().unwrap();
        self.process = serve(self.dir.path(), self.port, &self.place);
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it is called in recordings.
    pub fn source(&self) -> String {
        format!("mysql://127.0.0.1:{}", self.port)
    }

    /// A file of its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// An address for `--watch`.
    pub fn address(&self, user: &str, password: &str) -> String {
        format!("mysql://{user}:{password}@127.0.0.1:{}", self.port)
    }

    fn set_up(&self) {
        let users = format!(
            "CREATE USER '{USER}'@'%' IDENTIFIED BY '{CANARY}'; GRANT PROCESS ON *.* TO '{USER}'@'%';
             GRANT SELECT ON performance_schema.* TO '{USER}'@'%'; CREATE USER '{POOR}'@'%' IDENTIFIED BY '{CANARY}';"
        );
        self.set_up_with(&users);
    }

    /// Executes `sql` as the server's own root, once it is up.
    pub fn set_up_with(&self, sql: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while let Err(why) = self.run(sql) {
            // Errors of the client itself have numbers from 2000 on: the server is not up yet.
            assert!(why.contains("ERROR 20"), "{why}");
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "mariadbd does not come up: {log}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What the server answers to `sql`, without the names of columns.
    pub fn run_and_read(&self, sql: &str) -> String {
        let socket = format!("--socket={}", self.dir.path().join("socket").display());
        let client = ["--no-defaults", "--skip-column-names", "--user=root", &socket, "-e", sql];
        finish(Command::new("mariadb").args(client), 30).stdout
    }

    /// Executes `sql`; what the client says if that fails.
    fn run(&self, sql: &str) -> Result<(), String> {
        let socket = format!("--socket={}", self.dir.path().join("socket").display());
        let client = Command::new("mariadb")
            .args(["--no-defaults", &socket, "--user=root"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut client = client.unwrap();
        // A client that finds no server ends before it has read all: the exit status says so.
        let _ = client.stdin.take().unwrap().write_all(sql.as_bytes());
        let done = client.wait_with_output().unwrap();
        if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
    }
}

/// The server's own account of each statement, and no look-up of names.
const IN_NAMESPACE: [&str; 5] = [
    "--bind-address=0.0.0.0",
    "--skip-name-resolve",
    "--performance-schema-consumer-events-statements-current=ON",
    "--performance-schema-consumer-events-statements-history=ON",
    "--performance-schema-consumer-events-statements-history-long=ON",
];

/// Starts the server on the data in `dir`.
fn serve(dir: &Path, port: u16, place: &Place) -> Child {
    let mut command = Command::new(if place.namespace.is_some() { "ip" } else { "sh" });
    if let Some(namespace) = &place.namespace {
        command.args(["netns", "exec", namespace, "sh"]);
    }
    let here = if place.namespace.is_some() { &IN_NAMESPACE[..] } else { &["--bind-address=127.0.0.1"] };
    command
        .arg(kit("mariadbd.sh"))
        .args(["--no-defaults", "--performance-schema=ON", "--innodb-buffer-pool-size=32M"])
        .args(here)
        .args(&place.arguments)
        .args([format!("--port={port}"), format!("--datadir={}", dir.join("data").display())])
        .arg(format!("--socket={}", dir.join("socket").display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(dir.join("log")).unwrap())
        .spawn()
        .unwrap()
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        end(&mut self.process, libc::SIGTERM);
    }
}

fn kit(script: &str) -> PathBuf {
    root().join("labs/kit").join(script)
}
