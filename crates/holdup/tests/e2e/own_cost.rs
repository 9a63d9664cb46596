//! What holdup itself takes of the machine it watches: CPU time, which a stalled machine does not change, so that no witness
//! excuses it. What a sample costs in a release build is measured in `bench/collect`.

use crate::program::{finish, holdup};

/// Seconds that are watched, a sample each.
const SECONDS: f64 = 8.0;

/// CPUs that watching a host may take, start, merging and verdict included, by a build that is not optimised. It takes a fifth.
const MOST_CPUS: f64 = 0.25;

#[test]
fn watching_a_host_leaves_its_cpus_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = holdup(["watch", "--watch=host", "--for=8s", "--quiet", "-o"]);
    let done = finish(command.arg(dir.path().join("run")), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let cpus = children_cpu_s() / SECONDS;
    println!("{cpus:.3} CPUs");
    assert!(cpus <= MOST_CPUS, "it took {cpus:.3} CPUs");
}

/// CPU seconds of all processes that this one started and waited for: of a test's process, its only one.
fn children_cpu_s() -> f64 {
    // SAFETY: an all-zero rusage is valid, and getrusage writes only into it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
