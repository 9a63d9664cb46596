//! A large server: 2,000 sessions, 100,000 tables and 1,000,000 statements in `pg_stat_statements`. What a sample takes of time and of
//! the server. 10,000 sessions are 10,000 processes: at 2.5 MiB each that is 25 GiB, more than a test may take.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_recording::Batch;

use crate::watch;
use crate::{Server, Which};

const SESSIONS: usize = 2_000;
const TABLES: usize = 100_000;
const STATEMENTS: usize = 1_000_000;

/// Tables that one session makes, or reads: each keeps what it has read of the catalog.
const AT_ONCE: usize = 10_000;

/// Reads that are measured, a second apart.
const SAMPLES: u32 = 30;

/// What the collector may spend on one sample: a statement ends after 2 s, an answer after 6 s.
const SAMPLE_MAX: Duration = Duration::from_secs(6);

/// Share of one core of the server that watching it may cost.
const SERVER_SHARE_MAX: f64 = 0.2;

#[test]
#[ignore = "full: a hundred thousand tables are made"]
fn a_sample_of_a_hundred_thousand_tables_and_a_million_statements() {
    let settings = &[
        ("shared_preload_libraries", "pg_stat_statements"),
        ("pg_stat_statements.max", "1200000"),
        ("pg_stat_statements.track", "all"),
        ("max_connections", "2100"),
        ("autovacuum", "off"),
        ("max_locks_per_transaction", "1024"),
        ("synchronous_commit", "off"),
        ("shared_buffers", "1GB"),
    ];
    let Some(server) = Server::of(Which::System, settings) else { return };
    server.run("CREATE EXTENSION pg_stat_statements; CREATE USER watcher; GRANT pg_monitor TO watcher;");
    for from in (0..TABLES).step_by(AT_ONCE) {
        server.run(&tables_and_statements(from));
    }
    let sessions: Vec<TcpStream> = (0..SESSIONS).map(|_| session(server.port)).collect();
    let count = |sql: &str| server.run(sql).parse::<usize>().expect("a number");
    let statements = count("SELECT count(*) FROM pg_stat_statements(false)");
    let open = count("SELECT count(*) FROM pg_stat_activity");
    assert!(statements >= STATEMENTS && open >= SESSIONS, "{statements} statements, {open} sessions");

    let mut collector = watch(&server.address("watcher", ""));
    collector.probe().expect("it can be watched");
    let pid = server.run("SELECT pid FROM pg_stat_activity WHERE application_name = 'holdup'");
    let (cpu, begun) = (super::catalog::cpu_time(&pid), Instant::now());
    let (mut slowest, mut rows) = (Duration::ZERO, 0);
    for _ in 0..SAMPLES {
        let (mut batch, before) = (Batch::default(), Instant::now());
        collector.sample(&mut batch).expect("a part may fail, a sample does not");
        slowest = slowest.max(before.elapsed());
        rows = rows.max(batch.samples.len() + batch.sessions.len() + batch.statements.len());
        sleep(Duration::from_secs(1).saturating_sub(before.elapsed()));
    }
    let share = (super::catalog::cpu_time(&pid) - cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
    println!(
        "{open} sessions, {TABLES} tables, {statements} statements: slowest of {SAMPLES} samples {slowest:.2?}, at most {rows} rows, \
         {:.1} % of a core of the server",
        share * 100.0
    );
    assert!(slowest < SAMPLE_MAX, "{slowest:?}");
    assert!(share < SERVER_SHARE_MAX, "{share} of a core");
    drop(sessions);
}

/// Makes tables, and runs eleven statements on each that differ in more than their values.
fn tables_and_statements(from: usize) -> String {
    let shapes = [
        "SELECT id FROM %s",
        "SELECT note FROM %s",
        "SELECT id, note FROM %s",
        "SELECT note, id FROM %s",
        "SELECT 1 FROM %s",
        "SELECT id FROM %s LIMIT 1",
        "SELECT note FROM %s LIMIT 1",
        "SELECT id FROM %s OFFSET 1",
        "SELECT note FROM %s OFFSET 1",
        "SELECT id + 1 FROM %s",
        "SELECT count(*) FROM %s",
    ];
    let runs: String =
        shapes.iter().map(|shape| format!("EXECUTE format('{shape}', 'many_' || i);")).collect::<Vec<_>>().join(" ");
    let to = from + AT_ONCE - 1;
    format!(
        "DO $$ BEGIN FOR i IN {from}..{to} LOOP EXECUTE 'CREATE UNLOGGED TABLE many_' || i || ' (id int, note text)'; {runs} \
         IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END $$;"
    )
}

/// A session that does nothing: the protocol's start-up message, and the server's answers up to its being ready.
fn session(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let words = b"\0\x03\0\0user\0watcher\0database\0postgres\0\0";
    let length = u32::try_from(words.len() + 4).expect("short");
    stream.write_all(&[&length.to_be_bytes()[..], words].concat()).expect("it reads");
    let mut head = [0; 5];
    loop {
        stream.read_exact(&mut head).expect("a message");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).expect("its body");
        assert_ne!(head[0], b'E', "{}", String::from_utf8_lossy(&body));
        if head[0] == b'Z' {
            return stream;
        }
    }
}
