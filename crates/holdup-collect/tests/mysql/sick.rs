//! A server that hangs, refuses, is killed or is full of large statements: how many connections it gets from holdup, and
//! whether holdup comes back.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::slow::SlowRequests;
use holdup_recording::Batch;

use crate::client::Conn;
use crate::raw::Raw;
use crate::server::{Server, mariadb};

/// What lets holdup see the statements that have run.
const HISTORY: &[&str] = &[
    "--performance-schema=ON",
    "--performance-schema-consumer-events-statements-current=ON",
    "--performance-schema-consumer-events-statements-history-long=ON",
];

/// Most connections of one source.
const CONNECTIONS_MAX: usize = 2;

/// Rows of the kernel's table of connections.
fn rows(of: impl Fn(&[&str]) -> bool) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).filter(|line| of(&line.split_whitespace().collect::<Vec<_>>())).count()
}

/// Connections as the server has them: established, or closed by the other side.
fn connections(port: u16) -> usize {
    let end = format!(":{port:04X}");
    rows(|words| words[1].ends_with(&end) && matches!(words[3], "01" | "08"))
}

/// Connections that this process has open. Another one may ask every port of the machine for metrics, and a listener
/// that accepts nothing never forgets who has left.
fn own_connections(port: u16) -> usize {
    let fds = std::fs::read_dir("/proc/self/fd").unwrap();
    let own: BTreeSet<String> = fds
        .flatten()
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .filter_map(|of| Some(of.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let end = format!(":{port:04X}");
    rows(|words| words[2].ends_with(&end) && words[3] == "01" && own.contains(words[9]))
}

/// Whether nothing comes within 20 ms: a client of this protocol waits for the server's greeting.
fn stays_silent(stream: &TcpStream) -> bool {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    !matches!(stream.peek(&mut [0]), Ok(1..))
}

/// Samples `times` times, a second apart; the most connections that `count` saw after any of them.
fn most_connections(watcher: &mut Box<dyn Collector>, times: u32, count: impl Fn() -> usize) -> usize {
    let sample = |_| {
        let _ = watcher.sample(&mut Batch::default());
        sleep(Duration::from_secs(1));
        count()
    };
    (0..times).map(sample).max().unwrap_or_default()
}

/// Samples until one succeeds, which it has to at some time.
fn until_it_is_back(watcher: &mut Box<dyn Collector>) -> Batch {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let mut batch = Batch::default();
        match watcher.sample(&mut batch) {
            Ok(()) => return batch,
            Err(error) => assert!(Instant::now() < deadline, "holdup does not come back: {error}"),
        }
        sleep(Duration::from_millis(100));
    }
}

fn of_watcher(server: &Server) -> usize {
    let count = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'watcher'";
    server.root().unwrap().query_first(count).unwrap().unwrap_or_default()
}

#[test]
fn a_server_that_hangs_gets_two_connections_and_no_more() {
    let Some(server) = mariadb(HISTORY) else { return };
    // With the connection that waits for slow requests, and without.
    for slow in [None, Some(SlowRequests::new(Duration::from_millis(500)))] {
        let (mut watcher, _) = server.watch(slow.clone());
        watcher.sample(&mut Batch::default()).unwrap();
        server.signal(libc::SIGSTOP);
        if let Some(slow) = slow {
            slow.put("5bd66ef5095369c7b0d1f8f4bd33716a", 0, 1_000_000_000);
        }
        let most = most_connections(&mut watcher, 8, || connections(server.port));
        server.signal(libc::SIGCONT);
        assert!((1..=CONNECTIONS_MAX).contains(&most), "{most} connections to a server that hangs");
        until_it_is_back(&mut watcher);
        // Those that it has given up have ended on the server's side too.
        let deadline = Instant::now() + Duration::from_secs(60);
        while of_watcher(&server) > CONNECTIONS_MAX {
            assert!(Instant::now() < deadline, "{} sessions", of_watcher(&server));
            sleep(Duration::from_millis(50));
        }
        // A server that is stopped before it has seen them close would still count them for the next one.
        drop(watcher);
        while connections(server.port) > 0 {
            assert!(Instant::now() < deadline, "{} connections", connections(server.port));
            sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn what_accepts_and_never_speaks_gets_two_connections_and_no_more() {
    let Some(mut server) = mariadb(&[]) else { return };
    let (mut watcher, _) = server.watch(None);
    watcher.sample(&mut Batch::default()).unwrap();
    server.kill();
    // In the server's place, as a proxy whose backend is gone.
    let listener = TcpListener::bind(("127.0.0.1", server.port)).unwrap();
    let most = most_connections(&mut watcher, 8, || own_connections(server.port));
    assert!((1..=CONNECTIONS_MAX).contains(&most), "{most} connections to what never speaks");
    drop(listener);
    server.again();
    until_it_is_back(&mut watcher);
    assert!(of_watcher(&server) <= CONNECTIONS_MAX);
}

#[test]
fn a_server_that_closes_every_connection_is_asked_less_and_less_often() {
    let Some(mut server) = mariadb(&[]) else { return };
    let (mut watcher, _) = server.watch(None);
    watcher.sample(&mut Batch::default()).unwrap();
    server.kill();
    let listener = TcpListener::bind(("127.0.0.1", server.port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut accepted = 0;
    for _ in 0..40 {
        let sampled = std::thread::scope(|scope| {
            let sampling = scope.spawn(|| watcher.sample(&mut Batch::default()));
            while !sampling.is_finished() {
                accepted += u32::from(listener.accept().is_ok_and(|(stream, _)| stays_silent(&stream)));
                sleep(Duration::from_millis(5));
            }
            sampling.join().unwrap()
        });
        assert!(sampled.is_err());
        sleep(Duration::from_millis(50));
    }
    assert!((1..=10).contains(&accepted), "{accepted} attempts in 40 samples");
    drop(listener);
    server.again();
    until_it_is_back(&mut watcher);
}

#[test]
fn reads_that_fail_are_left_alone_for_a_while_and_the_others_go_on() {
    let Some(server) = mariadb(HISTORY) else { return };
    let (mut watcher, _) = server.watch(None);
    watcher.sample(&mut Batch::default()).unwrap();
    let mut root = server.root().unwrap();
    root.query_drop("REVOKE SELECT ON performance_schema.* FROM 'watcher'@'127.0.0.1'").unwrap();
    let denials = |root: &mut Conn| -> u32 {
        let (_, count): (String, u32) =
            root.query_first("SHOW GLOBAL STATUS LIKE 'Access_denied_errors'").unwrap().unwrap();
        count
    };
    let before = denials(&mut root);
    for _ in 0..40 {
        let mut batch = Batch::default();
        let words = watcher.sample(&mut batch).unwrap_err().to_string();
        assert!(words.contains("statement history: error 1142"), "also while it is not asked: {words}");
        let uptime = |sample: &&holdup_recording::rows::Sample| sample.metric == "mysql_global_status_uptime";
        assert!(batch.samples.iter().any(|sample| uptime(&sample)) && !batch.sessions.is_empty(), "{words}");
        sleep(Duration::from_millis(50));
    }
    let denied = denials(&mut root) - before;
    // Two parts: digests and history.
    assert!((2..=40).contains(&denied), "{denied} refusals in 40 samples");
    root.query_drop("GRANT SELECT ON performance_schema.* TO 'watcher'@'127.0.0.1'").unwrap();
    until_it_is_back(&mut watcher);
}

#[test]
fn statements_of_many_mebibytes_do_not_keep_sessions_from_being_seen() {
    let Some(server) = mariadb(&["--max-allowed-packet=64M"]) else { return };
    let (mut watcher, _) = server.watch(None);
    watcher.sample(&mut Batch::default()).unwrap();
    let sent = |root: &mut Conn| -> u64 {
        let (_, bytes): (String, u64) = root.query_first("SHOW GLOBAL STATUS LIKE 'Bytes_sent'").unwrap().unwrap();
        bytes
    };
    let mut root = server.root().unwrap();
    // Three that are too much together, and one that is by itself.
    let running = [15, 15, 15, 40].map(|mebibytes: usize| {
        let mut client = Raw::connect(&server, 45);
        client.start(format!("SELECT SLEEP(600), '{}'", "x".repeat(mebibytes << 20)).as_bytes());
        client
    });
    let deadline = Instant::now() + Duration::from_secs(120);
    let asleep = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO_BINARY LIKE 'SELECT SLEEP%'";
    while root.query_first::<usize>(asleep).unwrap() != Some(running.len()) {
        assert!(Instant::now() < deadline, "the statements do not run");
        sleep(Duration::from_millis(100));
    }
    let before = sent(&mut root);
    let mut seen = 0;
    for _ in 0..30 {
        let mut batch = Batch::default();
        let _ = watcher.sample(&mut batch);
        seen += u32::from(batch.sessions.iter().filter(|session| session.command == *"Query").count() >= running.len());
        sleep(Duration::from_millis(100));
    }
    let mebibytes = (sent(&mut root) - before) >> 20;
    assert!(seen >= 10, "the sessions were seen in {seen} of 30 samples");
    assert!(mebibytes <= 15 * 85, "{mebibytes} MiB were read in 30 samples");
    drop((server, running));
}
