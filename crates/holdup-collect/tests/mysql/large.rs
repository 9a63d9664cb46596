//! A large server: 10,000 sessions and 1,000,000 digests. What a sample takes of time, of memory and of the server.

use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_recording::Batch;
use holdup_testing::free_port;

use crate::raw::Raw;
use crate::server::{Server, mariadb};

const SESSIONS: usize = 10_000;

/// MariaDB and MySQL keep 1,048,576 digests at most.
const DIGESTS: usize = 1_000_000;

/// Sessions that make digests side by side.
const WRITERS: usize = 4;

/// Reads that are measured, a second apart.
const SAMPLES: u32 = 30;

/// What the collector may spend on one sample: it takes no answer beyond 6 s.
const SAMPLE_MAX: Duration = Duration::from_secs(6);

/// What a sample may add to holdup's memory beside the rows it hands over: an answer is 32 MiB at most.
const MEMORY_MAX_BYTES: u64 = 256 << 20;

/// Share of one core of the server that watching it may cost.
const SERVER_SHARE_MAX: f64 = 0.1;

#[test]
#[ignore = "full: a million statements are run"]
fn a_sample_of_ten_thousand_sessions_and_a_million_digests() {
    if !allow_files(SESSIONS as u64 + 1_000) {
        eprintln!("skipped: this account may open fewer than {} files", SESSIONS + 1_000);
        return;
    }
    let extra_port = format!("--extra-port={}", free_port());
    let settings = [
        "--thread-handling=pool-of-threads",
        "--performance-schema=ON",
        "--max-connections=10100",
        "--performance-schema-digests-size=1048576",
        "--performance-schema-max-digest-length=256",
        "--performance-schema-max-thread-instances=11000",
        "--extra-max-connections=4",
        &extra_port,
        "--performance-schema-consumer-events-statements-current=ON",
        "--open-files-limit=20000",
        "--performance-schema-consumer-events-statements-history-long=ON",
    ];
    let Some(server) = mariadb(&settings) else { return };
    run_statements(&server);
    let sessions: Vec<UnixStream> = (0..SESSIONS).map(|_| Raw::connect(&server, 8).into_stream()).collect();
    let mut root = server.root().unwrap();
    let mut count = |sql: &str| root.query_first::<u64>(sql).unwrap().unwrap();
    let digests = count("SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest");
    let open = count("SELECT COUNT(*) FROM information_schema.PROCESSLIST");
    assert!(digests >= DIGESTS as u64 && open >= SESSIONS as u64, "{digests} digests, {open} sessions");

    let (mut watcher, _) = server.watch(None);
    let (memory, cpu, begun) = (resident_bytes(), server.cpu_time(), Instant::now());
    let (mut slowest, mut rows, mut failed) = (Duration::ZERO, 0, 0);
    for _ in 0..SAMPLES {
        let (mut batch, before) = (Batch::default(), Instant::now());
        failed += u32::from(watcher.sample(&mut batch).is_err());
        slowest = slowest.max(before.elapsed());
        rows = rows.max(batch.samples.len() + batch.sessions.len() + batch.statements.len());
        sleep(Duration::from_secs(1).saturating_sub(before.elapsed()));
    }
    let share = (server.cpu_time() - cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
    let grown = resident_bytes().saturating_sub(memory);
    println!(
        "{open} sessions, {digests} digests: slowest of {SAMPLES} samples {slowest:.2?}, {failed} failed, at most {rows} rows, \
         {} MiB more memory, {:.1} % of a core of the server",
        grown >> 20,
        share * 100.0
    );
    assert!(slowest < SAMPLE_MAX, "{slowest:?}");
    assert!(grown < MEMORY_MAX_BYTES, "{grown} bytes more");
    assert!(share < SERVER_SHARE_MAX, "{share} of a core");
    assert_eq!(failed, 0, "a part may fail, a sample does not");
    drop(sessions);
}

/// Runs so many statements of which no two have the same digest.
fn run_statements(server: &Server) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut session = Raw::connect(server, 8);
                for number in (writer..DIGESTS).step_by(WRITERS) {
                    session.run(format!("SELECT 1 AS d{number}").as_bytes());
                }
            });
        }
    });
}

/// Raises the number of files that this process may open. Whether it may open so many.
fn allow_files(wanted: u64) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or fill `limit`, which lives through them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
    limit.rlim_cur >= wanted
}

/// Memory of this process that is resident.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
