//! Runs that don't reach their end: killed, or interrupted. What was measured is there.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::program::{Running, finish, holdup, manifest};
use crate::python;
use crate::service::Service;

const RATE: u64 = 200;

fn start(service: &Service, out: &Path) -> Running {
    let url = service.url();
    let rate = RATE.to_string();
    let arguments =
        ["run", "--url", &url, "--rate", &rate, "--duration=60s", "--watch=host", "--json", "--quiet", "-o"];
    Running::start(holdup(arguments).arg(out))
}

/// Waits until the load has run for `length`.
fn after(out: &Path, length: Duration) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !out.join("manifest.json").exists() {
        assert!(Instant::now() < deadline, "the run does not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(length);
}

#[test]
fn killed_a_recording_keeps_all_but_the_last_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let service = Service::start();
    let run = start(&service, &out);
    after(&out, Duration::from_secs(8));
    run.signal(libc::SIGKILL);
    assert_eq!(run.finish(Duration::from_secs(5)).code(), None);

    assert_eq!(manifest(&out)["state"], "running");
    let done = finish(holdup(["diagnose", "--json"]).arg(&out), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let verdict = done.json();
    let kept = verdict["load"]["operations"][0]["completed"].as_u64().unwrap();
    assert!(kept >= 4 * RATE, "{kept} requests of about {} are left", 8 * RATE);
    assert!(verdict["coverage"].as_array().unwrap().iter().any(|c| c["source"] == "host"), "{:#}", verdict["coverage"]);
    let json = dir.path().join("verdict.json");
    std::fs::write(&json, &done.stdout).unwrap();
    python::check("contract.py", &["diagnosis", json.to_str().unwrap()]);
    if let Some(opened) = python::run("segments.py", &[&out]) {
        assert!(opened.status.success(), "{}", opened.stderr);
        assert_eq!(opened.stdout.trim().parse(), Ok(kept), "DuckDB sees what holdup sees");
    }
}

#[test]
fn interrupted_a_run_is_kept_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let service = Service::start();
    let run = start(&service, &out);
    after(&out, Duration::from_secs(4));
    run.signal(libc::SIGINT);
    let done = run.finish(Duration::from_secs(20));
    assert_eq!(done.code(), Some(130), "{}", done.stderr);
    let verdict = done.json();
    // On a machine that stalls the generator may have been its own limit; nothing is wrong with the service.
    assert_ne!(verdict["verdict"], "found", "{verdict:#}");
    let kept = verdict["load"]["operations"][0]["completed"].as_u64().unwrap();
    assert!(kept >= 2 * RATE, "{kept} requests");
    assert_eq!(manifest(&out)["state"], "interrupted");
    assert!(out.join("report.html").exists());
    let json = dir.path().join("verdict.json");
    std::fs::write(&json, &done.stdout).unwrap();
    python::check("contract.py", &["diagnosis", json.to_str().unwrap(), &format!("={}", out.display())]);
    python::check("tables.py", &[&out]);
}
