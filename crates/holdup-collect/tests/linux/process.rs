//! `--watch pid:N`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use holdup_collect::proc::Proc;
use holdup_collect::process::Process;
use holdup_collect::watch::{Options, collector};
use holdup_collect::{Collector, ProbeError};
use holdup_recording::{Batch, CoverageState};

use crate::{small_tree, value};

fn sample(process: &mut Process) -> (Batch, Result<(), String>) {
    let mut batch = Batch::default();
    let result = process.sample(&mut batch);
    (batch, result.map_err(|e| e.to_string()))
}

#[test]
fn a_process_of_the_small_tree() {
    let (_dir, proc) = small_tree();
    let mut process = Process::new(proc, 71);
    assert_eq!(process.probe().unwrap()[0].state, CoverageState::Complete);
    let (batch, result) = sample(&mut process);
    assert_eq!(result, Ok(()));
    for (metric, labels, number) in [
        ("process_cpu_time_seconds_total", &[("cpu_mode", "user")][..], 2.5),
        ("process_cpu_time_seconds_total", &[("cpu_mode", "system")], 0.3),
        ("process_major_faults_total", &[], 17.0),
        ("process_threads", &[("state", "D")], 1.0),
        ("process_threads", &[("state", "T")], 0.0),
        ("process_open_file_descriptors", &[], 3.0),
        ("process_disk_io_bytes_total", &[("direction", "write")], 8192.0),
        ("process_run_queue_seconds_total", &[], 1.75),
        ("process_block_io_delay_seconds_total", &[], 1.26),
    ] {
        assert_eq!(value(&batch, metric, labels), Some(number), "{metric}");
    }
    let thread = batch.threads.iter().find(|t| t.tid == 72).unwrap();
    assert_eq!((thread.process.as_str(), thread.thread.as_str()), ("mariadbd", "pool (1)"));
    assert_eq!((thread.state.as_str(), thread.wchan.as_deref(), thread.syscall), ("D", Some("do_unlinkat"), Some(87)));
    assert_eq!((thread.cpu_ns_total, thread.run_queue_ns_total), (Some(2_000_000_000), Some(500_000_000)));
    let mut batch = Batch::default();
    process.settings(&mut batch).unwrap();
    let setting = |name: &str| batch.settings.iter().find(|s| s.name == name).map(|s| s.value.as_str());
    assert_eq!((setting("comm"), setting("limit.nofile")), (Some("mariadbd"), Some("1024")));
}

#[test]
fn sums_do_not_fall_when_a_thread_ends_or_its_number_is_reused() {
    let (dir, proc) = small_tree();
    let mut process = Process::new(proc, 71);
    let queue = |batch: &Batch| value(batch, "process_run_queue_seconds_total", &[]).unwrap();
    assert_eq!(queue(&sample(&mut process).0), 1.75);
    std::fs::remove_dir_all(dir.path().join("proc/71/task/73")).unwrap();
    assert_eq!(queue(&sample(&mut process).0), 1.75);
    let task = dir.path().join("proc/71/task/72");
    let stat = std::fs::read_to_string(task.join("stat")).unwrap();
    std::fs::write(task.join("stat"), stat.replace(" 113271 ", " 999999 ")).unwrap();
    std::fs::write(task.join("schedstat"), "1 250000000 1\n").unwrap();
    assert_eq!(queue(&sample(&mut process).0), 2.0);
}

#[test]
fn another_process_under_the_same_number_is_gone_and_so_is_a_zombie() {
    for (was, is) in [(" 113271 ", " 999999 "), (") S 1 71", ") Z 1 71")] {
        let (dir, proc) = small_tree();
        let path = dir.path().join("proc/71/stat");
        let stat = std::fs::read_to_string(&path).unwrap().replace(" 20 0 3 0 ", " 20 0 1 0 ");
        std::fs::write(&path, &stat).unwrap();
        let mut process = Process::new(proc, 71);
        process.probe().unwrap();
        std::fs::write(&path, stat.replace(was, is)).unwrap();
        let (batch, result) = sample(&mut process);
        assert!(result.unwrap_err().contains("has ended"));
        assert!(batch.samples.is_empty() && batch.threads.is_empty());
        assert_eq!(batch.events[0].kind, "process_gone");
        // Said once.
        assert!(sample(&mut process).0.events.is_empty());
    }
}

