//! PostgreSQL: logins, texts and prepared statements, transactions, what goes wrong.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_wire::{Error, MAX_PREPARED, Statement};
use rustls::pki_types::CertificateDer;

use super::PASSWORD;
use super::client::{Answer, Client, End, Seen, prepared, refused, text};
use super::server::{certificate, free_port, is_root, program, stop};

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

struct Postgres {
    process: Child,
    port: u16,
    certificate: CertificateDer<'static>,
    dir: tempfile::TempDir,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once, with its children.
        stop(&mut self.process, libc::SIGQUIT);
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
    fn start() -> Option<Self> {
        let server = program(
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
        let made = command(&server.with_file_name("initdb"))
            .args(["--username=boss", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync", "-D"])
            .arg(&data)
            .current_dir(dir.path())
            .output()
            .expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let certificate = certificate(dir.path());
        let key = dir.path().join("key.pem");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("key.pem");
        give_away(&key);
        fs::write(data.join("pg_hba.conf"), ACCESS).expect("pg_hba.conf");
        let log = fs::File::create(dir.path().join("log")).expect("a log");
        let port = free_port();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let settings = [
            ("port", port.to_string()),
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("unix_socket_directories", dir.path().display().to_string()),
            ("fsync", "off".to_owned()),
            ("ssl", "on".to_owned()),
            ("ssl_cert_file", path("cert.pem")),
            ("ssl_key_file", path("key.pem")),
        ];
        let process = command(&server)
            .args([OsStr::new("-D"), data.as_os_str()])
            .args(settings.iter().map(|(name, value)| format!("--{name}={value}")))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("it starts");
        let server = Self { process, port, certificate, dir };
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut boss = loop {
            match Client::connect(&server.address("boss", "", "postgres"), None) {
                Ok(client) => break client,
                Err(error) => assert!(Instant::now() < deadline, "{error:?} {}", server.log()),
            }
            sleep(Duration::from_millis(100));
        };
        SETUP.iter().for_each(|text| drop(done(&mut boss, &text.replace('$', PASSWORD))));
        let mut app = server.client();
        TABLES.iter().for_each(|text| drop(done(&mut app, text)));
        Some(server)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn address(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", self.port)
    }

    fn client(&self) -> Client {
        Client::connect(&self.address("app", PASSWORD, "lab"), None).expect("a login")
    }
}

fn done(client: &mut Client, text: &str) -> Answer {
    let answer = client.query(text);
    answer.done();
    answer
}

/// One server for all: a second costs seconds.
#[test]
fn a_real_postgres() {
    let Some(server) = Postgres::start() else { return };
    logins(&server);
    texts(&mut server.client());
    parameters(&mut server.client());
    large_results(&mut server.client());
    errors(&mut server.client());
    transactions(&server);
    many_texts(&mut server.client());
    copies(&mut server.client());
    byte_by_byte(&server);
    closing(&server);
}

fn logins(server: &Postgres) {
    for (user, password) in [("app", PASSWORD), ("hashed", PASSWORD), ("trusted", "")] {
        for tls in ["", "?tls=on"] {
            let address = format!("{}{tls}", server.address(user, password, "lab"));
            let mut client = Client::connect(&address, Some(&server.certificate)).expect(user);
            let answer = client
                .query("SELECT current_user, current_database(), ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
            assert_eq!(answer.row(), [Some(user), Some("lab"), Some(if tls.is_empty() { "f" } else { "t" })]);
            assert_eq!(client.value("SHOW application_name"), "holdup");
            assert!(client.quit());
        }
    }
    for user in ["app", "hashed"] {
        for wrong in ["wrong-canary", ""] {
            let error = refused(&server.address(user, wrong, "lab"));
            assert!(matches!(&error, Error::LoginRefused { code, .. } if code == "28P01"), "{error}");
            assert!(!error.to_string().contains("canary"));
        }
    }
    // In the clear only under TLS.
    assert_eq!(refused(&server.address("plain", PASSWORD, "lab")), Error::NeedsTls("password"));
    let address = format!("{}?tls=on", server.address("plain", PASSWORD, "lab"));
    let mut client = Client::connect(&address, Some(&server.certificate)).expect("TLS");
    assert_eq!(client.value("SELECT 1"), "1");
    for (user, database, expected) in
        [("barred", "lab", "28000"), ("careful", "lab", "28000"), ("trusted", "nowhere", "3D000")]
    {
        let error = refused(&server.address(user, PASSWORD, database));
        assert!(matches!(&error, Error::LoginRefused { code, .. } if code == expected), "{error}");
    }
    let address = format!("{}?tls=on", server.address("careful", PASSWORD, "lab"));
    Client::connect(&address, Some(&server.certificate)).expect("TLS");
}

fn texts(client: &mut Client) {
    let answer = client.query("SELECT id, note, NULL AS nothing, '' AS empty FROM t WHERE id <= 3 ORDER BY id");
    assert_eq!(answer.done(), (3, 0));
    let columns = ["id", "note", "nothing", "empty"].map(str::to_owned).to_vec();
    let values = vec![Some("1".to_owned()), Some("note 1".to_owned()), None, Some(String::new())];
    assert_eq!(answer.rows, [Seen::Row { statement: 0, columns, values }]);
    for statement in [text("SELECT * FROM t WHERE id <= 1000"), prepared("SELECT * FROM t WHERE id <= 1000", &[])] {
        let answer = client.execute(&[statement], false);
        assert_eq!((answer.done(), answer.rows.len()), ((1000, 0), 0));
    }
    assert_eq!(client.query("SELECT * FROM t WHERE id > 5000").done(), (0, 0));
    assert_eq!(client.query("UPDATE t SET note = 'x' WHERE id IN (998, 999)").done(), (0, 2));
    assert_eq!(client.query("INSERT INTO t VALUES (3001, 'y') RETURNING id").row(), [Some("3001")]);
    assert_eq!(client.query("DELETE FROM t WHERE id = 3001").done(), (0, 1));
    assert_eq!(client.value("SELECT 'grüße'"), "grüße");
    assert_eq!(client.query("").done(), (0, 0));
    assert_eq!(client.prepared("", &[]).done(), (0, 0));
    let two = client.query("SELECT 1 WHERE false; SELECT 2; SELECT 3");
    assert_eq!((two.done(), two.row()), ((2, 0), vec![Some("2")]));
    // A notice in between.
    assert_eq!(client.query("DO $$ BEGIN RAISE NOTICE 'hm'; END $$").done(), (0, 0));
}

fn parameters(client: &mut Client) {
    let by_id = "SELECT note FROM t WHERE id = $1";
    for id in ["1", "500", "1"] {
        assert_eq!(client.prepared(by_id, &[Some(id)]).row(), [Some(format!("note {id}").as_str())]);
    }
    assert_eq!(client.prepared(by_id, &[None]).done(), (0, 0));
    let plan = client.prepared(&format!("EXPLAIN {by_id}"), &[Some("77")]);
    assert!(plan.row()[0].expect("a plan").starts_with("Index Scan"), "{plan:?}");
    assert_eq!(client.prepared("SELECT * FROM t LIMIT $1 OFFSET $2", &[Some("7"), Some("2")]).done(), (7, 0));
    let many: Vec<Option<&str>> = (0..300).map(|number| (number % 3 > 0).then_some("v")).collect();
    let marks: Vec<String> = (1..=many.len()).map(|number| format!("${number}::text")).collect();
    assert_eq!(client.prepared(&format!("SELECT {}", marks.join(", ")), &many).row(), many);
    let large = "y".repeat(1_000_000);
    assert_eq!(client.prepared("SELECT length($1)", &[Some(&large)]).row(), [Some("1000000")]);
    let kept = prepared_count(client);
    let once = Statement { is_prepared: false, ..prepared("SELECT $1::int", &[Some("5")]) };
    for _ in 0..3 {
        assert_eq!(client.execute(std::slice::from_ref(&once), true).row(), [Some("5")]);
    }
    assert_eq!(prepared_count(client), kept);
}

fn prepared_count(client: &mut Client) -> usize {
    client.value("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''").parse().expect("a number")
}

fn large_results(client: &mut Client) {
    let many = "SELECT * FROM generate_series(1, 300000)";
    for statement in [text(many), prepared(many, &[])] {
        let answer = client.execute(&[statement], true);
        assert_eq!((answer.done(), answer.row()), ((300_000, 0), vec![Some("1")]));
    }
    for size in [2_000_000_u64, 40_000_000] {
        let answer = client.query(&format!("SELECT repeat('x', {size})"));
        assert_eq!((answer.done(), answer.rows.len()), ((1, 0), 0));
        assert!(answer.bytes() > size);
    }
    assert_eq!(client.query("SELECT repeat('x', 1000000)").row()[0].map(str::len), Some(1_000_000));
}

fn errors(client: &mut Client) {
    assert_eq!(client.query("SELEC 1").failed(), (0, "42601"));
    assert_eq!(client.prepared("SELEC $1", &[Some("1")]).failed(), (0, "42601"));
    assert_eq!(client.query("INSERT INTO t VALUES (1, '')").failed(), (0, "23505"));
    for _ in 0..2 {
        assert_eq!(client.prepared("INSERT INTO t VALUES ($1, '')", &[Some("1")]).failed(), (0, "23505"));
        assert_eq!(client.prepared("SELECT * FROM t WHERE id = $1", &[Some("no number")]).failed(), (0, "22P02"));
        assert_eq!(client.prepared("SELECT $1::int, $2::int", &[Some("1")]).failed(), (0, "08P01"));
    }
    assert_eq!(client.prepared("SELECT * FROM t WHERE id = $1", &[Some("1")]).done(), (1, 0));
    // In the midst of rows.
    assert_eq!(client.query("SELECT late(id) FROM t ORDER BY id").failed(), (0, "P0001"));
    // The server forgets what is prepared; what it tells then is learned from.
    assert_eq!(client.prepared("SELECT $1::int", &[Some("1")]).done(), (1, 0));
    done(client, "DISCARD ALL");
    assert_eq!(client.prepared("SELECT $1::int", &[Some("1")]).failed(), (0, "26000"));
    assert_eq!(client.prepared("SELECT $1::int", &[Some("1")]).done(), (1, 0));
    done(client, "CREATE TABLE changing AS SELECT 1 AS a");
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).row(), [Some("1")]);
    done(client, "ALTER TABLE changing ADD COLUMN b int DEFAULT 2");
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).failed(), (0, "0A000"));
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).row(), [Some("1"), Some("2")]);
    assert!(client.session.execute(&[text("SELECT 1\0; DROP TABLE t")], false).is_err());
    assert_eq!(client.value("SELECT 1"), "1");
}

