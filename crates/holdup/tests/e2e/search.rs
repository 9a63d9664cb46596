//! A search for the knee, from the outside: services whose capacity is known to the request, one that drops connections, one
//! that is faster than the search may ask, and the ways in which holdup itself is in the way: it must say so and name nothing.
//!
//! Searches that ask little run side by side: a service of exact service times is idle most of the time.

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use holdup_witness::{ON_THE_WHOLE, Patience, is_hopeless};
use serde_json::Value;

use crate::generator::Cgroup;
use crate::program::{Finished, Running, finish, free_port, holdup, manifest, skip};
use crate::python;
use crate::service::Service;

/// Long enough for an answer, not for a narrow one.
const WITHIN: &str = "40s";
const LENGTH: Duration = Duration::from_secs(40);

/// So many misses on a quiet machine are one too many. An attempt that the machine disturbed is made again once.
const TRIES: Patience = Patience { limits: ON_THE_WHOLE, misses: 2, attempts: 3, within: Duration::from_secs(150) };

/// A search against a service with `options`.
struct Searching {
    _service: Service,
    running: Running,
}

fn search(options: &[&str], rates: &str, connections: u32, dir: &Path) -> Searching {
    let service = Service::with(options);
    let (url, connections) = (service.url(), connections.to_string());
    let arguments = ["run", "--url", &url, "--search", rates, "--within", WITHIN, "--connections", &connections];
    let mut command = holdup(arguments);
    command.args(["--timeout=3s", "--no-collect", "--json", "--quiet", "-o"]).arg(dir);
    Searching { running: Running::start(&mut command), _service: service }
}

impl Searching {
    fn finish(self) -> Finished {
        self.running.finish(Duration::from_secs(90))
    }

    /// What came of it, unless it is given up because the machine stalls too much.
    fn try_finish(self) -> Result<Finished, String> {
        let is_given_up = || is_hopeless(&ON_THE_WHOLE, LENGTH);
        let done = self.running.finish_unless(Duration::from_secs(90), is_given_up);
        done.ok_or_else(|| "given up: the machine stalls".to_owned())
    }
}

/// What `good` finds wrong with a verdict, with the verdict.
fn wrong(why: &str, verdict: &Value) -> String {
    format!("{why}: {}\n{:#}", verdict["headline"], verdict["search"])
}

fn value(verdict: &Value, figure: &str) -> Option<f64> {
    verdict["search"].pointer(figure)?.as_f64()
}

#[test]
#[ignore = "full: a long search"]
fn the_knee_of_a_known_service_is_within_ten_percent() {
    let dir = tempfile::tempdir().unwrap();
    // Servers and milliseconds: 200/s by one and by many, 320/s with long answers.
    let mut open = vec![(4_u32, 20_u32), (1, 5), (16, 50)];
    TRIES.judge(|attempt| {
        let started: Vec<_> = open
            .iter()
            .map(|&(servers, ms)| {
                let options = [format!("--servers={servers}"), format!("--service-time={ms}ms")];
                let to = dir.path().join(format!("{servers}-{attempt}"));
                ((servers, ms), search(&[&options[0], &options[1]], "20:5000", 300, &to), to)
            })
            .collect();
        let mut missed = String::new();
        open.clear();
        for ((servers, ms), searching, to) in started {
            let done = searching.try_finish()?;
            let verdict = done.json();
            let truth = f64::from(servers) / f64::from(ms) * 1e3;
            let is_near = |figure: &str| value(&verdict, figure).is_some_and(|v| (v / truth - 1.0).abs() < 0.1);
            let are_near = ["/knee/value", "/capacity/value", "/breaking_point/rate/value"].into_iter().all(is_near);
            // It overloads on purpose: with nobody to name beyond the knee there is nothing to report.
            let is_fine = (&verdict["verdict"], &verdict["symptom"]) == (&"healthy".into(), &Value::Null);
            let how = &verdict["search"]["breaking_point"]["how"];
            if done.code() != Some(0) || !are_near || !is_fine || how != "achieved_below_offered" {
                let what = format!("{servers} servers of {ms} ms, exit code {:?}, {}", done.code(), verdict["verdict"]);
                missed += &wrong(&what, &verdict);
                open.push((servers, ms));
                continue;
            }
            it_is_said_everywhere(&verdict, &to);
        }
        if missed.is_empty() { Ok(()) } else { Err(missed) }
    });
}

