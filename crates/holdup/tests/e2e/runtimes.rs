//! Real runtimes under real pauses: a collector of the JVM's and of Python's, a blocked event loop of Node.js, goroutines
//! with one thread, a held interpreter's lock. Each service in `runtimes/` tells its metrics by the names of the standard
//! libraries, and counts by other means for how long it was stopped. The recording has both; they must agree, and the
//! verdict must have the pauses among what it found.
//!
//! Amounts are compared with each other within one run, by wide ratios: a machine that stalls stretches both.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdup_recording::Recording;
use holdup_signals::app::runtime::Stop;
use holdup_signals::view::Index;
use holdup_signals::{View, Window};
use serde_json::Value;

use crate::program::{Running, finish, free_port, holdup, skip};

/// The amount in the recording may differ from the service's own by this factor.
const AGREES: f64 = 2.5;

/// The same for goroutines: Go times one wait of eight, and its client's buckets are powers of ten.
const AGREES_GO: f64 = 5.0;

/// Seconds of load, after how many of them the pauses begin, and how long they go on.
const SECONDS: [u64; 3] = [8, 3, 4];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/runtimes")
}

/// Whether `program` is there; says so if not.
fn has(program: &str, package: &str) -> bool {
    let asked = Command::new(program).arg(if program == "go" { "version" } else { "--version" }).output();
    let is_there = asked.is_ok_and(|done| done.status.success());
    if !is_there {
        skip(&format!("{program} is not installed: apt-get install {package}"));
    }
    is_there
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// What a run left behind.
struct Recorded {
    recording: Recording,
    verdict: Value,
}

impl Recorded {
    /// Puts load on the service that `command` starts, and has it pause by `path` in the middle.
    fn make(command: &mut Command, path: &str) -> Self {
        let port = free_port();
        let service = Running::start(command.arg(port.to_string()).stdin(Stdio::null()));
        let deadline = Instant::now() + Duration::from_secs(60);
        while get(port, "/metrics").is_none() {
            assert!(Instant::now() < deadline, "the service does not come up");
            std::thread::sleep(Duration::from_millis(50));
        }
        let [seconds, from, length] = SECONDS;
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let mut load = holdup(["run", "--json", "--rate=40", "--threshold=p95 < 20ms"]);
        load.arg(format!("--url=http://127.0.0.1:{port}/work")).arg(format!("--duration={seconds}s"));
        load.arg(format!("--watch=prometheus:http://127.0.0.1:{port}/metrics"));
        load.arg(format!("--watch=pid:{}", service.pid())).arg("--watch=host").arg("-o").arg(&run);
        let begun = Instant::now();
        let running = Running::start(&mut load);
        while !run.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "holdup does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(from));
        assert!(get(port, &format!("{path}?seconds={length}")).is_some(), "the service does not answer");
        let done = running.finish(Duration::from_secs(60));
        let verdict = done.json();
        Self { recording: Recording::open(&run).unwrap(), verdict }
    }

    fn seen<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let index = Index::new(&self.recording.tables);
        let window = Window { from: i64::MIN, to: i64::MAX };
        look(&View { recording: &self.recording, index: &index, window })
    }

    /// Growth of the counter `metric`.
    fn grown(&self, metric: &str) -> f64 {
        self.seen(|view| view.counter(metric, &[], "").unwrap().delta)
    }

    /// Seconds for which `runtime` was stopped by `stop`.
    fn stopped_s(&self, runtime: &str, stop: Stop) -> f64 {
        self.seen(|view| {
            let all = view.runtime_stops().unwrap();
            let [one] = &all[..] else { panic!("{all:?}") };
            assert_eq!((one.runtime, one.stop), (runtime, stop));
            one.stopped_s()
        })
    }

    /// The pauses are among what was found, and have a part of the ledger.
    fn assert_found(&self) {
        let findings = self.verdict["findings"].as_array().unwrap();
        let causes: Vec<&str> = findings.iter().map(|finding| finding["cause"].as_str().unwrap()).collect();
        assert!(causes.contains(&"runtime_pause"), "{causes:?}: {:#}", self.verdict["cleared"]);
        let rows = self.verdict["ledger"].as_array().unwrap();
        let parts = rows.iter().flat_map(|row| row["parts"].as_array().unwrap());
        let pauses = parts.filter(|part| part["part"] == "runtime_pause");
        assert!(pauses.map(|part| part["ms"].as_f64().unwrap()).fold(0.0, f64::max) > 0.0, "{rows:?}");
    }
}