#[test]
fn denied_and_disabled_figures_are_in_the_coverage() {
    let (dir, proc) = small_tree();
    std::fs::remove_file(dir.path().join("proc/71/io")).unwrap();
    std::fs::remove_file(dir.path().join("proc/71/task/71/syscall")).unwrap();
    std::fs::write(dir.path().join("proc/sys/kernel/task_delayacct"), "0\n").unwrap();
    let mut process = Process::new(proc, 71);
    let coverage = process.probe().unwrap();
    assert_eq!(coverage[0].why.as_deref(), Some("without: disk I/O, wait channels, block I/O delay"));
    assert!(coverage[1].enable.as_deref().unwrap().contains("CAP_SYS_PTRACE"));
    let (batch, result) = sample(&mut process);
    assert_eq!(result, Ok(()));
    assert_eq!(value(&batch, "process_block_io_delay_seconds_total", &[]), None);
}

#[test]
fn no_such_process() {
    let (_dir, proc) = small_tree();
    let error = Process::new(proc, 4_000_000).probe().unwrap_err();
    assert!(matches!(error, ProbeError::Gone { .. }), "{error}");
    for bad in ["pid:", "pid:x", "pid:0", "pid:-1", "pid:99999999999"] {
        let error = collector(bad, &Options::default()).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("process number"), "{bad}: {error}");
    }
}

/// A real child: seen, then gone when it is killed, before and after its parent has collected it.
#[test]
fn a_child_of_this_test() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let mut process = Process::new(Proc::system(), child.id());
    process.probe().unwrap();
    let (batch, result) = sample(&mut process);
    assert_eq!((result, batch.threads.len()), (Ok(()), 1));
    child.kill().unwrap();
    let mut gone = Vec::new();
    for _ in 0..100 {
        gone = sample(&mut process).0.events;
        if !gone.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(gone.len(), 1);
    child.wait().unwrap();
    assert!(sample(&mut process).1.is_err());
}

/// This process, whose threads come and go between samples. Each waits in a call that nobody else is in.
#[test]
fn threads_of_this_process_come_and_go() {
    let mut process = Process::new(Proc::system(), std::process::id());
    let mut before = 0.0;
    for round in 0..5 {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let name = format!("comes {round}");
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                let wait = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                // SAFETY: all zeros is a set of no signals, and the pointers are valid for the call.
                unsafe {
                    let none: libc::sigset_t = std::mem::zeroed();
                    libc::sigtimedwait(&raw const none, std::ptr::null_mut(), &raw const wait);
                }
            }
        });
        let thread = thread.unwrap();
        let mut comers = Vec::new();
        // It may just be on its way into the call.
        for _ in 0..100 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let (batch, result) = sample(&mut process);
            assert_eq!(result, Ok(()));
            let queue = value(&batch, "process_run_queue_seconds_total", &[]).unwrap();
            assert!(queue >= before, "{queue} after {before}");
            before = queue;
            let waits = libc::SYS_rt_sigtimedwait;
            comers = batch.threads.into_iter().filter(|t| t.syscall == Some(waits)).collect();
            if comers.len() == 1 && comers[0].thread == name {
                break;
            }
        }
        assert_eq!(comers.len(), 1, "{comers:?}");
        assert_eq!((comers[0].thread.as_str(), comers[0].state.as_str(), comers[0].count), (name.as_str(), "S", 1));
        drop(stop);
        thread.join().unwrap();
    }
}

/// A process with a network of its own, where that may be made.
#[test]
fn another_network_is_told() {
    let started = Command::new("unshare").args(["-n", "sleep", "60"]).spawn();
    let Ok(mut child) = started else { return };
    // It is another one's once `unshare` has become `sleep`, or has failed.
    let comm = format!("/proc/{}/comm", child.id());
    let mut is_there = false;
    for _ in 0..500 {
        is_there = std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "sleep");
        if is_there || child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let told = |pid: u32| {
        let coverage = Process::new(Proc::system(), pid).probe().unwrap();
        coverage.into_iter().any(|part| part.source == format!("pid:{pid} network"))
    };
    let (other, own) = (is_there && told(child.id()), told(std::process::id()));
    let _ = child.kill();
    let _ = child.wait();
    assert!(!own);
    assert!(other || !is_there, "it has a network of its own");
}

