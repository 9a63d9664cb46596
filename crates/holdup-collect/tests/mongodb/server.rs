//! FerretDB with an account, on a port of its own, on SQLite in a folder of its own or on a PostgreSQL; and a client that
//! may write. The tests of `holdup-load` and `holdup` take this file in by its path.

#![allow(dead_code, reason = "each of the binaries that have it uses a part")]

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdup_mongodb::{Value, Writer};
use holdup_protocol::database::mongodb::{Account, Event, Session, failure};
use holdup_protocol::database::{Login, Secret};

use super::PATIENCE;

/// The password, and a value in the documents: neither may be in any row.
pub const CANARY: &str = "s3cr3t-canary";

/// The database that keeps the account.
const ACCOUNTS: &str = "accounts";

pub struct Server {
    pub port: u16,
    child: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts it; none where it is not to be had.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with its documents in the PostgreSQL at `url`, in place of SQLite.
    pub fn on_postgresql(url: &str) -> Option<Self> {
        Self::start_with(&["--handler=postgresql".to_owned(), format!("--postgresql-url={url}")])
    }

    /// The same with further arguments; one that stands here already is replaced.
    pub fn start_with(arguments: &[String]) -> Option<Self> {
        let kit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/kit/ferretdb.sh");
        let fetched = Command::new("sh").arg(&kit).arg("fetch").output().unwrap();
        if !fetched.status.success() {
            let why = String::from_utf8_lossy(&fetched.stderr).trim().to_owned();
            eprintln!("skipped: {why}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (port, log) = (holdup_lab::ports::free().unwrap(), File::create(folder.path().join("log")).unwrap());
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let mut command = Command::new("sh");
        command.arg(&kit).args(["serve", "--handler=sqlite"]);
        command.arg(format!("--sqlite-url=file:{}/data/", folder.path().display()));
        command.arg(format!("--state-dir={}", folder.path().display()));
        command.arg(format!("--listen-addr=127.0.0.1:{port}"));
        command.args(["--test-enable-new-auth", "--setup-username=holdup"]);
        command.args([format!("--setup-database={ACCOUNTS}"), format!("--setup-password={CANARY}")]);
        let child =
            command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let mut server = Self { port, child, folder };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.child.try_wait().unwrap().is_none(), "it has ended: {}", server.log());
            assert!(Instant::now() < deadline, "it does not listen: {}", server.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    pub fn source(&self) -> String {
        format!("mongodb://127.0.0.1:{}", self.port)
    }

    pub fn address(&self, user: &str) -> String {
        format!("mongodb://{user}:{CANARY}@127.0.0.1:{}/?authSource={ACCOUNTS}", self.port)
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: plain numbers; the process is our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Stops it, and waits until all its threads stand.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let deadline = Instant::now() + PATIENCE;
        let tasks = format!("/proc/{}/task", self.child.id());
        let stands = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        while !std::fs::read_dir(&tasks).unwrap().flatten().all(stands) {
            assert!(Instant::now() < deadline, "it does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A client that has logged in.
    pub fn client(&self) -> Client {
        let login = Login::new("holdup".to_owned(), Secret::new(CANARY.to_owned()), None);
        let account = Account { login: Arc::new(login), source: ACCOUNTS.to_owned() };
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client { session: Session::new(Some(account), 1 << 20), stream };
        client.until_event();
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Client {
    session: Session,
    stream: TcpStream,
}

impl Client {
    /// Runs a command, which has to succeed.
    pub fn run(&mut self, database: &str, command: Writer) -> Value {
        self.session.send(database, command).unwrap();
        self.until_event().unwrap()
    }

    /// Talks until something happens: a login, or an answer.
    fn until_event(&mut self) -> Option<Value> {
        let (mut bytes, mut is_over, mut answer) = ([0; 4096], false, None);
        while !is_over {
            let output = self.session.output().to_vec();
            self.stream.write_all(&output).unwrap();
            self.session.consumed(output.len());
            let count = loop {
                match self.stream.read(&mut bytes) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => break read.unwrap(),
                }
            };
            assert!(count > 0, "the server hung up");
            let fed = self.session.feed(&bytes[..count], &mut |event| {
                is_over = true;
                if let Event::Answer(document) = event {
                    assert_eq!(failure(document), None);
                    answer = Some(document.value().unwrap());
                }
            });
            fed.unwrap();
        }
        answer
    }
}
