//! A server that hangs, or is full of large statements: how many connections it gets from holdup, counted on its side, and whether
//! holdup comes back.

use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_recording::Batch;

use crate::{Server, Which};
use crate::{until, watch};

/// Most connections of one source.
const CONNECTIONS_MAX: usize = 2;

/// Connections on a server's port, as the server's side of them: established, or closed by the client alone.
fn connections(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let is_there = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1].ends_with(&format!(":{port:04X}")) && matches!(words[3], "01" | "08")
    };
    table.lines().skip(1).filter(is_there).count()
}

fn hung(which: Which) {
    let Some(server) = Server::of(which, &[]) else { return };
    server.run("CREATE USER watcher PASSWORD 's3cr3t-canary'; GRANT pg_monitor TO watcher;");
    let mut collector = watch(&server.address("watcher", ""));
    collector.probe().expect("it can be watched");
    collector.sample(&mut Batch::default()).expect("a sample");
    server.process().signal_all(libc::SIGSTOP);
    let mut most = 0;
    for _ in 0..8 {
        let _ = collector.sample(&mut Batch::default());
        sleep(Duration::from_secs(1));
        most = most.max(connections(server.port));
    }
    server.process().signal_all(libc::SIGCONT);
    assert!((1..=CONNECTIONS_MAX).contains(&most), "{most} connections to a server that hangs");
    let deadline = Instant::now() + Duration::from_secs(300);
    while let Err(error) = collector.sample(&mut Batch::default()) {
        assert!(Instant::now() < deadline, "holdup does not come back: {error}");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_server_that_hangs_gets_two_connections_and_no_more() {
    hung(Which::System);
    hung(Which::Fetched(18));
}

#[test]
fn statements_of_a_mebibyte_do_not_keep_sessions_from_being_seen() {
    const SESSIONS: usize = 40;
    let Some(server) = Server::of(Which::System, &[("track_activity_query_size", "1048576")]) else { return };
    server.run("CREATE USER watcher PASSWORD 's3cr3t-canary'; GRANT pg_monitor TO watcher;");
    let sql = format!("SELECT pg_sleep(600) /* {} */", "x".repeat(1_000_000));
    let running: Vec<_> = (0..SESSIONS).map(|_| server.begin(&sql)).collect();
    let mut collector = watch(&server.address("watcher", ""));
    collector.probe().expect("it can be watched");
    until(collector.as_mut(), "all sessions", |batch| {
        let asleep = |text: &str| text == "SELECT pg_sleep(?)";
        batch.sessions.iter().filter(|row| row.digest_text.as_deref().is_some_and(asleep)).count() == SESSIONS
    });
    drop(server);
    running.into_iter().for_each(holdup_testing::Running::stop);
}
