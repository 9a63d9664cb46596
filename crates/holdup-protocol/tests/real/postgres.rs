//! A PostgreSQL of the test's own: its folder, its port, accounts and tables.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;

use super::client::{Client, Seen};
use super::process::{certificate, free_port, is_root, program, stop};
use super::{PASSWORD, template};

/// The account of nobody: the server refuses to be run by root.
const NOBODY: u32 = 65_534;

/// Who may come how; the first line that fits counts.
const ACCESS: &str = "host all boss all trust
host all trusted all trust
host all plain all password
host all hashed all md5
host all barred all reject
hostssl all all all scram-sha-256
host all careful all reject
host all all all scram-sha-256
";

/// `$` is the password.
const SETUP: &[&str] = &[
    "CREATE DATABASE lab",
    "CREATE USER app SUPERUSER PASSWORD '$'",
    "CREATE USER careful PASSWORD '$'",
    "CREATE USER trusted; CREATE USER barred",
    "CREATE USER plain PASSWORD '$'",
    "SET password_encryption = 'md5'",
    "CREATE USER hashed PASSWORD '$'",
];

const TABLES: &[&str] = &[
    "CREATE TABLE t (id int PRIMARY KEY, note text)",
    "INSERT INTO t SELECT id, 'note ' || id FROM generate_series(1, 1000) id",
    "ANALYZE t",
    "CREATE FUNCTION late(v int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF v > 900 THEN RAISE 'too late'; END IF; RETURN v; END $$",
];

/// A running one.
pub struct Postgres {
    program: PathBuf,
    process: Child,
    pub port: u16,
    pub certificate: CertificateDer<'static>,
    dir: tempfile::TempDir,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// As somebody who is not root.
fn command(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]).arg(program);
    command
}

fn give_away(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
    }
}

impl Postgres {
    /// One with accounts and tables; none, with a reason, where it is not installed.
    pub fn start() -> Option<Self> {
        let program = program(
            &[
                "/usr/lib/postgresql/17/bin/postgres",
                "/usr/lib/postgresql/16/bin/postgres",
                "/usr/lib/postgresql/15/bin/postgres",
                "/usr/bin/postgres",
            ],
            "postgresql",
        )?;
        let dir = tempfile::tempdir().expect("a folder");
        give_away(dir.path());
        let data = dir.path().join("data");
        template::fill(&data, &program, || {
            let made = command(&program.with_file_name("initdb"))
                .args(["--username=boss", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync", "-D"])
                .arg(&data)
                .current_dir(dir.path())
                .output()
                .expect("it runs");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        });
        let certificate = certificate(dir.path());
        let key = dir.path().join("key.pem");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("key.pem");
        give_away(&key);
        fs::write(data.join("pg_hba.conf"), ACCESS).expect("pg_hba.conf");
        let port = free_port();
        let process = launch(&program, &dir, port);
        let server = Self { program, process, port, certificate, dir };
        let mut boss = server.wait();
        SETUP
            .iter()
            .for_each(|text| assert!(matches!(boss.query(&text.replace("$", PASSWORD)).end, Seen::Done { .. })));
        let mut app = server.client();
        TABLES.iter().for_each(|text| assert!(matches!(app.query(text).end, Seen::Done { .. })));
        Some(server)
    }

    /// Ends it at once, with its children.
    pub fn kill(&mut self) {
        stop(&mut self.process, libc::SIGQUIT);
    }

    /// Starts it again after [`Self::kill`], on the same port.
    pub fn restart(&mut self) {
        self.process = launch(&self.program, &self.dir, self.port);
        self.wait();
    }

    /// The account that has all rights and no password.
    fn wait(&self) -> Client {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            match Client::connect(&self.address("boss", "", "postgres"), None) {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < deadline, "{error:?} {}", self.log()),
            }
            sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// An address.
    pub fn address(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", self.port)
    }

    /// The PEM file of its certificate.
    pub fn certificate_file(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    /// One that has all rights.
    pub fn client(&self) -> Client {
        Client::connect(&self.address("app", PASSWORD, "lab"), None).expect("a login")
    }
}

fn launch(program: &Path, dir: &tempfile::TempDir, port: u16) -> Child {
    let path = |name: &str| dir.path().join(name).display().to_string();
    let log = fs::File::create(path("log")).expect("a log");
    let settings = [
        ("port", port.to_string()),
        ("listen_addresses", "127.0.0.1".to_owned()),
        ("unix_socket_directories", dir.path().display().to_string()),
        ("fsync", "off".to_owned()),
        ("ssl", "on".to_owned()),
        ("ssl_cert_file", path("cert.pem")),
        ("ssl_key_file", path("key.pem")),
    ];
    command(program)
        .args([OsStr::new("-D"), dir.path().join("data").as_os_str()])
        .args(settings.iter().map(|(name, value)| format!("--{name}={value}")))
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("it starts")
}
