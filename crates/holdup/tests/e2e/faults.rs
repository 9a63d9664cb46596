//! Faults on real recordings, drawn by seed: every recording opens, at most 2 s of rows are lost around the fault, and what is missing
//! is said in the recording. A draw is played here; what a seed stands for, the disk, the servers and the judge are beside it.
//!
//! Many draws: `HOLDUP_FAULT_SEEDS=0:100 cargo test -p holdup --test e2e drawn_faults -- --ignored`. Each leaves a line in
//! `target/faults/<commit>.jsonl`, and is not played again while it is there.

mod disk;
mod draw;
mod judge;
mod servers;
mod wall_clock;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_recording::{Recording, clock};
use serde_json::Value;

use self::disk::Disk;
use self::draw::{Draw, Fault, Subject, Which};
use self::judge::Played;
use self::servers::Servers;
use self::wall_clock::WallClock;
use crate::program::{Running, finish, holdup, root, skip};
use crate::service::Service;

/// For whatever must happen at some time.
const MINUTES: Duration = Duration::from_secs(180);

/// What stays for all draws of one process.
struct Stage {
    service: Service,
    servers: Servers,
    clock: WallClock,
    /// The clock's files.
    _dir: tempfile::TempDir,
}

impl Stage {
    /// None, with a reason, where something is not installed.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let clock = WallClock::new(dir.path());
        Some(Self { servers: Servers::start()?, service: Service::start(), clock, _dir: dir })
    }
}

/// Plays a draw. Its line; none where this account can't make the disk for it.
fn play(draw: &Draw, stage: &mut Stage) -> Option<Value> {
    let is_full = matches!(draw.fault, Fault::Full | Fault::FullToTheEnd);
    let is_broken = matches!(draw.fault, Fault::Broken | Fault::BrokenToTheEnd);
    let disk = Disk::new(if is_full { "6m" } else { "64m" }, is_broken)?;
    let is_watch = draw.subject == Subject::Watch;
    if is_watch {
        stage.servers.wait();
    }
    let _load = is_watch.then(|| stage.servers.load());
    let (run, mut sources) = start(draw, stage, &disk);
    sources.push("host".to_owned());
    let segments = disk.seen().join("segments");
    until("a segment", || fs::read_dir(&segments).is_ok_and(|mut entries| entries.next().is_some()));
    let stalls = Stalls::watch();
    sleep(draw.at);
    let from = clock::now_ns();
    begin(draw, stage, &disk, &run);
    let mut to = None;
    if draw.fault.passes() {
        sleep(draw.lasts);
        end(draw, stage, &disk, &run);
        to = Some(clock::now_ns());
    }
    let done = run.finish(MINUTES);
    let ended = clock::now_ns();
    let played = Played {
        code: done.code(),
        stderr: done.stderr,
        from,
        to: to.unwrap_or(ended),
        ended,
        stalled_s: stalls.longest().as_secs_f64(),
        sources,
        server: draw.fault.is_of_server().then(|| stage.servers.source(draw.server)),
    };
    Some(judge::line(draw, &played, open(&disk)))
}

fn start(draw: &Draw, stage: &Stage, disk: &Disk) -> (Running, Vec<String>) {
    let mut command = disk.within(env!("CARGO_BIN_EXE_holdup"));
    command.env("NO_COLOR", "1");
    if draw.fault.is_of_clock() {
        stage.clock.show(&mut command);
    }
    let length = draw.length.as_millis();
    let sources = match draw.subject {
        Subject::Run => {
            command.args(["run", "--url", &stage.service.url(), "--rate=200", "--rows=100000"]);
            command.arg(format!("--duration={length}ms"));
            vec!["requests".to_owned()]
        }
        Subject::Watch => {
            command.arg("watch").arg(format!("--for={length}ms"));
            command.args(stage.servers.addresses().map(|address| format!("--watch={address}")));
            stage.servers.sources().into()
        }
    };
    command.args(["--watch=host", "--interval=200ms", "--min-free=0", "--quiet", "-o"]).arg(disk.recording());
    (Running::start(&mut command), sources)
}

fn begin(draw: &Draw, stage: &Stage, disk: &Disk, run: &Running) {
    match draw.fault {
        Fault::Killed => run.signal(libc::SIGKILL),
        Fault::HungUp => run.signal(libc::SIGHUP),
        Fault::Terminated => run.signal(libc::SIGTERM),
        Fault::Full | Fault::FullToTheEnd => disk.fill(),
        Fault::Broken | Fault::BrokenToTheEnd => disk.cut(),
        // Below what is open: nothing can be opened.
        Fault::NoDescriptors => allow_files(run, Some(3)),
        Fault::ServerKilled | Fault::ServerHung | Fault::ServerRefuses => stage.servers.begin(draw.fault, draw.server),
        Fault::ClockAhead => stage.clock.set(3_600),
        Fault::ClockBehind => stage.clock.set(-3_600),
    }
}

