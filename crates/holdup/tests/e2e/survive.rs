//! Recordings under faults and early ends: whatever ends holdup, or fails under it, what was measured is kept, what was set is set
//! back, and what is missing is said.

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdup_recording::{Recording, RunState};

use crate::generator::Cgroup;
use crate::program::{Running, finish, free_port, holdup, manifest, skip};
use crate::service::Service;

/// For whatever must happen at some time.
pub const MINUTES: Duration = Duration::from_secs(180);

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < MINUTES, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A segment is on disk.
pub fn has_rows(recording: &Path) -> bool {
    std::fs::read_dir(recording.join("segments")).is_ok_and(|mut entries| entries.next().is_some())
}

/// A watch that would go on for an hour.
fn watch(to: &Path) -> Command {
    let mut command = holdup(["watch", "--watch=host", "--for=1h", "--interval=200ms", "--quiet", "-o"]);
    command.arg(to);
    command
}

pub fn is_finished(recording: &Path) {
    let read = Recording::open(recording).unwrap();
    assert_eq!(read.manifest.state, RunState::Interrupted);
    assert!(read.manifest.ended_at.is_some());
    assert!(read.manifest.coverage.iter().any(|c| c.source == "host" && c.reads_total > 0), "{:?}", read.manifest);
    assert!(!read.tables.samples.rows.is_empty());
}

#[test]
fn each_signal_and_a_second_ctrl_c_finish_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let ways: [&[i32]; 4] =
        [&[libc::SIGHUP], &[libc::SIGTERM], &[libc::SIGINT, libc::SIGINT], &[libc::SIGHUP, libc::SIGINT]];
    let runs = ways.map(|signals| {
        let to = dir.path().join(format!("{signals:?}"));
        (Running::start(&mut watch(&to)), to, signals)
    });
    for (run, to, signals) in runs {
        until("a segment", || has_rows(&to));
        for signal in signals {
            run.signal(*signal);
            // Two that come at once are one to the kernel.
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = run.finish(MINUTES);
        assert_eq!(done.code(), Some(130), "{signals:?}: {}", done.stderr);
        is_finished(&to);
    }
}

#[test]
fn a_terminal_that_is_closed_finishes_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("run");
    let (window, terminal) = terminal();
    let mut child = watch(&to).stdout(terminal).stderr(Stdio::null()).spawn().unwrap();
    until("a segment", || has_rows(&to));
    drop(window);
    until("its end", || child.try_wait().unwrap().is_some());
    is_finished(&to);
}

/// A terminal, and the window that shows it. Neither is this process's own terminal, so that no signal is sent when it closes.
pub fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut window, mut terminal) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: it writes two numbers; no name, settings or size are given.
    let opened = unsafe { libc::openpty(&raw mut window, &raw mut terminal, none, none.cast(), none.cast()) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // A program that inherits the window keeps it open. SAFETY: it changes a flag of a descriptor of this test.
    assert_eq!(unsafe { libc::fcntl(window, libc::F_SETFD, libc::FD_CLOEXEC) }, 0);
    // SAFETY: both descriptors were made just now and have no other owner.
    unsafe { (OwnedFd::from_raw_fd(window), OwnedFd::from_raw_fd(terminal)) }
}

/// As `nohup` starts it: who asked for that wants it to go on.
#[test]
fn an_ignored_hangup_stays_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("run");
    let mut command = watch(&to);
    // SAFETY: between fork and exec signal(2) alone is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let run = Running::start(&mut command);
    until("a segment", || has_rows(&to));
    run.signal(libc::SIGHUP);
    let segments = || std::fs::read_dir(to.join("segments")).map_or(0, Iterator::count);
    let before = segments();
    until("two more segments", || segments() > before + 1);
    assert_eq!(manifest(&to)["state"], "running");
    run.signal(libc::SIGTERM);
    assert_eq!(run.finish(MINUTES).code(), Some(130));
}

