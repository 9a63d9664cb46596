//! A PostgreSQL of the test's own: its folder, its port; gone with the test. The system's, whose folder of programs
//! `HOLDUP_POSTGRES_BIN` may name, or one of those that `labs/kit/postgresql.sh` fetches.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::template;

/// The account of nobody: the server refuses to be run by root.
const NOBODY: u32 = 65_534;

pub struct Server {
    pub port: u16,
    pub log: PathBuf,
    process: Child,
    programs: PathBuf,
    dir: tempfile::TempDir,
}

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

fn is_root() -> bool {
    // SAFETY: it reads the process's own user id and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A folder for who runs the server.
pub fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    if is_root() {
        chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    dir
}

pub fn command(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]).arg(program);
    command
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
                let found = given.into_iter().chain(installed).find(|folder| folder.join("postgres").exists());
                found.ok_or_else(|| "install with: sudo apt-get install postgresql".to_owned())
            }
            Self::Fetched(major) => {
                let kit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/kit/postgresql.sh");
                let done = Command::new("sh").arg(kit).args(["fetch", &major.to_string()]).output().expect("sh runs");
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
                if done.status.success() { Ok(text(&done.stdout).into()) } else { Err(text(&done.stderr)) }
            }
        }
    }
}

impl Server {
    /// One with `settings`; none, with a reason, where it can't be had.
    pub fn of(which: Which, settings: &[(&str, &str)]) -> Option<Self> {
        let programs = match which.programs() {
            Ok(programs) => programs,
            Err(why) => {
                assert!(std::env::var_os("CI").is_none(), "{which:?}: {why}");
                eprintln!("skipped {which:?}: {why}");
                return None;
            }
        };
        let dir = folder();
        let data = dir.path().join("data");
        template::fill(&data, &programs.join("postgres"), || {
            let made = command(&programs.join("initdb"))
                .args(["--username=boss", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync", "-D"])
                .arg(&data)
                .current_dir(dir.path())
                .output()
                .expect("it runs");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        });
        Some(Self::launch(programs, dir, settings))
    }

    /// A replica of it, which streams; the slot that keeps what it has not read is called `followed`.
    pub fn replica(&self, settings: &[(&str, &str)]) -> Self {
        let dir = folder();
        let made = command(&self.programs.join("pg_basebackup"))
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &self.port.to_string(),
                "-U",
                "boss",
                "-c",
                "fast",
                "-R",
                "-C",
                "-S",
                "followed",
                "-D",
            ])
            .arg(dir.path().join("data"))
            .current_dir(dir.path())
            .output()
            .expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self::launch(self.programs.clone(), dir, settings)
    }

    /// Starts what is in `dir`, and waits until it answers.
    fn launch(programs: PathBuf, dir: tempfile::TempDir, settings: &[(&str, &str)]) -> Self {
        let data = dir.path().join("data");
        let port = holdup_lab::ports::free().expect("a port");
        let log = dir.path().join("server.log");
        let file = fs::File::create(&log).expect("a log");
        let folder = dir.path().display().to_string();
        let process = command(&programs.join("postgres"))
            .args(["-D", &data.display().to_string(), "-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", &format!("unix_socket_directories={folder}"), "-c", "fsync=off"])
            .args(settings.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a log"))
            .stderr(file)
            .spawn()
            .expect("it starts");
        let server = Self { port, log, process, programs, dir };
        let deadline = Instant::now() + Duration::from_secs(120);
        while !server.psql("boss").args(["-c", "SELECT 1"]).output().is_ok_and(|done| done.status.success()) {
            assert!(Instant::now() < deadline, "{}", fs::read_to_string(&server.log).unwrap_or_default());
            sleep(Duration::from_millis(50));
        }
        server
    }

    fn psql(&self, user: &str) -> Command {
        let client = Some(self.programs.join("psql")).filter(|program| program.exists());
        let mut command = Command::new(client.unwrap_or_else(|| "psql".into()));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-d", "postgres"]).args([
            "-p",
            &self.port.to_string(),
            "-U",
            user,
        ]);
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
        let mut process =
            self.psql(user).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql");
        process.stdin.take().expect("its input").write_all(sql.as_bytes()).expect("it reads");
        Running(process)
    }

    /// Waits until a query that counts says something else than none.
    pub fn until_some(&self, sql: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.run(sql) == "0" {
            assert!(Instant::now() < deadline, "none: {sql}");
            sleep(Duration::from_millis(50));
        }
    }

    /// For `psql`: goes on once the gate of this name was opened, or the test has ended.
    pub fn wait_for(&self, gate: &str) -> String {
        let folder = self.dir.path().display();
        format!("\n\\! while [ -d {folder} ] && ! [ -e {folder}/{gate} ]; do sleep 0.05; done\n")
    }

    /// Lets on what waits by [`Self::wait_for`].
    pub fn open(&self, gate: &str) {
        fs::write(self.dir.path().join(gate), "").expect("a gate");
    }

    /// The address of `--watch`.
    pub fn address(&self, user: &str, query: &str) -> String {
        format!("postgresql://{user}:s3cr3t-canary@127.0.0.1:{}/postgres?{query}", self.port)
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.run("SHOW server_version_num").parse::<u32>().expect("a number") / 10_000
    }

    /// Sends all of its processes a signal.
    pub fn signal_all(&self, signal: i32) {
        let own = self.process.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).expect("the kernel's list");
        for id in children.split_whitespace().filter_map(|id| id.parse().ok()).chain(i32::try_from(own)) {
            // SAFETY: the process is our own child, which has not been waited for, or one of its.
            unsafe { libc::kill(id, signal) };
        }
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(id) = i32::try_from(self.process.id()) {
            // SAFETY: the process is our own child, which has not been waited for.
            unsafe { libc::kill(id, libc::SIGQUIT) };
        }
        let _ = self.process.wait();
    }
}
