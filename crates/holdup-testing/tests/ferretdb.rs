//! FerretDB with an account, on SQLite in a folder of its own or on a PostgreSQL; and a client that may write.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use holdup_mongodb::{Value, Writer};
use holdup_protocol::database::mongodb::{Account, Event, Session, failure};
use holdup_protocol::database::{Login, Secret};

use crate::{PASSWORD, PATIENCE, Process, free_port, kit, output};

/// The password, and a value in the documents: neither may be in any row.
pub const CANARY: &str = PASSWORD;

/// The database that keeps the account.
const ACCOUNTS: &str = "accounts";

/// A running one.
pub struct Server {
    /// On loopback.
    pub port: u16,
    process: Process,
    _folder: tempfile::TempDir,
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
        let script = kit("ferretdb.sh");
        if let Err(why) = output(Command::new("sh").arg(&script).arg("fetch")) {
            // No registry has it built, so it may be missing with `CI` set, too.
            eprintln!("skipped: {why}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("data")).expect("a folder");
        let port = free_port();
        let mut command = Command::new("sh");
        command.arg(&script).args(["serve", "--handler=sqlite"]);
        command.arg(format!("--sqlite-url=file:{}/data/", folder.path().display()));
        command.arg(format!("--state-dir={}", folder.path().display()));
        command.arg(format!("--listen-addr=127.0.0.1:{port}"));
        command.args(["--test-enable-new-auth", "--setup-username=holdup"]);
        command.args([format!("--setup-database={ACCOUNTS}"), format!("--setup-password={CANARY}")]);
        let mut process = Process::start(command.args(arguments), &folder.path().join("log"), libc::SIGKILL);
        process.wait_for_port(port);
        Some(Self { port, process, _folder: folder })
    }

    /// What it is called in recordings.
    pub fn source(&self) -> String {
        format!("mongodb://127.0.0.1:{}", self.port)
    }

    /// Its address for an account.
    pub fn address(&self, user: &str) -> String {
        format!("mongodb://{user}:{CANARY}@127.0.0.1:{}/?authSource={ACCOUNTS}", self.port)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        self.process.signal(signal);
    }

    /// Stops it, and waits until all its threads stand.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let deadline = Instant::now() + PATIENCE;
        let tasks = format!("/proc/{}/task", self.process.pid());
        let stands = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        while !std::fs::read_dir(&tasks).expect("its threads").flatten().all(stands) {
            assert!(Instant::now() < deadline, "it does not stop");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// A client that has logged in.
    pub fn client(&self) -> Client {
        let login = Login::new("holdup".to_owned(), Secret::new(CANARY.to_owned()), None);
        let account = Account { login: Arc::new(login), source: ACCOUNTS.to_owned() };
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("an answer");
        stream.set_read_timeout(Some(PATIENCE)).expect("an answer");
        let mut client = Client { session: Session::new(Some(account), 1 << 20), stream };
        client.until_event();
        client
    }
}

/// A client of it.
pub struct Client {
    session: Session,
    stream: TcpStream,
}

impl Client {
    /// Runs a command, which has to succeed.
    pub fn run(&mut self, database: &str, command: Writer) -> Value {
        self.session.send(database, command).expect("an answer");
        self.until_event().expect("an answer")
    }

    /// Talks until something happens: a login, or an answer.
    fn until_event(&mut self) -> Option<Value> {
        let (mut bytes, mut is_over, mut answer) = ([0; 4096], false, None);
        while !is_over {
            let output = self.session.output().to_vec();
            self.stream.write_all(&output).expect("an answer");
            self.session.consumed(output.len());
            let count = loop {
                match self.stream.read(&mut bytes) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => break read.expect("an answer"),
                }
            };
            assert!(count > 0, "the server hung up");
            let fed = self.session.feed(&bytes[..count], &mut |event| {
                is_over = true;
                if let Event::Answer(document) = event {
                    assert_eq!(failure(document), None);
                    answer = Some(document.value().expect("an answer"));
                }
            });
            fed.expect("an answer");
        }
        answer
    }
}
