//! Threads of `host` and `pid:N`: rows by place, what a look reads again, and what changes under it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use holdup_collect::Collector;
use holdup_collect::host::Host;
use holdup_collect::proc::Proc;
use holdup_collect::process::Process;
use holdup_recording::Batch;
use holdup_recording::rows::Thread;

use crate::{small_tree, value};

const PID: u32 = 71;

/// The small tree, whose process 71 is made anew.
struct Tree {
    dir: tempfile::TempDir,
    proc: Proc,
}

impl Tree {
    fn of(threads: impl IntoIterator<Item = u32>, state: char) -> Self {
        let (dir, proc) = small_tree();
        let tree = Self { dir, proc };
        std::fs::remove_dir_all(tree.task("")).unwrap();
        std::fs::create_dir(tree.task("")).unwrap();
        threads.into_iter().for_each(|tid| tree.thread(tid, state, 1_000_000_000));
        tree
    }

    fn task(&self, name: &str) -> PathBuf {
        self.dir.path().join("proc/71/task").join(name)
    }

    /// Makes a thread, or what it is next.
    fn thread(&self, tid: u32, state: char, queue_ns: u64) {
        let folder = self.task(&tid.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let zeros = "0 ".repeat(21);
        let stat = format!("{tid} (worker) {state} 1 71 71 0 -1 0 0 0 0 0 1 1 0 0 20 0 9 0 113271 0 0 {zeros}0 0\n");
        let files = [
            ("stat", stat),
            ("schedstat", format!("{queue_ns} {queue_ns} {queue_ns}\n")),
            ("wchan", "do_unlinkat".to_owned()),
            ("syscall", "87 0x1000 0x0 0x0 0x0 0x0 0x0 0x7f20a000f000 0x7f2000001000\n".to_owned()),
            ("stack", "[<0>] do_unlinkat+0xb1/0x2f0\n[<0>] do_syscall_64+0x5d/0x90\n".to_owned()),
        ];
        files.into_iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
    }
}

fn sample(source: &mut dyn Collector) -> (Batch, Result<(), String>) {
    let mut batch = Batch::default();
    let result = source.sample(&mut batch);
    (batch, result.map_err(|e| e.to_string()))
}

fn counts<'a>(batch: &'a Batch, wanted: impl Fn(&Thread) -> bool + 'a) -> i64 {
    batch.threads.iter().filter(|row| wanted(row)).map(|row| row.count).sum()
}

fn queue(batch: &Batch) -> Option<f64> {
    value(batch, "process_run_queue_seconds_total", &[])
}

#[test]
fn threads_at_one_place_are_one_row() {
    let tree = Tree::of(71..121, 'D');
    tree.thread(121, 'S', 5);
    // What finds no time in one sample has the next.
    let mut process = Process::new(tree.proc.clone(), PID);
    let whole = (0..50).map(|_| sample(&mut process)).find(|(batch, _)| batch.threads.len() == 2);
    let (batch, result) = whole.expect("all are read in the end");
    assert_eq!(result, Ok(()));
    let row = &batch.threads[0];
    assert_eq!((row.count, row.state.as_str(), row.process.as_str()), (50, "D", "worker"));
    assert_eq!((row.wchan.as_deref(), row.syscall), (Some("do_unlinkat"), Some(87)));
    assert_eq!(row.stack.as_deref(), Some("do_unlinkat < do_syscall_64"));
    #[cfg(target_arch = "x86_64")]
    assert_eq!(row.path.as_deref(), Some("/tmp/7/#sql_?_?.MYI"));
    assert_eq!(row.cpu_ns_total, None);
    // Of a sleeping thread neither stack nor memory is read; the times of a single one say something.
    let row = &batch.threads[1];
    assert_eq!((row.count, row.state.as_str(), row.wchan.as_deref()), (1, "S", Some("do_unlinkat")));
    assert_eq!((row.stack.as_deref(), row.path.as_deref(), row.run_queue_ns_total), (None, None, Some(5)));
}

/// Its memory does not answer at first, as that of a process whose address space is being changed.
#[test]
fn a_path_that_came_too_late_is_asked_for_again() {
    let tree = Tree::of(71..73, 'D');
    let memory = tree.dir.path().join("proc/71/mem");
    let answers = std::fs::read(&memory).unwrap();
    std::fs::remove_file(&memory).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&memory).status().unwrap().success());
    let mut process = Process::new(tree.proc.clone(), PID);
    let (batch, result) = sample(&mut process);
    assert_eq!(result, Ok(()));
    assert_eq!(counts(&batch, |row| row.stack.is_some() && row.path.is_none()), 2);
    // Lets go who waits in it.
    drop(std::fs::OpenOptions::new().write(true).open(&memory).unwrap());
    std::fs::remove_file(&memory).unwrap();
    std::fs::write(&memory, answers).unwrap();
    let found = (0..6_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        counts(&sample(&mut process).0, |row| row.path.is_some()) == 2
    });
    assert!(found, "its path stays unknown");
}