#[test]
fn a_quota_is_set_back_however_holdup_ends() {
    let Some(cgroup) = Cgroup::new() else {
        return skip("no CPU cgroup can be made here; that needs root and a mounted cgroup file system");
    };
    let dir = tempfile::tempdir().unwrap();
    cgroup.allow(Some(70));
    let before = cgroup.quota();
    let url = format!("http://127.0.0.1:{}/", free_port());
    let start = |name: &str| {
        let mut command = holdup(["capacity", "--url", &url, "--search=10:100", "--vary=cpu=0.1,0.2", "--cgroup"]);
        command.arg(cgroup.folder()).arg("-o").arg(dir.path().join(name));
        let running = Running::start(command.args(["--switch-within=10m"]));
        until("a quota", || cgroup.quota() != before);
        running
    };
    for signals in [&[libc::SIGHUP][..], &[libc::SIGTERM], &[libc::SIGINT, libc::SIGINT]] {
        let run = start(&format!("{signals:?}"));
        for signal in signals {
            run.signal(*signal);
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = run.finish(MINUTES);
        assert_eq!((done.code(), cgroup.quota()), (Some(130), before.clone()), "{signals:?}: {}", done.stderr);
    }
    let run = start("killed");
    run.signal(libc::SIGKILL);
    run.finish(MINUTES);
    assert_ne!(cgroup.quota(), before, "a killed process can't set anything back itself");
    let restored = finish(holdup(["capacity", "--restore"]), 60);
    assert_eq!((restored.code(), cgroup.quota()), (Some(0), before.clone()), "{}", restored.stderr);
    assert!(restored.stderr.contains("restored to"), "{}", restored.stderr);

    let run = start("killed too");
    run.signal(libc::SIGKILL);
    run.finish(MINUTES);
    // The next start takes the quota from before for what was there, not the one that was left.
    let mut next = holdup(["capacity", "--url", &url, "--search=10:100", "--vary=cpu=0.1,0.2", "--cgroup"]);
    next.arg(cgroup.folder()).args(["--switch-within=1s", "-o"]).arg(dir.path().join("next"));
    let done = finish(next, 60);
    assert_eq!((done.code(), cgroup.quota()), (Some(2), before), "{}", done.stderr);
    assert!(
        done.stderr.contains("a killed holdup left") && done.stderr.contains("restored to 70000"),
        "{}",
        done.stderr
    );
}

/// In a mount namespace of its own: a small disk that something else fills while holdup writes to it, and that has room again later.
/// With `late` it is a disk that finds out only when it has taken the bytes: a file system on a sparse file, which is on the full one.
const FULL_FOR_A_WHILE: &str = r#"
mount -t tmpfs -o size=6m tmpfs "$1" || exit 97
to="$1/disk"
mkdir "$to"
if [ "$4" = late ]; then
    truncate -s 32m "$1/image" && mkfs.ext2 -q -F -b 4096 -N 256 "$1/image" || exit 97
    mount -o loop,errors=continue "$1/image" "$to" || exit 97
fi
"$2" watch --watch host --interval 200ms --min-free 0 --quiet -o "$to/run" 2> "$3.err" > "$3.out" &
pid=$!
said() { for i in $(seq 1800); do grep -q "$1" "$2" 2>/dev/null && return; sleep 0.1; done; kill -9 $pid; exit 98; }
said PAR1 "$to/run/segments/samples-00000001.parquet"
dd if=/dev/zero of="$1/fill" bs=4k 2>/dev/null
said "cannot be written" "$3.err"
sleep 5
rm "$1/fill"
said "written again" "$3.err"
kill -TERM $pid
wait $pid
code=$?
cp -r "$to/run" "$3"
exit $code
"#;

/// Records to a disk that is full for a while. Nothing where this account can't make one.
fn full_for_a_while(unshare: &[&str], kind: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (disk, copy) = (dir.path().join("disk"), dir.path().join("copy"));
    std::fs::create_dir(&disk).unwrap();
    if !Command::new("unshare").args(unshare).arg("true").output().is_ok_and(|o| o.status.success()) {
        return skip("no mount namespace to be had here (unshare --mount)");
    }
    let mut command = Command::new("unshare");
    command.args(unshare).args(["sh", "-c", FULL_FOR_A_WHILE, "sh"]);
    command.arg(&disk).arg(env!("CARGO_BIN_EXE_holdup")).arg(&copy).arg(kind);
    let done = finish(command, 300);
    if done.code() == Some(97) {
        // Not a matter of what is installed: containers often forbid it, and nothing else makes such a disk.
        eprintln!("skipped: no such disk to be had here: {}", done.stderr);
        return;
    }
    let said = std::fs::read_to_string(dir.path().join("copy.err")).unwrap_or_default();
    assert_eq!(done.code(), Some(0), "{}{said}", done.stderr);
    // A disk that finds out late may call it an error of its own (EIO).
    let is_full = said.contains("os error 28") || kind == "late" && said.contains("os error 5");
    assert!(is_full && said.contains("no row was lost"), "{said}");
    let read = Recording::open(&copy).unwrap();
    assert_eq!(read.manifest.state, RunState::Complete);
    let gaps: Vec<_> = read.tables.events.rows.iter().filter(|event| event.kind == "gap").collect();
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    let own = read.manifest.coverage.iter().find(|c| c.source == "recording").unwrap();
    assert!(own.gaps_total > 0, "{own:?}");
    // It was recorded on while nothing could be written.
    let within = |at: i64| gaps[0].observed_at < at && at < gaps[1].observed_at;
    assert!(read.tables.samples.rows.iter().any(|sample| within(sample.observed_at)));
    assert!(!copy.join(".reserve").exists());
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_no_row() {
    full_for_a_while(&["--mount", "--map-root-user"], "at once");
}

#[test]
fn a_disk_that_fails_when_it_is_synced_costs_no_row() {
    full_for_a_while(&["--mount"], "late");
}

#[test]
fn too_little_room_is_refused_and_a_full_recording_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("refused");
    let refused = finish(watch(&to).arg("--min-free=1000TiB"), 60);
    assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--min-free") && !to.exists(), "{}", refused.stderr);

    let (service, to) = (Service::start(), dir.path().join("full"));
    let mut run = holdup(["run", "--url", &service.url(), "--rate=6000", "--duration=30m", "--rows=10000000"]);
    let run = Running::start(run.args(["--no-collect", "--max-size=1MiB", "--quiet", "-o"]).arg(&to));
    let done = run.finish(Duration::from_secs(600));
    assert_eq!(done.code(), Some(130), "{}", done.stderr);
    assert!(done.stderr.contains("--max-size"), "{}", done.stderr);
    let read = Recording::open(&to).unwrap();
    assert!(read.tables.events.rows.iter().any(|event| event.kind == "ended"));
    let tables = std::fs::read_dir(&to).unwrap().filter_map(Result::ok);
    let bytes: u64 = tables.filter(|e| e.file_name() != "report.html").map(|e| e.metadata().unwrap().len()).sum();
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

/// Ten processes of many threads under a limit of 128 open files: their files can't all be kept open.
#[test]
fn ten_processes_are_watched_with_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("run");
    let busy: Vec<Service> = (0..10).map(|_| Service::with(&["--servers=40", "--service-time=5ms"])).collect();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 128 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_holdup"), "watch", "--for=8s"]);
    command.args(busy.iter().map(|service| format!("--watch=pid:{}", service.pid())));
    let done = finish(command.args(["--interval=500ms", "--quiet", "-o"]).arg(&to).stdin(Stdio::null()), 120);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let read = Recording::open(&to).unwrap();
    for own in read.manifest.coverage.iter().filter(|c| c.reads_total + c.gaps_total > 0) {
        assert_eq!(own.gaps_total, 0, "{own:?}");
    }
    for service in &busy {
        let source = format!("pid:{}", service.pid());
        assert!(read.tables.threads.rows.iter().any(|row| row.source == source), "nothing of {source}");
    }
}