fn end(draw: &Draw, stage: &mut Stage, disk: &Disk, run: &Running) {
    match draw.fault {
        Fault::Full => disk.make_room(),
        Fault::Broken => disk.make_whole(),
        Fault::NoDescriptors => allow_files(run, None),
        Fault::ClockAhead | Fault::ClockBehind => stage.clock.set(0),
        fault if fault.is_of_server() => stage.servers.end(fault, draw.server),
        _ => {}
    }
}

/// Limits the open files of a program that runs; none for as many as it may have.
fn allow_files(run: &Running, most: Option<libc::rlim_t>) {
    let pid = run.pid() as libc::pid_t;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: prlimit fills and then reads `limit`, which lives through the calls.
    unsafe {
        assert_eq!(libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit), 0);
        limit.rlim_cur = most.unwrap_or(limit.rlim_max);
        assert_eq!(libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()), 0);
    }
}

/// The recording as the library and the program open it.
fn open(disk: &Disk) -> Result<Recording, String> {
    let judged = finish(holdup(["diagnose", "--json"]).arg(disk.seen()), 60);
    if judged.code() != Some(0) {
        return Err(judged.stderr);
    }
    Recording::open(&disk.seen()).map_err(|error| error.to_string())
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < MINUTES, "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// How long this process was kept from running at a stretch: what the machine does to it, it does to holdup.
struct Stalls {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Duration>,
}

impl Stalls {
    fn watch() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            // As low as the thread that writes a recording.
            // SAFETY: setpriority takes no pointers; 0 is this thread.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) }, 0);
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                sleep(Duration::from_millis(10));
                longest = longest.max(begun.elapsed());
            }
            longest
        });
        Self { over, thread }
    }

    fn longest(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn problems(line: &Value) -> bool {
    line["problems"].as_array().is_none_or(|problems| !problems.is_empty())
}

/// Four kinds of faults, one after the other, as short as they can be.
#[test]
fn four_faults_on_short_recordings() {
    let Some(mut stage) = Stage::new() else { return };
    let s = Duration::from_secs;
    let (server, length) = (Which::MariaDb, s(5));
    let draws = [
        Draw { seed: 0, subject: Subject::Run, fault: Fault::Killed, server, length, at: s(2), lasts: s(0) },
        Draw { seed: 0, subject: Subject::Run, fault: Fault::Full, server, length: s(6), at: s(0), lasts: s(3) },
        Draw { seed: 0, subject: Subject::Watch, fault: Fault::ServerKilled, server, length, at: s(0), lasts: s(1) },
        Draw { seed: 0, subject: Subject::Run, fault: Fault::ClockBehind, server, length, at: s(0), lasts: s(2) },
    ];
    for draw in draws {
        let Some(line) = play(&draw, &mut stage) else {
            // Not a matter of what is installed: containers often forbid it, and nothing else makes such a disk.
            eprintln!("skipped: no such disk to be had here: {draw:?}");
            continue;
        };
        assert!(!problems(&line), "{line:#}");
    }
}

/// Where lines of this commit are.
fn lines() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("faults");
    fs::create_dir_all(&folder).unwrap();
    let commit = finish(Command::new("git").args(["describe", "--always", "--abbrev=12"]).current_dir(root()), 30);
    folder.join(format!("{}.jsonl", commit.stdout.trim()))
}

#[test]
#[ignore = "full: plays 10 to 20 s for each seed of HOLDUP_FAULT_SEEDS=FROM:TO"]
fn drawn_faults() {
    let seeds = std::env::var("HOLDUP_FAULT_SEEDS").unwrap_or_else(|_| "0:20".to_owned());
    let (from, to) = seeds.split_once(':').expect("FROM:TO");
    let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
    let file = lines();
    let text = fs::read_to_string(&file).unwrap_or_default();
    let mut played: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let missing: Vec<u64> = (from..to).filter(|seed| !played.iter().any(|line| line["seed"] == *seed)).collect();
    if !missing.is_empty() {
        let Some(mut stage) = Stage::new() else { return };
        for seed in missing {
            let Some(line) = play(&draw::of(seed), &mut stage) else {
                return skip("no disk that fails to be had here: that needs root and a mount namespace");
            };
            let mut file = fs::File::options().create(true).append(true).open(&file).unwrap();
            file.write_all(format!("{line}\n").as_bytes()).unwrap();
            played.push(line);
        }
    }
    played.retain(|line| line["seed"].as_u64().is_some_and(|seed| (from..to).contains(&seed)));
    let bad: Vec<&Value> = played.iter().filter(|line| problems(line)).collect();
    assert!(bad.is_empty(), "{} of {} in {}: {bad:#?}", bad.len(), played.len(), file.display());
}