fn assert_agree(recorded: f64, own: f64, factor: f64) {
    println!("recorded {recorded:.3} s, the service itself {own:.3} s");
    assert!(own > 0.5, "the service was stopped for {own} s only");
    assert!((1.0 / factor..factor).contains(&(recorded / own)), "recorded {recorded} s, own count {own} s");
}

#[test]
fn a_blocked_event_loop_is_in_the_recording() {
    if !has("node", "nodejs") {
        return;
    }
    let made = Recorded::make(Command::new("node").arg(sources().join("service.mjs")), "/pause");
    assert_agree(made.stopped_s("Node.js", Stop::EventLoop), made.grown("own_stopped_seconds_total"), AGREES);
    made.assert_found();
}

#[test]
fn collections_of_the_jvm_are_in_the_recording() {
    if !has("javac", "default-jdk-headless") {
        return;
    }
    let classes = tempfile::tempdir().unwrap();
    let compiled = finish(Command::new("javac").arg("-d").arg(classes.path()).arg(sources().join("Service.java")), 120);
    assert!(compiled.status.success(), "{}", compiled.stderr);
    let mut java = Command::new("java");
    java.args(["-Xmx256m", "-XX:+UseSerialGC", "-cp"]).arg(classes.path()).arg("Service");
    let made = Recorded::make(&mut java, "/pause");
    assert_agree(made.stopped_s("JVM", Stop::Collector), made.grown("own_stopped_seconds_total"), AGREES);
    made.assert_found();
}

#[test]
fn goroutines_with_one_thread_are_in_the_recording() {
    if !has("go", "golang-go") {
        return;
    }
    let built = tempfile::tempdir().unwrap();
    let binary = built.path().join("service");
    let build = finish(Command::new("go").args(["build", "-o"]).arg(&binary).arg(sources().join("service.go")), 240);
    assert!(build.status.success(), "{}", build.stderr);
    let made = Recorded::make(Command::new(&binary).env("GOMAXPROCS", "1"), "/pause");
    let scheduler = made.seen(|view| view.go_schedulers().remove(0));
    assert_eq!(scheduler.max_procs, Some(1.0));
    assert_agree(scheduler.waited_s, made.grown("own_stopped_seconds_total"), AGREES_GO);
    made.assert_found();
}

/// Alone on the machine: an interpreter that also waits for a CPU is slow in all seconds, and not only while it collects.
#[test]
fn collections_of_python_are_in_the_recording() {
    if !has("python3", "python3") {
        return;
    }
    let made = Recorded::make(Command::new("python3").arg("-B").arg(sources().join("service.py")), "/pause");
    assert_agree(made.stopped_s("Python", Stop::Collector), made.grown("own_stopped_seconds_total"), AGREES);
    made.assert_found();
}

/// No runtime counts the wait for an interpreter's lock. From outside, the process uses all of one CPU.
#[test]
fn a_held_interpreters_lock_is_in_the_recording_as_cpu_of_one_process() {
    if !has("python3", "python3") {
        return;
    }
    let made = Recorded::make(Command::new("python3").arg("-B").arg(sources().join("service.py")), "/hold");
    let held_s = made.grown("own_held_seconds_total");
    assert_agree(made.grown("process_cpu_time_seconds_total"), held_s, AGREES);
    assert_agree(made.grown("process_cpu_seconds_total"), held_s, AGREES);
    let open = made.verdict["not_judged"].as_array().unwrap();
    assert!(open.iter().any(|one| one["cause"] == "runtime_pause"), "collections alone clear no lock: {open:#?}");
}
