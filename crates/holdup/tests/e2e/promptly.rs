//! holdup measures on and ends within two seconds of a signal, however its sources and its terminal behave: servers that hang
//! under load, a terminal that is stopped, a pipe that is not read.
//!
//! Two seconds are the promise for a machine with a CPU to spare. Here six tests share two, and a test ends four recordings at
//! once: so it allows four times as long, and what a thread that only sleeps overslept meanwhile. What these tests were seen
//! failing with took longer than any of that: it waited for a reader or a server for as long as that liked.

use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdup_testing::{Postgres, Which};

use crate::program::{Running, free_port, holdup, send};
use crate::service::Service;
use crate::survive::{MINUTES, has_rows, is_finished, terminal, until};

const PROMISE: Duration = Duration::from_secs(2);
const FACTOR: u32 = 4;

/// Waits for the end of `children`, which were told to end at `told`; the code of each.
fn promptly(what: &str, children: &mut [Child], told: Instant) -> Vec<Option<i32>> {
    const NAP: Duration = Duration::from_millis(10);
    let mut overslept = Duration::ZERO;
    let mut codes = vec![None; children.len()];
    while codes.contains(&None) {
        let limit = PROMISE * FACTOR + overslept;
        let left = || codes.iter().filter(|code| code.is_none()).count();
        if told.elapsed() > limit {
            let left = left();
            children.iter_mut().for_each(|child| drop(child.kill()));
            panic!("{what}: {left} of {} still run {limit:?} after they were told to end", codes.len());
        }
        let nap = Instant::now();
        std::thread::sleep(NAP);
        overslept += nap.elapsed().saturating_sub(NAP);
        for (child, code) in children.iter_mut().zip(&mut codes) {
            if code.is_none() {
                *code = child.try_wait().unwrap().map(|status| status.code());
            }
        }
    }
    eprintln!("{what}: ended within {:?}, of which {overslept:?} were stalls", told.elapsed());
    codes.into_iter().flatten().collect()
}

fn segments(recording: &Path) -> usize {
    std::fs::read_dir(recording.join("segments")).map_or(0, Iterator::count)
}

/// Both outputs, as a user has them who pressed Ctrl-S, or whose log shipper hangs. What keeps them open comes with them.
fn unread(is_terminal: bool) -> (OwnedFd, OwnedFd) {
    if is_terminal {
        let (window, terminal) = terminal();
        // SAFETY: it takes a descriptor that is open and a number.
        assert_eq!(unsafe { libc::tcflow(terminal.as_raw_fd(), libc::TCOOFF) }, 0);
        return (window, terminal);
    }
    let (reader, writer) = std::io::pipe().unwrap();
    // SAFETY: fcntl(2) takes a descriptor that is open and numbers.
    let set = |flags: libc::c_int| assert_eq!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, flags) }, 0);
    set(libc::O_NONBLOCK);
    let mut pipe = std::fs::File::from(OwnedFd::from(writer.try_clone().unwrap()));
    while pipe.write(&[b' '; 512]).is_ok() {}
    set(0);
    (reader.into(), writer.into())
}

/// Starts it with both outputs unread.
fn start_unread(mut command: Command, is_terminal: bool) -> (Child, OwnedFd) {
    let (kept, output) = unread(is_terminal);
    command.env("TERM", "xterm").stdout(output.try_clone().unwrap()).stderr(output);
    (command.spawn().unwrap(), kept)
}

/// The last of these is asked for while nothing could be said for seconds.
#[test]
fn an_output_that_is_not_read_holds_up_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = service.url();
    let mut started = Vec::new();
    for is_terminal in [true, false] {
        let watch = holdup(["watch", "--watch=host", "--for=1h", "--interval=200ms", "-o"]);
        let run = holdup(["run", "--url", &url, "--rate=50", "--duration=1h", "--watch=host", "-o"]);
        for (name, mut command) in [("watch", watch), ("run", run)] {
            let to = dir.path().join(format!("{name}-{is_terminal}"));
            command.arg(&to);
            let (child, kept) = start_unread(command, is_terminal);
            started.push((child, kept, to));
        }
    }
    for (_, _, to) in &started {
        // Each is a second and a half.
        until("four segments", || segments(to) >= 4);
    }
    let told = Instant::now();
    started.iter().zip([libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGTERM]).for_each(|(run, signal)| {
        send(run.0.id(), signal);
    });
    let (mut children, kept): (Vec<_>, Vec<_>) =
        started.into_iter().map(|(child, kept, to)| (child, (kept, to))).unzip();
    assert_eq!(promptly("unread", &mut children, told), [Some(130); 4]);
    for (_, to) in kept {
        is_finished(&to);
    }
}

