//! A MariaDB and a PostgreSQL with a certificate, accounts of every way to log in, and tables, for tests of what talks to them.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rustls::pki_types::CertificateDer;

use crate::client::Client;
use crate::{PASSWORD, Which, certificate, give_to_nobody};

/// `$` is the password.
const MARIADB: &str = "CREATE DATABASE lab;
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

/// Who may come how; the first line that fits counts.
const ACCESS: &str = "local all boss trust
host all boss all trust
host all trusted all trust
host all plain all password
host all hashed all md5
host all barred all reject
hostssl all all all scram-sha-256
host all careful all reject
host all all all scram-sha-256
";

/// `$` is the password.
const POSTGRES: &str = "CREATE DATABASE lab;
CREATE USER app SUPERUSER PASSWORD '$';
CREATE USER careful PASSWORD '$';
CREATE USER trusted;
CREATE USER barred;
CREATE USER plain PASSWORD '$';
SET password_encryption = 'md5';
CREATE USER hashed PASSWORD '$';
\\c lab
CREATE TABLE t (id int PRIMARY KEY, note text);
INSERT INTO t SELECT id, 'note ' || id FROM generate_series(1, 1000) id;
ANALYZE t;
CREATE FUNCTION late(v int) RETURNS int LANGUAGE plpgsql AS
 'BEGIN IF v > 900 THEN RAISE ''too late''; END IF; RETURN v; END';
";

/// A server with a certificate of its own.
pub struct Lab<S> {
    server: S,
    /// It verifies itself.
    pub certificate: CertificateDer<'static>,
}

/// A MariaDB.
pub type MariaDb = Lab<crate::MariaDb>;

/// A PostgreSQL.
pub type Postgres = Lab<crate::Postgres>;

impl<S> Deref for Lab<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.server
    }
}

impl<S> DerefMut for Lab<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.server
    }
}

impl MariaDb {
    /// A running one; none, with a reason, where it is not installed.
    pub fn start() -> Option<Self> {
        let server = crate::MariaDb::new()?;
        let certificate = certificate(server.folder());
        let file = |name: &str| server.file(name).display().to_string();
        let settings = [
            "--max-allowed-packet=64M".to_owned(),
            "--plugin-load-add=auth_ed25519".to_owned(),
            "--character-set-server=utf8mb4".to_owned(),
            format!("--ssl-cert={}", file("cert.pem")),
            format!("--ssl-key={}", file("key.pem")),
        ];
        let server = server.with(settings).start();
        server.run(&format!("SET NAMES utf8mb4;\n{}", MARIADB.replace('$', PASSWORD)));
        Some(Self { server, certificate })
    }

    /// An address in the database of the tests.
    pub fn address(&self, user: &str, password: &str) -> String {
        format!("{}/lab", self.server.address(user, password))
    }

    /// The PEM file of its certificate.
    pub fn certificate_file(&self) -> PathBuf {
        self.file("cert.pem")
    }

    /// One that has all rights.
    pub fn client(&self) -> Client {
        Client::connect(&self.address("app", PASSWORD), None).expect("a login")
    }
}

impl Postgres {
    /// A running one; none, with a reason, where it is not installed.
    pub fn start() -> Option<Self> {
        let server = crate::Postgres::new(Which::System)?;
        let certificate = certificate(server.folder());
        let (cert, key) = (server.file("cert.pem"), server.file("key.pem"));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("key.pem");
        give_to_nobody(&key);
        fs::write(server.file("data/pg_hba.conf"), ACCESS).expect("pg_hba.conf");
        let (cert, key) = (cert.display().to_string(), key.display().to_string());
        let server = server.with(&[("ssl", "on"), ("ssl_cert_file", &cert), ("ssl_key_file", &key)]).start();
        server.run(&POSTGRES.replace('$', PASSWORD));
        Some(Self { server, certificate })
    }

    /// An address.
    pub fn address(&self, user: &str, password: &str, database: &str) -> String {
        self.url(&format!("{user}:{password}"), database)
    }

    /// The PEM file of its certificate.
    pub fn certificate_file(&self) -> PathBuf {
        self.file("cert.pem")
    }

    /// One that has all rights.
    pub fn client(&self) -> Client {
        Client::connect(&self.address("app", PASSWORD, "lab"), None).expect("a login")
    }
}