/// Of a pile-up at most 64 places are read in a sample, fewer if the time for it is over, but all of it is counted; and
/// those that stay where they are are all known in the end.
#[test]
fn a_pile_up_is_counted_whole() {
    const A_SAMPLE: i64 = 64;
    let tree = Tree::of(71..371, 'D');
    for source in [&mut Process::new(tree.proc.clone(), PID) as &mut dyn Collector, &mut Host::new(tree.proc.clone())] {
        let mut deep = vec![0];
        while deep.last() != Some(&300) {
            let (batch, result) = sample(source);
            assert_eq!(result, Ok(()));
            assert_eq!(counts(&batch, |row| row.state == "D"), 300);
            assert_eq!(counts(&batch, |row| row.wchan.as_deref() == Some("do_unlinkat")), 300);
            deep.push(counts(&batch, |row| row.stack.is_some()));
            assert!(deep.len() < 100, "not all are known in the end: {deep:?}");
        }
        assert!(deep.windows(2).all(|pair| (0..=A_SAMPLE).contains(&(pair[1] - pair[0]))), "{deep:?}");
        // Those that have run since are read again.
        (71..371).for_each(|tid| tree.thread(tid, 'D', 2_000_000_000 + u64::try_from(deep.len()).unwrap()));
        let again = counts(&sample(source).0, |row| row.stack.is_some());
        assert!((0..=A_SAMPLE).contains(&again), "{again}");
        (71..371).for_each(|tid| tree.thread(tid, 'D', 1_000_000_000));
    }
}

#[test]
fn sleeping_threads_have_their_turn() {
    let tree = Tree::of(71..371, 'S');
    let mut process = Process::new(tree.proc.clone(), PID);
    let known: Vec<i64> = (0..3).map(|_| counts(&sample(&mut process).0, |row| row.wchan.is_some())).collect();
    assert_eq!(known, [128, 256, 300]);
    // The host counts them and has no rows of them.
    let (batch, _) = sample(&mut Host::new(tree.proc.clone()));
    assert_eq!(value(&batch, "system_threads", &[("state", "S")]), Some(301.0));
    assert!(batch.threads.is_empty());
}

/// What a thread that has not run since would say is known already; what one says that has run is read.
#[test]
fn only_threads_that_ran_are_read_again() {
    let tree = Tree::of(71..74, 'S');
    let mut process = Process::new(tree.proc.clone(), PID);
    assert_eq!(sample(&mut process).1, Ok(()));
    for tid in ["72", "73"] {
        std::fs::write(tree.task(tid).join("wchan"), "futex_wait_queue").unwrap();
    }
    std::fs::write(tree.task("73").join("schedstat"), "9 9 9\n").unwrap();
    let (batch, _) = sample(&mut process);
    assert_eq!(counts(&batch, |row| row.wchan.as_deref() == Some("do_unlinkat")), 2);
    assert_eq!(counts(&batch, |row| row.wchan.as_deref() == Some("futex_wait_queue")), 1);
    // A kernel that does not count slices: all of them, always.
    for tid in ["71", "72", "73"] {
        std::fs::write(tree.task(tid).join("schedstat"), "0 0 0\n").unwrap();
        std::fs::write(tree.task(tid).join("wchan"), "pipe_read").unwrap();
    }
    for wchan in ["pipe_read", "do_wait"] {
        assert_eq!(counts(&sample(&mut process).0, |row| row.wchan.as_deref() == Some("pipe_read")), 3, "{wchan}");
    }
    for tid in ["71", "72", "73"] {
        std::fs::remove_file(tree.task(tid).join("schedstat")).unwrap();
        std::fs::write(tree.task(tid).join("wchan"), "do_wait").unwrap();
    }
    let (batch, result) = sample(&mut process);
    assert_eq!((result, queue(&batch)), (Ok(()), None));
    assert_eq!(counts(&batch, |row| row.wchan.as_deref() == Some("do_wait")), 3);
}

#[test]
fn threads_come_go_and_change_state_between_samples() {
    let tree = Tree::of(71..75, 'S');
    let mut process = Process::new(tree.proc.clone(), PID);
    let mut host = Host::new(tree.proc.clone());
    // Init is one more, and sleeps.
    let mut states = |sleeping: f64, blocked: f64| {
        let (of_process, of_host) = (sample(&mut process).0, sample(&mut host).0);
        for (batch, metric, more) in [(&of_process, "process_threads", 0.0), (&of_host, "system_threads", 1.0)] {
            assert_eq!(value(batch, metric, &[("state", "S")]), Some(sleeping + more), "{metric}");
            assert_eq!(value(batch, metric, &[("state", "D")]), Some(blocked), "{metric}");
        }
    };
    states(4.0, 0.0);
    tree.thread(72, 'D', 7);
    states(3.0, 1.0);
    // One that has run makes two, one ends.
    tree.thread(72, 'S', 8);
    tree.thread(80, 'D', 1);
    tree.thread(81, 'D', 1);
    std::fs::remove_dir_all(tree.task("73")).unwrap();
    states(3.0, 2.0);
    std::fs::remove_dir_all(tree.task("81")).unwrap();
    states(3.0, 1.0);
}

