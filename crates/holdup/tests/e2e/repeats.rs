//! The same load several times: plain, and on versions that a command switches between, in a fair order. Each run is a recording
//! of its own, and a file beside them says which is which, whatever ended the whole.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Finished, Running, finish, free_port, holdup, send};
use crate::service::Service;

/// A service that a command starts again and again; gone when the test is.
pub struct Switched {
    pub dir: PathBuf,
    pub port: u16,
}

impl Switched {
    /// Writes `switch.sh`, whose arguments are the service's options.
    pub fn new(dir: &Path) -> Self {
        let port = free_port();
        let service = env!("CARGO_BIN_EXE_holdup");
        let script = format!(
            "cd \"$(dirname \"$0\")\"\n\
             if [ -f pid ]; then kill -9 $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done; fi\n\
             {service} service --database=none --listen=127.0.0.1:{port} \"$@\" </dev/null >service.log 2>&1 &\n\
             echo $! >pid\necho switched to \"$@\"\n"
        );
        std::fs::write(dir.join("switch.sh"), script).unwrap();
        Self { dir: dir.to_owned(), port }
    }

    pub fn command(&self, options: &str) -> String {
        format!("sh {} {options}", self.dir.join("switch.sh").display())
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.dir.join("pid")).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid {
            // SAFETY: kill(2) takes two numbers; the process is this test's, started by its script.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

fn interleaved(dir: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join("interleave.json")).unwrap()).unwrap()
}

fn names(order: &Value) -> Vec<(&str, u64)> {
    let turns = order["order"].as_array().unwrap();
    turns.iter().map(|turn| (turn["name"].as_str().unwrap(), turn["round"].as_u64().unwrap())).collect()
}

/// Mean of the response time in a recording.
fn mean_ms(dir: &Path) -> f64 {
    let done = finish(holdup(["diagnose", "--json"]).arg(dir), 60);
    done.json()["load"]["operations"][0]["response_ms"]["p50"].as_f64().unwrap()
}

fn run(service: &Switched, to: &Path, more: &[&str]) -> Finished {
    let mut command = holdup(["run", "--url", &service.url(), "--rate=50", "--duration=2s", "--no-collect"]);
    command.args(["--settle=200ms", "--order-seed=3", "-o"]).arg(to).args(more);
    finish(&mut command, 120)
}

#[test]
fn versions_take_turns_and_each_is_measured_as_itself() {
    let dir = tempfile::tempdir().unwrap();
    let service = Switched::new(dir.path());
    let fast = format!("fast={}", service.command("--servers=4 --service-time=5ms"));
    let slow = format!("slow={}", service.command("--servers=4 --service-time=60ms"));
    let to = dir.path().join("runs");
    let done = run(&service, &to, &["--interleave", &fast, &slow, "--repeat=2", "--json"]);
    assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
    // They are compared at the end, and again from disk; the one that was named first is the baseline.
    let compared = done.json();
    let columns =
        [&compared["columns"][0]["name"], &compared["columns"][1]["name"], &compared["columns"][1]["verdict"]];
    assert_eq!(columns, ["fast", "slow", "worse"], "{compared:#}");
    let again = finish(holdup(["compare", "--json"]).arg(&to), 60).json();
    assert_eq!(again["columns"], compared["columns"]);
    let order = interleaved(&to);
    let turns = names(&order);
    assert_eq!(order["seed"], 3);
    assert!(done.stderr.contains("--order-seed 3") && done.stderr.contains("run 4 of 4"), "{}", done.stderr);
    // Each round has both, the second in the reverse order of the first.
    assert_eq!(turns.iter().map(|turn| turn.1).collect::<Vec<_>>(), [1, 1, 2, 2]);
    assert_eq!((turns[0].0, turns[1].0), (turns[3].0, turns[2].0));
    assert_ne!(turns[0].0, turns[1].0);
    for (name, round) in turns {
        let recording = to.join(format!("{name}-{round}"));
        let mean = mean_ms(&recording);
        assert!((mean >= 60.0) == (name == "slow"), "{name} of round {round}: {mean} ms");
        assert!(recording.join("report.html").is_file());
    }
    let log = std::fs::read_to_string(to.join("switch.log")).unwrap();
    assert_eq!(log.lines().count(), 4, "{log}");
    // The command is not kept: it may hold what nobody else is to know.
    assert!(!order.to_string().contains("switch.sh"), "{order}");
}

