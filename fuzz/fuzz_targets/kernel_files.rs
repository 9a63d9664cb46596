//! Files of `/proc`, `/sys` and cgroups, of any bytes: cut off, of another kernel, or written while they were read. The first
//! byte says where the rest is put: as one of the files of a tree that is sampled as a host, as a process, and for its settings
//! (below 64), or into every parser by itself. What comes out is finite and bounded.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use holdup_collect::Collector;
use holdup_collect::host::Host;
use holdup_collect::proc::calls::Call;
use holdup_collect::proc::{Proc, cgroups, conntrack, diskstats, keyed, mountinfo, sleeping, softnet, task};
use holdup_collect::process::Process;
use holdup_recording::Batch;
use libfuzzer_sys::fuzz_target;

/// Files that the input may be, each with a content that is right.
const FILES: [(&str, &str); 33] = [
    ("proc/loadavg", "1.50 0.75 0.25 3/150 4711\n"),
    ("proc/stat", "cpu 1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nctxt 5\nbtime 1700000000\nprocesses 7\n"),
    (
        "proc/meminfo",
        "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\nBuffers: 1 kB\nCached: 2 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nDirty: 0 kB\nWriteback: 0 kB\nSReclaimable: 1 kB\n",
    ),
    ("proc/vmstat", "pgmajfault 7\npgscan_direct 1\nallocstall_normal 2\nworkingset_refault_file 3\npgrotated 1\n"),
    ("proc/diskstats", " 254 0 vda 1 2 3 4 5 6 7 8 0 10 11 12 13 14 15 16 17\n"),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"),
    ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"),
    ("proc/pressure/io", "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"),
    ("proc/sys/fs/file-nr", "3104\t0\t9223372036854775807\n"),
    ("proc/self/cgroup", "0::/a\n"),
    (
        "proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n32 1 254:0 / / rw - ext4 /dev/vda rw\n",
    ),
    ("proc/71/cgroup", "3:memory:/m\n2:cpu,cpuacct:/m\n1:blkio:/m\n0::/a\n"),
    ("proc/71/mountinfo", "32 1 254:0 / / rw - ext4 /dev/vda rw\n"),
    (
        "proc/71/stat",
        "71 (x) S 1 71 71 0 -1 4194304 104 5 17 6 250 30 0 0 20 0 1 0 113271 3133440 429 1 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 42 0 0 0 0 0 0 0 0 0 0\n",
    ),
    ("proc/71/io", "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 0\n"),
    ("proc/71/limits", "Max open files            1024                 524288               files     \n"),
    (
        "proc/71/task/71/stat",
        "71 (x) D 1 71 71 0 -1 4194304 104 5 17 6 250 30 0 0 20 0 1 0 113271 3133440 429 1 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 42 0 0 0 0 0 0 0 0 0 0\n",
    ),
    ("proc/71/task/71/schedstat", "1 2 3\n"),
    ("proc/71/task/71/syscall", "87 0x7f00 0x1 0x2 0x3 0x4 0x5 0x7ffe00000000 0x7f00000000\n"),
    ("proc/71/task/71/stack", "[<0>] do_unlinkat+0x1/0x2\n[<0>] do_syscall_64+0x3/0x4\n"),
    ("proc/71/task/71/wchan", "do_unlinkat"),
    ("sys/block/vda/size", "2048\n"),
    ("sys/fs/cgroup/a/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\n"),
    ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
    ("sys/fs/cgroup/a/memory.max", "1048576\n"),
    ("sys/fs/cgroup/a/memory.stat", "file 7\npgmajfault 3\nworkingset_refault_file 2\n"),
    ("sys/fs/cgroup/a/memory.events", "max 1\noom_kill 0\n"),
    ("sys/fs/cgroup/a/io.stat", "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2\n"),
    ("sys/fs/cgroup/a/io.max", "254:0 rbps=max wbps=1048576 riops=200 wiops=max\n"),
    ("sys/fs/cgroup/a/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"),
    (
        "proc/net/softnet_stat",
        "0001e240 0000000a 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n",
    ),
    ("proc/softirqs", "      CPU0       CPU1\n  NET_TX:   51   50\n  NET_RX:   44676   38279\n"),
    ("proc/net/stat/nf_conntrack", "entries clashres insert_failed drop early_drop\n00000190 00000000 00000002 00000030 00000005\n"),
];

/// Most rows that one sample or one reading of settings may make out of so little.
const ROWS_MAX: usize = 20_000;

/// A tree of this process' own, in memory where there is a place for it.
fn tree() -> &'static PathBuf {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let root = root.join(format!("holdup-fuzz-{}", std::process::id()));
        for (path, content) in FILES {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        root
    })
}

fn sample(collector: &mut dyn Collector) {
    let mut batch = Batch::default();
    let _ = collector.sample(&mut batch);
    let _ = collector.settings(&mut batch);
    assert!(batch.samples.len() + batch.threads.len() + batch.settings.len() < ROWS_MAX);
    assert!(batch.samples.iter().all(|sample| sample.value.is_finite()));
}

fn as_a_file(which: u8, bytes: &[u8]) {
    let root = tree();
    let (path, content) = FILES[usize::from(which) % FILES.len()];
    let path = root.join(path);
    fs::write(&path, bytes).expect("a file");
    let proc = Proc::at(root);
    sample(&mut Host::new(proc.clone()));
    sample(&mut Process::new(proc, 71));
    fs::write(&path, content).expect("a file");
}

fn alone(bytes: &[u8]) {
    let mut name = bytes.to_vec();
    let thread = task::text(&mut name);
    let _ = task::Stat::parse(thread);
    if let Ok((comm, ..)) = task::head(thread) {
        assert!(comm.len() <= thread.len());
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = task::schedstat(text);
    if let Some(stack) = sleeping::stack(text) {
        assert!(!stack.is_empty() && stack.len() <= text.len() * 4);
    }
    let _ = Call::parse(text).map(|call| call.file());
    // A byte that can't be printed is six characters at most: `\u{7f}`.
    assert!(sleeping::one_of_many(text).len() <= text.len() * 6);
    for line in text.lines() {
        let _ = diskstats::numbers(line);
        let _ = mountinfo::Mount::parse(line);
        assert!(mountinfo::unescape(line).len() <= line.len() * 3);
    }
    let mounts = mountinfo::visible(text);
    let mut places: Vec<_> = mounts.iter().map(|mount| &mount.path).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), mounts.len(), "one mount a place");
    for member in cgroups::memberships(text) {
        let inner = cgroups::below(member.path, "/").unwrap_or_default();
        assert!(!inner.split('/').any(|part| part == ".."));
    }
    let _ = keyed::flat("f", text);
    let _ = keyed::blkio("f", text);
    let _ = keyed::pressure("f", text);
    let _ = conntrack::counters(text, &["drop", "insert_failed"]);
    assert!(softnet::softnet(text).map_or(0, |rows| rows.len()) <= text.lines().count());
    assert!(softnet::receive_softirqs(text).map_or(0, |counts| counts.len()) <= text.len());
    let nested = keyed::nested("f", text).unwrap_or_default();
    assert!(nested.iter().all(|(device, _)| keyed::is_device_number(device)));
}

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    if *first < 64 { as_a_file(*first, rest) } else { alone(rest) }
});