#[test]
fn a_child_that_its_parent_has_not_collected_yet_takes_nothing_away() {
    let (dir, proc) = small_tree();
    let tree = dir.path().join("proc");
    let stat = std::fs::read_to_string(tree.join("71/stat")).unwrap();
    std::fs::write(tree.join("71/task/71/children"), "80 81 \n").unwrap();
    for (pid, stat) in [("80", stat.clone()), ("81", stat.replace("(mariadbd)", "(mysqldump)"))] {
        std::fs::create_dir_all(tree.join(pid).join("task").join(pid)).unwrap();
        std::fs::write(tree.join(pid).join("stat"), &stat).unwrap();
        std::fs::write(tree.join(pid).join("statm"), "900 429 400 1 0 50 0\n").unwrap();
        std::fs::write(tree.join(pid).join("task").join(pid).join("stat"), &stat).unwrap();
    }
    let mut process = Process::new(proc, 71);
    let user = |batch: &Batch| value(batch, "process_cpu_time_seconds_total", &[("cpu_mode", "user")]);
    let memory = |batch: &Batch| value(batch, "process_memory_usage_bytes", &[]).unwrap();
    let both = sample(&mut process).0;
    assert_eq!(user(&both), Some(5.0), "of 71 and 80; 81 runs another program");
    std::fs::remove_dir_all(tree.join("80")).unwrap();
    let alone = sample(&mut process).0;
    assert_eq!(user(&alone), Some(5.0));
    assert_eq!((memory(&both) / memory(&alone) * 429.0).round(), 458.0, "shared pages count once");
}

/// A server with a process for each worker, as PostgreSQL and Gunicorn have: each of three works for 0.2 s of CPU time and ends;
/// the fourth sleeps. A command of its own does not count.
const WORKERS: &str = "
import os, subprocess, sys, time
def worker(seconds):
    if os.fork() == 0:
        while time.process_time() < seconds: pass
        if seconds == 0: time.sleep(60)
        os._exit(0)
command = subprocess.Popen(['sleep', '60'])
worker(0)
sys.stdin.readline()
for _ in range(3):
    worker(0.2)
    os.waitpid(-1, 0)
print('done', flush=True)
sys.stdin.readline()
command.kill()
";

#[test]
fn processes_that_it_forked_count_with_it_and_after_their_end() {
    let mut parent = Command::new("python3")
        .args(["-c", WORKERS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut process = Process::new(Proc::system(), parent.id());
    let threads = |batch: &Batch| batch.threads.iter().map(|thread| thread.count).sum::<i64>();
    let cpu = |batch: &Batch| {
        let of = |mode| value(batch, "process_cpu_time_seconds_total", &[("cpu_mode", mode)]).unwrap();
        of("user") + of("system")
    };
    let mut before = sample(&mut process).0;
    for _ in 0..500 {
        if threads(&before) == 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        before = sample(&mut process).0;
    }
    assert_eq!(threads(&before), 2, "the parent and its sleeping worker, not its command");
    let begun = cpu(&before);
    writeln!(parent.stdin.as_mut().unwrap()).unwrap();
    let (done, mut last) = (BufReader::new(parent.stdout.take().unwrap()), begun);
    let reader = std::thread::spawn(move || done.lines().next());
    while !reader.is_finished() {
        let now = cpu(&sample(&mut process).0);
        assert!(now >= last, "a counter fell from {last} to {now}");
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let used = cpu(&sample(&mut process).0) - begun;
    assert!((0.55..2.0).contains(&used), "{used} s of CPU time by three workers of 0.2 s each");
    let sleeper = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", parent.id())).unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    for orphan in sleeper.split_whitespace() {
        let _ = Command::new("kill").arg(orphan).status();
    }
}