#[test]
fn a_cut_or_senseless_file_is_a_gap_and_the_sums_go_on() {
    let tree = Tree::of(71..74, 'S');
    let mut process = Process::new(tree.proc.clone(), PID);
    assert_eq!(queue(&sample(&mut process).0), Some(3.0));
    for (file, content) in [
        ("schedstat", "1000000000 10000"),
        ("schedstat", "1000000000\n"),
        ("schedstat", "1000000000 18446744073709551615 10\n"),
        ("schedstat", "1000000000 -5 10\n"),
        ("stat", "72 (worker) S 1 71"),
        ("stat", "72 worker\n"),
    ] {
        if file == "stat" {
            // It has run, or nobody would look.
            std::fs::write(tree.task("72").join("schedstat"), "1000000001 1000000000 11\n").unwrap();
        }
        std::fs::write(tree.task("72").join(file), content).unwrap();
        let (batch, result) = sample(&mut process);
        assert!(result.is_err(), "{file}: {content}");
        assert!(batch.threads.is_empty() && queue(&batch).is_none(), "{file}: {content}");
        assert_eq!(value(&batch, "process_threads", &[("state", "S")]), None);
        tree.thread(72, 'S', 1_000_000_000);
        assert_eq!(queue(&sample(&mut process).0), Some(3.0), "after {file}: {content}");
    }
}

#[test]
fn a_counter_that_is_set_back_makes_no_step() {
    let tree = Tree::of(71..74, 'S');
    let mut process = Process::new(tree.proc.clone(), PID);
    let mut sums = |queue_ns| {
        tree.thread(72, 'S', queue_ns);
        queue(&sample(&mut process).0).unwrap()
    };
    assert_eq!([1_500_000_000, 20, 40, 1_500_000_000, 2_000_000_000].map(&mut sums), [3.5, 3.5, 3.5, 3.5, 4.0]);
    // The same number for another thread: both count.
    let stat = std::fs::read_to_string(tree.task("72").join("stat")).unwrap().replace(" 113271 ", " 999999 ");
    std::fs::write(tree.task("72").join("stat"), stat).unwrap();
    std::fs::write(tree.task("72").join("schedstat"), "1 500000000 1\n").unwrap();
    assert_eq!(queue(&sample(&mut process).0), Some(4.5));
}

/// Two sources of one process look once; yet no source is given what it has had.
#[test]
fn a_source_never_sees_the_same_look_twice() {
    let tree = Tree::of(71..74, 'S');
    let mut sources: Vec<Box<dyn Collector>> =
        vec![Box::new(Process::new(tree.proc.clone(), PID)), Box::new(Host::new(tree.proc.clone()))];
    for round in 0..20_u32 {
        let (source, state) = (&mut sources[(round % 2) as usize], if round % 4 < 2 { 'D' } else { 'S' });
        assert_eq!(sample(source.as_mut()).1, Ok(()));
        tree.thread(72, state, u64::from(round + 1));
        let blocked = counts(&sample(source.as_mut()).0, |row| row.state == "D");
        assert_eq!(blocked, i64::from(state == 'D'), "round {round}");
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

/// What the child of the test below does: holds its parent up, for half a minute at most.
extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
    for _ in 0..3_000 {
        if STOP.load(Ordering::Relaxed) {
            break;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        // SAFETY: a valid timespec, and no place for the rest.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
    0
}

/// A thread in real uninterruptible sleep: who makes a child with `vfork` sleeps until that has ended.
#[test]
fn a_thread_that_waits_for_its_vfork_is_in_d() {
    STOP.store(false, Ordering::Relaxed);
    let waiter = std::thread::Builder::new().name("vforking".to_owned()).spawn(|| {
        let mut stack = vec![0_u8; 256 << 10];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, which outlives it: this thread goes on only after it has ended.
        unsafe {
            let top = stack.as_mut_ptr().add(stack.len()).map_addr(|address| address & !0xf);
            let pid = libc::clone(child, top.cast(), flags, std::ptr::null_mut());
            assert!(pid > 0);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    });
    let waiter = waiter.unwrap();
    let mut process = Process::new(Proc::system(), std::process::id());
    let mut host = Host::new(Proc::system());
    let mut seen = Vec::new();
    for _ in 0..6_000 {
        // On its way there it may be seen in D for a lock on the process's memory too.
        let waits = |row: &Thread| row.thread == "vforking" && row.state == "D" && row.syscall == Some(libc::SYS_clone);
        let find = |batch: Batch| batch.threads.into_iter().find(waits);
        seen =
            [&mut process as &mut dyn Collector, &mut host].into_iter().filter_map(|it| find(sample(it).0)).collect();
        if seen.len() == 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    STOP.store(true, Ordering::Relaxed);
    waiter.join().unwrap();
    assert_eq!(seen.len(), 2, "{seen:?}");
    for row in seen {
        assert_eq!(row.count, 1, "{row:?}");
        // Its call is about no file.
        assert_eq!(row.path, None);
        if std::fs::read("/proc/self/stack").is_ok() {
            assert!(row.stack.as_deref().is_some_and(|stack| stack.contains("clone")), "{row:?}");
        }
    }
}
