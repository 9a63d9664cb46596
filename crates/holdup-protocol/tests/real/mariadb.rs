//! A MariaDB of the test's own: its folder, its port, accounts and tables.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;

use super::client::Client;
use super::process::{certificate, free_port, is_root, program, send, stop};
use super::{PASSWORD, template};

/// `$` is the password.
const USERS: &str = "CREATE DATABASE lab;
CREATE USER 'app'@'%' IDENTIFIED BY '$';
GRANT ALL ON *.* TO 'app'@'%';
CREATE USER 'signer'@'%' IDENTIFIED VIA ed25519 USING PASSWORD('$');
GRANT SELECT ON lab.* TO 'signer'@'%';
CREATE USER 'nobody'@'%' IDENTIFIED BY '';
CREATE USER 'careful'@'%' IDENTIFIED BY '$' REQUIRE SSL;
CREATE USER 'limited'@'%' IDENTIFIED BY '$';
CREATE USER 'reader'@'%' IDENTIFIED BY '$';
GRANT SELECT ON lab.* TO 'reader'@'%';
CREATE TABLE lab.t (id INT PRIMARY KEY, note VARCHAR(100)) ENGINE=InnoDB;
INSERT INTO lab.t SELECT seq, CONCAT('note ', seq) FROM lab.seq_1_to_1000;
CREATE TABLE lab.kinds (tiny TINYINT, ntiny TINYINT UNSIGNED, small SMALLINT, mid MEDIUMINT, whole INT UNSIGNED, big BIGINT,
 nbig BIGINT UNSIGNED, price DECIMAL(10,2), f FLOAT, d DOUBLE, day DATE, at DATETIME(3), stamp DATETIME, span TIME, micro TIME(6), y YEAR,
 name VARCHAR(20), raw BLOB, word ENUM('a','b'), nothing INT);
INSERT INTO lab.kinds VALUES (-1, 255, -300, -70000, 4000000000, -9000000000000000000, 18446744073709551615, -12.50, 1.5, -0.001,
 '2024-02-29', '2024-02-29 01:02:03.045', '2024-01-01 00:00:00', '-100:01:02', '00:00:00.5', 2024, 'grüße', X'00ff', 'b', NULL);
CREATE DEFINER='app'@'%' PROCEDURE lab.two() SELECT 1 AS a UNION SELECT 2;
";

/// A running one.
pub struct MariaDb {
    program: PathBuf,
    process: Child,
    pub port: u16,
    pub certificate: CertificateDer<'static>,
    dir: tempfile::TempDir,
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.kill();
    }
}

impl MariaDb {
    /// One with accounts and tables; none, with a reason, where it is not installed.
    pub fn start() -> Option<Self> {
        let program = program(&["/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd"], "mariadb-server")?;
        let dir = tempfile::tempdir().expect("a folder");
        // A server that starts removes what it takes for its left-overs there: each has its own.
        let data = dir.path().join("data");
        template::fill(&data, &program, || {
            let made = Command::new("mariadb-install-db")
                .env("TMPDIR", dir.path())
                .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
                .arg(format!("--datadir={}", data.display()))
                .args(as_root())
                .output()
                .expect("it runs");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        });
        let certificate = certificate(dir.path());
        let init = dir.path().join("init.sql");
        fs::write(&init, USERS.replace('$', PASSWORD)).expect("init.sql");
        let port = free_port();
        let process = launch(&program, &dir, port, &[format!("--init-file={}", init.display())]);
        let server = Self { program, process, port, certificate, dir };
        server.wait();
        Some(server)
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        stop(&mut self.process, libc::SIGKILL);
    }

    /// Starts it again after [`Self::kill`], on the same port.
    pub fn restart(&mut self) {
        self.process = launch(&self.program, &self.dir, self.port, &[]);
        self.wait();
    }

    /// Stops or continues it.
    pub fn signal(&self, signal: libc::c_int) {
        send(&self.process, signal);
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while Client::connect(&self.address("app", PASSWORD), None).is_err() {
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "{}", log());
            sleep(Duration::from_millis(50));
        }
    }

    /// An address in the database of the tests.
    pub fn address(&self, user: &str, password: &str) -> String {
        format!("mysql://{user}:{password}@127.0.0.1:{}/lab", self.port)
    }

    /// The PEM file of its certificate.
    pub fn certificate_file(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    /// One that has all rights.
    pub fn client(&self) -> Client {
        Client::connect(&self.address("app", PASSWORD), None).expect("a login")
    }
}

fn as_root() -> &'static [&'static str] {
    if is_root() { &["--user=root"] } else { &[] }
}

fn launch(program: &Path, dir: &tempfile::TempDir, port: u16, more: &[String]) -> Child {
    let path = |name: &str| dir.path().join(name).display().to_string();
    let log = fs::File::create(path("log")).expect("a log");
    Command::new(program)
        .env("TMPDIR", dir.path())
        .args(["--no-defaults", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=32M"])
        .args(["--max-allowed-packet=64M", "--plugin-load-add=auth_ed25519", "--character-set-server=utf8mb4"])
        .arg(format!("--datadir={}", path("data")))
        .arg(format!("--socket={}", path("socket")))
        .arg(format!("--ssl-cert={}", path("cert.pem")))
        .arg(format!("--ssl-key={}", path("key.pem")))
        .arg(format!("--port={port}"))
        .args(more)
        .args(as_root())
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("it starts")
}