/// The same answer on the terminal, in the report and in the schema; and again from the recording alone.
fn it_is_said_everywhere(verdict: &Value, recording: &Path) {
    assert!(verdict["headline"].as_str().unwrap().starts_with("The knee is at "), "{}", verdict["headline"]);
    let json = recording.join("verdict.json");
    std::fs::write(&json, verdict.to_string()).unwrap();
    python::check("contract.py", &["diagnosis", json.to_str().unwrap()]);
    let again = finish(holdup(["diagnose", "--json"]).arg(recording), 60);
    assert_eq!(again.json()["search"], verdict["search"]);
    let text = finish(holdup(["diagnose"]).arg(recording), 60).stdout;
    for word in ["What the search found", "offered/s", "no: requests pile up", verdict["headline"].as_str().unwrap()] {
        assert!(text.contains(word), "no \"{word}\": {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours where no terminal is: {text}");
    let page = std::fs::read_to_string(recording.join("report.html")).unwrap();
    assert!(page.contains("\"breaking_point\":{\"rate\":{"), "the report has it");
}

#[test]
#[ignore = "full: a long search"]
fn dropped_connections_are_a_breaking_point_and_a_fast_service_has_no_knee() {
    let dir = tempfile::tempdir().unwrap();
    let to = |name: &str| dir.path().join(name);
    TRIES.judge(|attempt| {
        // 100/s, and a kernel that drops what finds the queue full.
        let options = ["--blocking-workers=2", "--service-time=20ms", "--backlog=8"];
        let dropping = search(&options, "20:2000", 200, &to(&format!("dropping-{attempt}")));
        let fast = ["--servers=100", "--service-time=5ms"];
        let fast = search(&fast, "20:150", 100, &to(&format!("fast-{attempt}")));
        // 1,000/s, of which 10 connections can see 100.
        let many = ["--servers=100", "--service-time=100ms"];
        let few = search(&many, "20:2000", 10, &to(&format!("few-{attempt}")));

        let (dropping, fast, few) = (dropping.try_finish()?, fast.try_finish()?, few.try_finish()?);
        let mut last = String::new();
        if (dropping.code(), fast.code()) != (Some(0), Some(0)) {
            last +=
                &format!("exit codes {:?} and {:?}: {}{}", dropping.code(), fast.code(), dropping.stderr, fast.stderr);
        }
        let verdict = dropping.json();
        let breaks = value(&verdict, "/breaking_point/rate/value").is_some_and(|rate| (85.0..=110.0).contains(&rate));
        if !breaks || verdict["search"]["breaking_point"]["how"] != "achieved_below_offered" {
            last += &wrong("dropping", &verdict);
        }
        let verdict = fast.json();
        let unresolved = verdict["search"]["unresolved"].to_string();
        if !verdict["search"]["knee"].is_null() || !unresolved.contains("not reached up to 150") {
            last += &wrong("fast", &verdict);
        }
        let verdict = few.json();
        let refused = verdict["search"]["refused"].as_str().unwrap_or_default();
        if few.code() != Some(2) || !refused.contains("connections") || !verdict["search"]["knee"].is_null() {
            last += &wrong("few", &verdict);
        } else {
            assert!(few.stderr.contains("connections"), "{}", few.stderr);
            assert_ne!(verdict["verdict"], "healthy", "{verdict:#}");
            let json = dir.path().join("few.json");
            std::fs::write(&json, verdict.to_string()).unwrap();
            python::check("contract.py", &["diagnosis", json.to_str().unwrap()]);
        }
        if last.is_empty() { Ok(()) } else { Err(last) }
    });
}

/// What a search is for: how much it carries, and what is short beyond that.
#[test]
fn beyond_the_knee_the_culprit_is_named() {
    let dir = tempfile::tempdir().unwrap();
    TRIES.judge(|attempt| {
        let (port, admin) = (free_port(), free_port());
        let database = format!("--database=sqlite:{}", dir.path().join(format!("{attempt}.db")).display());
        // Four connections, each held for 20 ms: 200/s less what the database takes.
        let mut service = holdup(["service", "--pool=4", "--hold-ms=20", &database]);
        service.arg(format!("--listen=127.0.0.1:{port}")).arg(format!("--admin=127.0.0.1:{admin}"));
        let _service = Running::start(&mut service);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let url = format!("http://127.0.0.1:{port}/vacancy");
        let mut command = holdup(["run", "--url", &url, "--search=20:1000", "--within", WITHIN, "--connections=300"]);
        command.arg(format!("--watch=prometheus:http://127.0.0.1:{admin}/metrics"));
        command.args(["--timeout=3s", "--json", "--quiet", "-o"]).arg(dir.path().join(format!("run-{attempt}")));
        let done = finish(&mut command, 90);
        let verdict = done.json();
        let headline = verdict["headline"].as_str().unwrap();
        let is_near = done.code() == Some(0)
            && value(&verdict, "/knee/value").is_some_and(|knee| (170.0..=210.0).contains(&knee));
        if is_near && headline.ends_with("; beyond it connection_pool_exhausted.") {
            assert_eq!(
                (&verdict["verdict"], &verdict["culprit"]),
                (&"found".into(), &"connection_pool_exhausted".into())
            );
            return Ok(());
        }
        Err(wrong(&format!("a pool of 4, exit code {:?}", done.code()), &verdict))
    });
}

#[test]
#[ignore = "full: a long search"]
fn throttled_it_names_no_knee() {
    let Some(cgroup) = Cgroup::new() else {
        return skip("no CPU cgroup can be made here; that needs root and a mounted cgroup file system");
    };
    let dir = tempfile::tempdir().unwrap();
    // 20,000/s: far more than a fraction of a core sends.
    let service = Service::with(&["--servers=100", "--service-time=5ms"]);
    let url = service.url();
    let mut command = holdup(["run", "--url", &url, "--search", "100:20000", "--within=30s", "--connections=200"]);
    command.args(["--timeout=2s", "--no-collect", "--json", "--quiet", "-o"]).arg(dir.path().join("run"));
    cgroup.allow(Some(4));
    let running = Running::start(&mut cgroup.within(&command));
    std::thread::sleep(Duration::from_secs(34));
    // It has measured what it had to; judging would take minutes.
    cgroup.allow(None);
    let done = running.finish(Duration::from_secs(120));
    let verdict = done.json();
    assert_eq!(done.code(), Some(2), "{}", wrong("it has an answer", &verdict));
    assert!(verdict["search"]["knee"].is_null() && verdict["search"]["breaking_point"].is_null(), "{verdict:#}");
    assert_ne!(verdict["verdict"], "healthy", "{verdict:#}");
    let said = format!("{}{}", verdict["search"]["refused"], done.stderr);
    assert!(said.contains("generator was the limit"), "{said}: {:#}", verdict["search"]);
}

#[test]
#[ignore = "full: a long search"]
fn interrupted_it_says_what_it_saw() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("run");
    let searching = search(&["--servers=4", "--service-time=20ms"], "20:5000", 300, &to);
    std::thread::sleep(Duration::from_secs(14));
    searching.running.signal(libc::SIGINT);
    let done = searching.finish();
    assert_eq!(done.code(), Some(130), "{}", done.stderr);
    let verdict = done.json();
    let steps = verdict["search"]["points"].as_array().unwrap().len();
    assert!((1..12).contains(&steps), "{steps} steps: {:#}", verdict["search"]);
    let json = dir.path().join("verdict.json");
    std::fs::write(&json, verdict.to_string()).unwrap();
    python::check("contract.py", &["diagnosis", json.to_str().unwrap()]);
    assert_eq!(manifest(&to)["state"], "interrupted");
    let again = finish(holdup(["diagnose", "--json"]).arg(&to), 60).json();
    assert_eq!(again["search"], verdict["search"]);
}

#[test]
fn invalid_searches_are_refused_before_the_load() {
    let dir = tempfile::tempdir().unwrap();
    let bad: [(&[&str], &str); 7] = [
        (&["--search=100:50"], "first rate, 100"),
        (&["--search=100"], "--search"),
        (&["--search=10:fast"], "--search"),
        (&["--search=10:100", "--within=5s"], "from 20s"),
        (&["--search=10:100", "--duration=60s"], "--within"),
        (&["--search=10:100", "--search-objective", "p98 < 1s"], "p99 < 500ms"),
        (&["--rate=5", "--within=60s"], "--search"),
    ];
    for (flags, word) in bad {
        let mut command = holdup(["run", "--url", "http://127.0.0.1:9/"]);
        let done = finish(command.args(flags).current_dir(dir.path()), 10);
        assert_eq!(done.code(), Some(2), "{flags:?}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(word), "{flags:?} does not say \"{word}\": {}", done.stderr);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written");
}
