//! A real disk, made by the program: its rates as the kernel counts them, and that nothing of it remains however it ends.
//! Skipped, with the reason, where no disk can be made.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_holdup-disk");

struct Disk {
    keeper: Child,
    mountpoint: PathBuf,
    device: PathBuf,
    dir: tempfile::TempDir,
}

/// None where it can't be, which is said.
fn disk(options: &[&str]) -> Option<Disk> {
    let check = Command::new(PROGRAM).arg("--check").output().expect("the program runs");
    if check.status.code() == Some(3) {
        eprintln!("skipped: {}", String::from_utf8_lossy(&check.stderr));
        return None;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let mut keeper = Command::new(PROGRAM)
        .arg("--dir")
        .arg(dir.path())
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut line = String::new();
    BufReader::new(keeper.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["ready", mountpoint, device] = words[..] else { panic!("it said {line:?}") };
    let (mountpoint, device) = (PathBuf::from(mountpoint), PathBuf::from(device));
    Some(Disk { keeper, mountpoint, device, dir })
}

impl Disk {
    /// Processes whose parent is the keeper: the server.
    fn server(&self) -> i32 {
        let children = format!("/proc/{0}/task/{0}/children", self.keeper.id());
        fs::read_to_string(children).expect("its children").trim().parse().expect("one server")
    }

    fn signal(&self, pid: i32, signal: i32) {
        // SAFETY: kill takes and returns numbers; the processes are this test's own, and not yet reaped.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// The kernel's own account of the device: requests done, milliseconds busy, milliseconds all requests took.
    fn counted(&self) -> [u64; 3] {
        let name = self.device.file_name().expect("a name").to_str().expect("text");
        let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).expect("its counters");
        let fields: Vec<u64> = stat.split_whitespace().map(|f| f.parse().expect("a number")).collect();
        [fields[0] + fields[4], fields[9], fields[10]]
    }

    fn is_gone(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
        let name = self.device.file_name().expect("a name").to_str().expect("text");
        let file = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default();
        let dir = self.dir.path().to_str().expect("text");
        !mounts.contains(dir) && !file.contains(dir)
    }

    fn must_go(mut self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.is_gone() {
            assert!(Instant::now() < deadline, "something of {} remains", self.dir.path().display());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.keeper.wait().expect("it ends");
    }
}

#[repr(align(4096))]
struct Block([u8; 4096]);

/// Random reads and writes past the page cache, `threads` at a time, for so long.
fn load(device: &Path, threads: u64, time: Duration) {
    let open = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT).open(device).expect("the device opens")
    };
    let work = |file: File, seed: u64| {
        let begun = Instant::now();
        let mut block = Block([7; 4096]);
        let mut place = seed;
        while begun.elapsed() < time {
            // Donald Knuth's MMIX generator; its high bits are the random ones.
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let offset = (place >> 33) % 4_000 * 4096;
            if place >> 63 == 0 {
                file.read_exact_at(&mut block.0, offset).expect("read");
            } else {
                file.write_all_at(&block.0, offset).expect("written");
            }
        }
    };
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let file = open();
            scope.spawn(move || work(file, seed));
        }
    });
}

#[test]
fn the_kernel_counts_the_rate_that_was_set_and_the_queue_before_it() {
    let limits = tempfile::NamedTempFile::new().expect("a file");
    let path = limits.path().to_str().expect("text").to_owned();
    let Some(disk) = disk(&["--size", "32M", "--iops", "400", "--readahead", "8K", "--limits", &path]) else { return };
    let name = disk.device.file_name().expect("a name").to_str().expect("text");
    let set = |what: &str| fs::read_to_string(format!("/sys/block/{name}/queue/{what}")).expect("a setting");
    assert_eq!((set("read_ahead_kb").trim(), set("max_sectors_kb").trim()), ("8", "256"), "one takes the other back");
    let measure = |time: Duration| {
        let (before, begun) = (disk.counted(), Instant::now());
        load(&disk.device, 8, time);
        let (after, took) = (disk.counted(), begun.elapsed().as_secs_f64());
        let per_second = |i: usize| (after[i] - before[i]) as f64 / took;
        (per_second(0), per_second(1) / 1e3, per_second(2) / 1e3)
    };
    let (rate, busy, queue) = measure(Duration::from_secs(2));
    // No machine is so busy that it does more; one that is does less, and its threads wait elsewhere.
    assert!((60.0..450.0).contains(&rate), "{rate} requests a second instead of 400");
    assert!((0.1..1.05).contains(&busy), "busy {busy}");
    assert!((0.5..9.0).contains(&queue), "{queue} in the queue instead of 8");

    // 40 requests of 4 KiB a second, said while it runs.
    fs::write(limits.path(), "bytes_per_second: 160K\niops: none\n").expect("written");
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let (rate, ..) = measure(Duration::from_secs(1));
        if rate < 60.0 {
            assert!(rate > 4.0, "{rate} requests a second instead of 40");
            break;
        }
        assert!(Instant::now() < deadline, "{rate} requests a second instead of 40");
    }

    fs::write(disk.mountpoint.join("file"), "kept").expect("a file on it");
    disk.signal(disk.keeper.id().cast_signed(), libc::SIGTERM);
    disk.must_go();
}

#[test]
fn a_killed_disk_is_removed_even_while_in_use() {
    // The keeper, the server, and the keeper while somebody uses the mount for a moment longer.
    for (kill_server, is_used) in [(false, false), (true, true), (false, true)] {
        let Some(disk) = disk(&["--size", "32M", "--iops", "400"]) else { return };
        let mut user = is_used.then(|| {
            let mut command = Command::new("sleep");
            command.arg("1").current_dir(&disk.mountpoint).spawn().expect("a user")
        });
        let pid = if kill_server { disk.server() } else { disk.keeper.id().cast_signed() };
        disk.signal(pid, libc::SIGKILL);
        disk.must_go();
        if let Some(user) = &mut user {
            user.wait().expect("it ends");
        }
    }
}
