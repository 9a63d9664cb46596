//! `holdup run --store` while its store is killed, slow, cut off or out of disk: in the end it has the rows of the Parquet files, in
//! count and hash. A pass has one run of each server. For twenty, each disturbed in its own way:
//! `HOLDUP_STORE_ROUNDS=20 cargo nextest run --cargo-profile ci --profile full --test-threads 2 -p holdup --run-ignored all -E 'test(disturbed_run)'`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::proxy::{Answer, Fate, Proxy};
use super::server::{Kind, Server};
use super::{DATABASE, assert_equal, stored};
use crate::program::{Running, holdup};
use crate::service::Service;

/// How a run's store is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    /// Its disk is full for a while.
    Full,
    /// Each answer is late, and some connections are reset in place of one.
    Slow,
    /// It is killed, and comes back.
    Killed,
}

/// How late answers are; in a pass that has to be short.
const LATE: Duration = Duration::from_millis(500);
const LATE_IN_A_PASS: Duration = Duration::from_millis(50);

/// The disk of a server that is full for a while.
const DISK: &str = "48m";

fn rounds() -> usize {
    std::env::var("HOLDUP_STORE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// Starts a run of these seconds.
fn run(service: &Service, out: &Path, seconds: u32, url: &str) -> Running {
    let duration = format!("{seconds}s");
    let mut command = holdup(["run", "--url", &service.url(), "--rate", "300", "--duration", &duration]);
    Running::start(command.args(["--store", url, "-o"]).arg(out))
}

/// Rows in the store, each once.
fn rows(server: &Server) -> u64 {
    server.ask(DATABASE, "SELECT uniqExact(row) FROM requests").parse().unwrap()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Fills the server's disk, and returns the file that does so.
fn fill(server: &Server) -> std::path::PathBuf {
    let path = server.file("ballast");
    let mut file = File::create(&path).unwrap();
    for size in [1 << 20, 1 << 12] {
        let block = vec![1; size];
        while file.write_all(&block).is_ok() {}
    }
    path
}

/// What happens to an answer on a slow network: one in a hundred is lost, and one insert at least.
fn slow(round: usize, late: Duration, answer: Answer) -> Fate {
    let is_lost = answer.number % 100 == 99 || answer.is_insert && answer.inserts == 2 + round % 5;
    if is_lost { Fate::Reset } else { Fate::Late(late) }
}

/// One run; none without such a server.
fn disturbed(kind: Kind, round: usize, how: Disturbance, late: Duration) -> Option<()> {
    let mut server = if how == Disturbance::Full { Server::on_small_disk(kind, DISK)? } else { Server::start(kind)? };
    stored(&["init", &server.url(DATABASE)]);
    let dir = tempfile::tempdir().unwrap();
    let (service, out) = (Service::start(), dir.path().join("run"));
    let proxy = Proxy::start(server.port(), move |answer| match how {
        Disturbance::Slow => slow(round, late, answer),
        Disturbance::Full | Disturbance::Killed => Fate::Arrives,
    });
    let running = run(&service, &out, 9, &proxy.url(DATABASE));
    let moment = Duration::from_millis(200 * (round as u64 % 10));
    match how {
        Disturbance::Slow => {}
        Disturbance::Full => {
            until("no rows in the store", || rows(&server) > 0);
            std::thread::sleep(moment);
            let ballast = fill(&server);
            // The next look for new rows is after 3 s at most.
            std::thread::sleep(Duration::from_secs(4));
            std::fs::remove_file(ballast).unwrap();
        }
        Disturbance::Killed => {
            until("no rows in the store", || rows(&server) > 0);
            std::thread::sleep(moment);
            server.kill();
            std::thread::sleep(Duration::from_secs(1 + round as u64 % 4));
            server.again();
        }
    }
    let done = running.finish(Duration::from_secs(120));
    assert_eq!(done.code(), Some(0), "{how:?} {round}: {}", done.stderr);
    assert!(done.stderr.contains("rows are in clickhouse://"), "{how:?} {round}: {}", done.stderr);
    if how == Disturbance::Full {
        assert!(done.stderr.contains("; the recording goes on in"), "the disk was not full: {}", done.stderr);
    }
    assert_equal(&server, &out, &["run"]);
    println!("{kind:?} {round} {how:?}: {}", done.stderr.trim().replace('\n', " | "));
    Some(())
}

fn runs(kind: Kind, turns: &[Disturbance]) {
    let rounds = rounds();
    let late = if rounds > 1 { LATE } else { LATE_IN_A_PASS };
    for round in 0..rounds {
        if disturbed(kind, round, turns[round % turns.len()], late).is_none() {
            return;
        }
    }
}

#[test]
fn a_disturbed_run_is_in_the_store_on_debian() {
    runs(Kind::Debian, &[Disturbance::Full, Disturbance::Killed, Disturbance::Slow]);
}

#[test]
fn a_disturbed_run_is_in_the_store_on_the_engine() {
    runs(Kind::Engine, &[Disturbance::Slow, Disturbance::Killed]);
}