#[test]
fn top_measures_on_and_ends_while_its_terminal_is_stopped() {
    let Some(server) = Postgres::of(Which::System, &[]) else { return };
    let last = || server.run("SELECT max(query_start) FROM pg_stat_activity WHERE query LIKE '/* holdup%'");
    let top = holdup(["top", &server.url("boss", "postgres"), "--interval=100ms"]);
    let (child, kept) = start_unread(top, true);
    until("a sample", || !last().is_empty());
    for _ in 0..3 {
        let before = last();
        until("another sample", || last() != before);
    }
    let told = Instant::now();
    send(child.id(), libc::SIGTERM);
    assert_eq!(promptly("top", &mut [child], told), [Some(0)]);
    drop(kept);
}

/// Four ways to end, while the service that is loaded and watched hangs: it takes connections, and answers nothing.
fn ends_promptly(what: &str, start: impl Fn(&Service, &str, &Path) -> Command) {
    let dir = tempfile::tempdir().unwrap();
    let admin = format!("127.0.0.1:{}", free_port());
    let service = Service::with(&["--work-ms=1", "--route=/=", &format!("--admin={admin}")]);
    let metrics = format!("--watch=prometheus:http://{admin}/metrics");
    let ways: [&[i32]; 4] = [&[libc::SIGHUP], &[libc::SIGTERM], &[libc::SIGINT, libc::SIGINT], &[]];
    let (mut children, mut windows, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (at, _) in ways.iter().enumerate() {
        let to = dir.path().join(format!("{at}"));
        let (window, terminal) = terminal();
        children.push(start(&service, &metrics, &to).stdout(terminal).stderr(Stdio::null()).spawn().unwrap());
        windows.push(window);
        places.push(to);
    }
    places.iter().for_each(|to| until("a segment", || has_rows(to)));
    service_hangs(&service, &places);
    let told = Instant::now();
    for (child, signals) in children.iter().zip(ways) {
        for signal in signals {
            send(child.id(), *signal);
            // Two that come at once are one to the kernel.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    // The last one's terminal is closed.
    drop(windows.pop());
    assert_eq!(promptly(what, &mut children, told), [Some(130); 4]);
    places.iter().for_each(|to| is_finished(to));
    send(service.pid(), libc::SIGCONT);
}

/// Stops it, and waits until each recording has gone on for a while.
fn service_hangs(service: &Service, places: &[std::path::PathBuf]) {
    send(service.pid(), libc::SIGSTOP);
    let before: Vec<usize> = places.iter().map(|to| segments(to)).collect();
    for (to, before) in places.iter().zip(before) {
        until("another segment", || segments(to) > before);
    }
}

#[test]
fn a_run_ends_promptly_while_the_service_hangs() {
    ends_promptly("run", |service, metrics, to| {
        let mut run = holdup(["run", "--url", &service.url(), "--rate=100", "--duration=1h", "--connections=50"]);
        run.args([
            "--watch=host",
            metrics,
            &format!("--watch=pid:{}", service.pid()),
            "--interval=200ms",
            "--quiet",
            "-o",
        ])
        .arg(to);
        run
    });
}

#[test]
fn a_watch_ends_promptly_while_the_service_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let mut load = None;
    let load = std::cell::RefCell::new(&mut load);
    ends_promptly("watch", |service, metrics, to| {
        load.borrow_mut().get_or_insert_with(|| {
            let mut run = holdup(["run", "--url", &service.url(), "--rate=400", "--duration=1h", "--connections=200"]);
            Running::start(run.args(["--no-collect", "--quiet", "-o"]).arg(dir.path().join("load")))
        });
        let mut watch = holdup(["watch", "--watch=host", metrics, "--for=1h", "--interval=200ms", "--quiet"]);
        watch.arg(format!("--watch=pid:{}", service.pid())).arg("-o").arg(to);
        watch
    });
    let load = load.into_inner().take().unwrap();
    load.signal(libc::SIGTERM);
    assert_eq!(load.finish(MINUTES).code(), Some(130));
}
