//! A MariaDB of the test's own, or MySQL 5.6, the server of the lab `uninterruptible-mysql56`: its folder, its port, its socket.
//! Root needs no password; accounts and tables are the test's.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Process, free_port, kit, output, program, skip, template};

/// The server; it runs from [`MariaDb::start`] on.
pub struct MariaDb {
    /// On loopback, or in its namespace.
    pub port: u16,
    dir: TempDir,
    /// The script that runs it, with the script's own words.
    serve: Vec<String>,
    settings: Vec<String>,
    namespace: Option<String>,
    process: Option<Process>,
}

impl MariaDb {
    /// MariaDB with an empty data folder; none, with a reason, where it is not installed.
    pub fn new() -> Option<Self> {
        let server = program("mariadbd", "mariadb-server")?;
        let made = Self::of(vec![kit("mariadbd.sh").display().to_string()]);
        template::fill(&made.file("data"), &server, || {
            let mut init = Command::new("sh");
            output(init.arg(kit("mariadb-init.sh")).arg(made.file("data"))).expect("a data folder");
        });
        Some(made)
    }

    /// MySQL 5.6.24 with an empty data folder; none, with a reason, where it is not to be had.
    pub fn mysql_5_6() -> Option<Self> {
        let script = kit("mysql56.sh").display().to_string();
        if let Err(why) = output(Command::new("sh").args([&script, "fetch"])) {
            skip(&why);
            return None;
        }
        let made = Self::of(vec![script.clone(), "serve".to_owned()]);
        output(Command::new("sh").args([&script, "init"]).arg(made.file("data"))).expect("a data folder");
        Some(made)
    }

    fn of(serve: Vec<String>) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        Self { port: free_port(), dir, serve, settings: Vec::new(), namespace: None, process: None }
    }

    /// Further settings of the server, as arguments; those of a start before are replaced.
    pub fn with<S: Into<String>>(mut self, settings: impl IntoIterator<Item = S>) -> Self {
        self.set(settings);
        self
    }

    /// The same for the next start.
    pub fn set<S: Into<String>>(&mut self, settings: impl IntoIterator<Item = S>) {
        self.settings = settings.into_iter().map(Into::into).collect();
    }

    /// In a network namespace, on all of whose addresses it listens.
    pub fn in_namespace(mut self, name: Option<String>) -> Self {
        self.namespace = name;
        self
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
        let mut command = Command::new(if self.namespace.is_some() { "ip" } else { "sh" });
        if let Some(namespace) = &self.namespace {
            command.args(["netns", "exec", namespace, "sh"]);
        }
        let path = |name: &str| self.file(name).display().to_string();
        command
            .args(&self.serve)
            .args(["--no-defaults", "--innodb-buffer-pool-size=32M"])
            .arg(format!("--bind-address={}", if self.namespace.is_some() { "0.0.0.0" } else { "127.0.0.1" }))
            .args(&self.settings)
            .args([format!("--port={}", self.port), format!("--datadir={}", path("data"))])
            .args([format!("--socket={}", path("socket")), format!("--pid-file={}", path("pid"))]);
        self.process = Some(Process::start(&mut command, &self.log(), libc::SIGKILL));
    }

    /// Waits until it answers: it greets whoever comes to its socket.
    pub fn wait(&mut self) {
        let socket = self.socket();
        let greets = || {
            let greeting = UnixStream::connect(&socket).and_then(|mut line| {
                let mut head = [0; 5];
                line.read_exact(&mut head).map(|()| head[4])
            });
            greeting.is_ok_and(|version| version == 10)
        };
        self.process_mut().wait("greeting", greets);
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("it was started")
    }

    fn process_mut(&mut self) -> &mut Process {
        self.process.as_mut().expect("it was started")
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        self.process_mut().kill();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        self.process().signal(signal);
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// A file of its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Its socket, by which root needs no password.
    pub fn socket(&self) -> PathBuf {
        self.file("socket")
    }

    /// Where its output is.
    pub fn log(&self) -> PathBuf {
        self.file("log")
    }

    /// Its address for an account.
    pub fn address(&self, user: &str, password: &str) -> String {
        format!("mysql://{user}:{password}@127.0.0.1:{}", self.port)
    }

    /// What it is called in recordings.
    pub fn source(&self) -> String {
        format!("mysql://127.0.0.1:{}", self.port)
    }

    /// Executes statements as root; what they answer, without the names of columns.
    pub fn run(&self, sql: &str) -> String {
        self.ask(sql).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The same, or what the client says about a statement that fails.
    pub fn ask(&self, sql: &str) -> Result<String, String> {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--skip-column-names", "--user=root", "--socket"]).arg(self.socket());
        let streams = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut client = streams.spawn().expect("the client starts");
        // A client that finds no server ends before it has read all: the exit status says so.
        let _ = client.stdin.take().expect("its input").write_all(sql.as_bytes());
        let done = client.wait_with_output().expect("the client ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }
}