#[test]
fn a_switch_that_fails_says_which_and_what_was_measured_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let service = Switched::new(dir.path());
    let good = format!("good={}", service.command("--servers=4 --service-time=5ms"));
    let to = dir.path().join("runs");
    let bad = "bad=echo no such tag, password=hunter2; exit 3";
    let done = run(&service, &to, &["--interleave", &good, bad, "--repeat=2"]);
    assert_eq!(done.code(), Some(2), "{}", done.stderr);
    for part in ["bad of round 1", "exit status: 3", "no such tag"] {
        assert!(done.stderr.contains(part), "no \"{part}\": {}", done.stderr);
    }
    assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
    // By this seed it comes second.
    assert_eq!(names(&interleaved(&to)), [("good", 1)]);
    // Nothing listens after it.
    let to = dir.path().join("unready");
    let ready = ["--switch-within=5s", "--ready", "tcp://127.0.0.1:9"];
    let done = run(&service, &to, &[&["--interleave", &good, "none=true"][..], &ready].concat());
    assert_eq!(done.code(), Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("is not ready: 127.0.0.1:9 did not accept"), "{}", done.stderr);
    let stays = ["--interleave", "a=sleep 100", "b=sleep 100", "--switch-within=1s"];
    let done = run(&service, &dir.path().join("stays"), &stays);
    assert!(done.code() == Some(2) && done.stderr.contains("still running after 1 s"), "{}", done.stderr);
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::with(&["--servers=4", "--service-time=5ms"]);
    let to = dir.path().join("runs");
    let mut command = holdup(["run", "--url", &service.url(), "--rate=50", "--duration=3s", "--no-collect"]);
    command.args(["--settle=100ms", "--repeat=50", "-o"]).arg(&to);
    let running = Running::start(&mut command);
    while !to.join("interleave.json").is_file() {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    send(running.pid(), libc::SIGINT);
    let done = running.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(130), "{}{}", done.stdout, done.stderr);
    let order = interleaved(&to);
    let turns = names(&order);
    assert!((1..50).contains(&turns.len()) && turns.iter().all(|turn| turn.0 == "run"), "{turns:?}");
    assert_eq!(turns[0], ("run", 1));
    for (name, round) in turns {
        let manifest = crate::program::manifest(&to.join(format!("{name}-{round}")));
        assert_eq!(manifest["state"], "complete");
    }
}

#[test]
fn invalid_repeats_are_refused_before_the_load() {
    let dir = tempfile::tempdir().unwrap();
    let bad: [(&[&str], &str); 7] = [
        (&["--interleave", "a=true"], "a alone cannot be compared"),
        (&["--interleave", "a=true", "a=false"], "two versions are called a"),
        (&["--interleave", "true", "false"], "NAME=COMMAND"),
        (&["--interleave", "../a=true", "b=true"], "letters, digits"),
        (&["--repeat=0"], "--repeat"),
        (&["--repeat=2", "--out=csv:a.csv"], "cannot be used with"),
        (&["--repeat=2", "--ready=https://a/b"], "tcp://HOST:PORT"),
    ];
    for (flags, word) in bad {
        let mut command = holdup(["run", "--url", "http://127.0.0.1:9/", "--rate=5"]);
        let done = finish(command.args(flags).current_dir(dir.path()), 10);
        assert_eq!(done.code(), Some(2), "{flags:?}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(word), "{flags:?} does not say \"{word}\": {}", done.stderr);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written");
}