fn transactions(server: &Postgres) {
    let (mut client, mut other) = (server.client(), server.client());
    let transfer = [
        text("BEGIN"),
        prepared("UPDATE t SET note = $1 WHERE id = $2", &[Some("moved"), Some("10")]),
        text("SELECT note FROM t WHERE id = 10"),
        prepared("INSERT INTO t VALUES ($1, $2)", &[Some("2000"), None]),
        text("COMMIT"),
    ];
    let answer = client.execute(&transfer, true);
    assert_eq!((answer.done(), answer.row()), ((1, 2), vec![Some("moved")]));
    assert!(matches!(answer.rows[0], Seen::Row { statement: 2, .. }));
    assert_eq!(other.value("SELECT note FROM t WHERE id = 10"), "moved");
    other.query("UPDATE t SET note = 'before' WHERE id = 10");
    let answer = client.execute(&transfer, true);
    assert_eq!((answer.failed(), answer.rows.len()), ((3, "23505"), 1));
    assert!(!client.session.is_in_transaction());
    assert_eq!(other.value("SELECT note FROM t WHERE id = 10"), "before");
    client.execute(&transfer[..2], false);
    assert!(client.session.is_in_transaction());
    assert_eq!(client.query("SELEC").failed(), (0, "42601"));
    assert!(!client.session.is_in_transaction());
    // What is only found out at the end.
    done(&mut client, "CREATE TABLE late_check (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    let twice = [text("BEGIN"), text("INSERT INTO late_check VALUES (1), (1)"), text("COMMIT")];
    assert_eq!(client.execute(&twice, false).failed(), (2, "23505"));
    assert_eq!(client.query("SELECT * FROM late_check").done(), (0, 0));
}

fn many_texts(client: &mut Client) {
    for number in 0..1000 {
        let answer = client.prepared(&format!("SELECT $1::int + {number}"), &[Some("1")]);
        assert_eq!(answer.row(), [Some((number + 1).to_string().as_str())]);
    }
    assert_eq!(prepared_count(client), MAX_PREPARED);
    assert_eq!(client.prepared("SELECT $1::int + 0", &[Some("1")]).row(), [Some("1")]);
}

fn copies(client: &mut Client) {
    for copy in [text("COPY t FROM STDIN"), prepared("COPY t FROM STDIN", &[])] {
        let answer = client.execute(&[copy], true);
        assert_eq!(answer.failed(), (0, "57014"));
        assert!(answer.message().contains("holdup copies nothing"), "{answer:?}");
    }
    let answer = client.query("COPY (SELECT * FROM generate_series(1, 1000)) TO STDOUT");
    assert_eq!(answer.done(), (0, 0));
    assert!(answer.bytes() > 5000);
}

fn byte_by_byte(server: &Postgres) {
    let mut client = server.client();
    for piece in [1, 2, 3, 7] {
        client.piece = piece;
        texts(&mut client);
        assert_eq!(client.query("SELEC 1").failed(), (0, "42601"));
        assert_eq!(client.prepared("SELECT note FROM t WHERE id = $1", &[Some("5")]).row(), [Some("note 5")]);
    }
}

fn closing(server: &Postgres) {
    let (mut client, mut other) = (server.client(), server.client());
    let id = client.value("SELECT pg_backend_pid()");
    assert_eq!(other.value(&format!("SELECT pg_terminate_backend({id})")), "t");
    let is_shut_down = |end: &End| match end {
        End::Error(Error::ClosedByServer { code, .. }) => code == "57P01",
        End::Error(_) => false,
        // Its words were lost with the connection.
        End::Closed => true,
    };
    let end = client.try_execute(&[text("SELECT 1")], false).expect_err("it is closed");
    assert!(is_shut_down(&end), "{end:?}");
    // While a statement is being executed, and while none is.
    let mut suicidal = server.client();
    let end =
        suicidal.try_execute(&[text("SELECT pg_terminate_backend(pg_backend_pid())")], false).expect_err("closed");
    assert!(is_shut_down(&end), "{end:?}");
    let mut idle = server.client();
    idle.query("SET idle_session_timeout = '100ms'");
    match idle.wait_for_end() {
        End::Error(Error::ClosedByServer { code, .. }) => assert_eq!(code, "57P05"),
        other => panic!("{other:?}"),
    }
}
