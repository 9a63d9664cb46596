//! A ClickHouse of the test's own: data in a folder of its own, on loopback, on a free port, gone with the test. It can be
//! killed and started again on the same data.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdup_testing::{Process, kit};

use crate::program::{free_port, root, skip};

/// Which ClickHouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Debian's package, 18.16.
    Debian,
    /// The engine of PyPI's chdb-core-lite, behind a script that answers HTTP.
    Engine,
}

/// What an account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Everything, without a password.
    All,
    /// Read. On Debian's it may change no setting either.
    Reader,
    /// Insert. Debian's knows no such account.
    Writer,
}

impl Account {
    /// Its name and password.
    fn name(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::All => None,
            Self::Reader => Some(("reader", "r3aderW0rd")),
            Self::Writer => Some(("writer", "wr1terW0rd")),
        }
    }

    fn grant(self) -> &'static str {
        match self {
            Self::All => "GRANT ALL ON *.*",
            Self::Reader => "GRANT SELECT ON kept.*",
            Self::Writer => "GRANT INSERT ON kept.*",
        }
    }
}

pub struct Server {
    kind: Kind,
    process: Process,
    dir: tempfile::TempDir,
    port: u16,
    /// Whose process the engine is.
    account: Account,
    /// What is put in front of the command: [`on_small_disk`](Server::on_small_disk).
    wrapper: Vec<String>,
}

/// In a mount namespace of its own, a small disk as the server's folder.
const SMALL_DISK: &str = r#"mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@""#;

impl Server {
    /// Starts it; none, with a reason, where it cannot be.
    pub fn start(kind: Kind) -> Option<Self> {
        Self::start_with(kind, |_| Vec::new())
    }

    /// The same on a disk of this size (`24m`), which is a tmpfs in a mount namespace of the server's own.
    pub fn on_small_disk(kind: Kind, size: &str) -> Option<Self> {
        let unshare = ["unshare", "--mount", "--map-root-user"];
        if !runs(Command::new(unshare[0]).args(&unshare[1..]).arg("true")) {
            skip("no mount namespace to be had here (unshare --mount)");
            return None;
        }
        Self::start_with(kind, |dir| {
            let words = unshare.into_iter().chain(["sh", "-c", SMALL_DISK, "sh", size]).map(str::to_owned);
            words.chain([dir.display().to_string()]).collect()
        })
    }

    /// The same after `prepare`, which returns what is put in front of the command.
    pub fn start_with(kind: Kind, prepare: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        if let Some(missing) = missing(kind) {
            skip(missing);
            return None;
        }
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        let wrapper = prepare(dir.path());
        let process = serve(kind, dir.path(), port, Account::All, &wrapper);
        let mut server = Self { kind, process, dir, port, account: Account::All, wrapper };
        server.wait();
        Some(server)
    }

    /// Where a file of the server's folder is, in its own mount namespace.
    pub fn file(&self, name: &str) -> PathBuf {
        let folder = self.dir.path().strip_prefix("/").unwrap();
        Path::new("/proc").join(self.pid().to_string()).join("root").join(folder).join(name)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The address of a database for the account that may do everything.
    pub fn url(&self, database: &str) -> String {
        format!("clickhouse://127.0.0.1:{}/{database}", self.port)
    }

    /// The same for `account`. The engine has one account at a time: it is started again with it.
    pub fn url_for(&mut self, account: Account, database: &str) -> String {
        if self.kind == Kind::Engine && self.account != account {
            self.account = account;
            self.kill();
            self.again();
        }
        let name = account.name().map_or_else(String::new, |(user, word)| format!("{user}:{word}@"));
        format!("clickhouse://{name}127.0.0.1:{}/{database}", self.port)
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on its data.
    pub fn again(&mut self) {
        self.process = serve(self.kind, self.dir.path(), self.port, self.account, &self.wrapper);
        self.wait();
    }

    /// Starts it again if it was killed.
    pub fn revive(&mut self) {
        if self.process.has_ended() {
            self.again();
        }
    }

    /// The server's answer to a statement, without holdup.
    pub fn ask(&self, database: &str, sql: &str) -> String {
        let url = format!("http://127.0.0.1:{}/?database={database}&query={}", self.port, super::percent(sql));
        let mut answer = ureq::get(&url).call().unwrap_or_else(|error| panic!("{sql}: {error}"));
        answer.body_mut().read_to_string().unwrap().trim().to_owned()
    }

    fn wait(&mut self) {
        let ping = format!("http://127.0.0.1:{}/ping", self.port);
        self.process.wait("answer of ClickHouse", || ureq::get(&ping).call().is_ok());
    }
}

fn python() -> PathBuf {
    root().join("target/py/bin/python")
}

fn runs(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Why this machine cannot have it.
fn missing(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Debian => {
            let is_here = ["/usr/sbin/clickhouse-server", "/usr/bin/clickhouse-server"]
                .iter()
                .any(|path| Path::new(path).exists());
            (!is_here).then_some("clickhouse-server is not installed; run: cargo xtask setup")
        }
        Kind::Engine => {
            // Not by an import, which takes half a second of CPU time.
            let mut versions = std::fs::read_dir(root().join("target/py/lib")).into_iter().flatten().flatten();
            let is_here = versions.any(|version| version.path().join("site-packages/chdb").is_dir());
            (!is_here).then_some("target/py has no chdb-core-lite; run: cargo xtask setup")
        }
    }
}

fn serve(kind: Kind, dir: &Path, port: u16, account: Account, wrapper: &[String]) -> Process {
    let port = port.to_string();
    let mut words: Vec<std::ffi::OsString> = wrapper.iter().map(Into::into).collect();
    match kind {
        Kind::Debian => {
            words.extend(["sh".into(), kit("clickhouse.sh").into(), "serve".into(), dir.into(), port.into()]);
        }
        Kind::Engine => {
            let grants = dir.join("grants");
            std::fs::write(&grants, account.grant()).unwrap();
            words.extend([python().into(), "-B".into(), kit("clickhouse-engine.py").into(), dir.into()]);
            words.extend([port.into(), "--grants".into(), grants.into()]);
            if let Some((user, word)) = account.name() {
                words.extend(["--account".into(), format!("{user}:{word}").into()]);
            }
        }
    }
    Process::start(Command::new(&words[0]).args(&words[1..]), &dir.join("output"), libc::SIGKILL)
}
