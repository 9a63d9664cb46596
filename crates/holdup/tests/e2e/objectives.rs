//! Objectives over windows, from the outside: a service that is bad for a while, one that ends the run, and that the same
//! recording says the same again.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Finished, Running, finish, free_port, holdup, manifest, root, send};
use crate::python;
use crate::service::Service;

/// Runs a scenario with these `thresholds` against `service`.
fn start(service: &Service, dir: &Path, seconds: u32, thresholds: &str) -> Running {
    let url = service.url();
    let target = url.trim_end_matches('/');
    let text = format!(
        "target: {target}\nload: {{rate: 60, duration: {seconds}s, connections: 20, warm_up: none, timeout: 3s}}\n\
         operations: [{{name: shop/look, get: /, weight: 2}}, {{name: shop/buy, get: /}}]\nthresholds:\n{thresholds}"
    );
    let file = dir.join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    let mut command = holdup(["run"]);
    command.arg(&file).args(["--no-collect", "--json", "--quiet", "-o"]).arg(dir.join("run"));
    Running::start(&mut command)
}

fn objective<'v>(verdict: &'v Value, text: &str) -> &'v Value {
    let of = verdict["objectives"].as_array().unwrap().iter().find(|o| o["text"] == text);
    of.unwrap_or_else(|| panic!("nothing of {text}: {:#}", verdict["objectives"]))
}

fn state<'v>(verdict: &'v Value, text: &str) -> &'v str {
    objective(verdict, text)["state"].as_str().unwrap()
}

/// Seconds of a window of an objective.
fn window(objective: &Value, which: &str) -> (f64, f64) {
    let seconds = |key: &str| objective[which][key].as_f64().unwrap_or_else(|| panic!("no {which}: {objective:#}"));
    (seconds("from_s"), seconds("to_s"))
}

/// A stall of two seconds in twelve: over all of the run every second request is fast.
#[test]
fn a_short_stall_is_missed_by_a_window_and_not_by_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let thresholds = "- p50 < 500ms\n- p50 < 500ms for 2s\n- shop/ p99.9 < 30s for 3s\n- shop/buy rate > 1 for 6s\n- p75 < 1s for 1m\n";
    let running = start(&service, dir.path(), 12, thresholds);
    std::thread::sleep(Duration::from_secs(5));
    send(service.pid(), libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(2_500));
    send(service.pid(), libc::SIGCONT);
    let done = running.finish(Duration::from_secs(60));
    let verdict = done.json();
    assert_eq!(done.code(), Some(1), "{}\n{:#}", done.stderr, verdict["objectives"]);
    assert_eq!(state(&verdict, "p50 < 500ms"), "met", "{:#}", verdict["objectives"]);
    let missed = objective(&verdict, "p50 < 500ms for 2s");
    assert_eq!(missed["state"], "missed", "{missed:#}");
    let ((first_from, _), (from, to)) = (window(missed, "first_window"), window(missed, "worst_window"));
    // The stall lasted from about 5 s to 7.5 s. What waited ended when it was over.
    assert!(first_from >= 3.0 && from < 9.5 && to > 5.0 && first_from <= from, "{missed:#}");
    assert!((to - from - 2.0).abs() < 1e-6, "{missed:#}");
    assert!(done.stderr.contains("p50 < 500ms for 2s") && done.stderr.contains("from"), "{}", done.stderr);
    for met in ["shop/ p99.9 < 30s for 3s", "shop/buy rate > 1 for 6s"] {
        assert_eq!(state(&verdict, met), "met", "{:#}", verdict["objectives"]);
    }
    let open = objective(&verdict, "p75 < 1s for 1m");
    assert_eq!((&open["state"], open["why"].as_str().is_some()), (&"not_judged".into(), true), "{open:#}");
    assert_eq!(verdict["load"]["aborted"], Value::Null);
    assert!(verdict["symptom"].as_str().unwrap().contains("p50 < 500ms for 2s"), "{:#}", verdict["symptom"]);
    is_the_same_again(dir.path(), &verdict);
    // What the generator found by its own counts is what the histograms say.
    let kept = &manifest(&dir.path().join("run"))["load"]["objectives"][1];
    assert_eq!((&kept["state"], &kept["windows"]), (&missed["state"], &missed["windows"]), "{kept:#} {missed:#}");
    let (kept, judged) = (kept["value"].as_f64().unwrap(), missed["value"].as_f64().unwrap());
    assert!((kept - judged).abs() < 1e-3, "{kept} {judged}");
}

/// `diagnose` says of the objectives what `run` said, and both say it as the schema has it.
fn is_the_same_again(dir: &Path, verdict: &Value) {
    let json = dir.join("verdict.json");
    std::fs::write(&json, verdict.to_string()).unwrap();
    python::check("contract.py", &["diagnosis", json.to_str().unwrap()]);
    let again = finish(holdup(["diagnose", "--json"]).arg(dir.join("run")), 30).json();
    assert_eq!(again["objectives"], verdict["objectives"]);
    let text = finish(holdup(["diagnose"]).arg(dir.join("run")), 30).stdout;
    assert!(text.contains("Objectives"), "{text}");
}

/// A service that goes away after four seconds of a minute.
fn dies(thresholds: &str, dir: &Path) -> (Finished, f64) {
    let service = Service::start();
    let running = start(&service, dir, 60, thresholds);
    std::thread::sleep(Duration::from_secs(4));
    drop(service);
    let gone = Instant::now();
    (running.finish(Duration::from_secs(50)), gone.elapsed().as_secs_f64())
}

#[test]
fn an_objective_ends_the_run_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let thresholds = "- {objective: errors < 50% for 3s, abort: true}\n- {objective: shop/buy p99 < 40s, abort: true, after: 1s}\n- errors < 99%\n";
    let (done, seconds) = dies(thresholds, dir.path());
    let verdict = done.json();
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    // Half of three seconds, the rest of a second, and what it takes to write and to judge; not the 56 s that were left.
    assert!(seconds < 50.0, "it took {seconds} s");
    let ended = objective(&verdict, "errors < 50% for 3s");
    assert_eq!((&ended["state"], &ended["aborted"]), (&"missed".into(), &true.into()), "{ended:#}");
    assert!(ended["value"].as_f64().unwrap() >= 0.5, "{ended:#}");
    assert_eq!(objective(&verdict, "errors < 99%")["aborted"], false);
    let aborted = verdict["load"]["aborted"].as_str().unwrap();
    assert!(aborted.contains("ended early") && aborted.contains("errors < 50% for 3s"), "{aborted}");
    assert!(done.stderr.contains("ended early"), "{}", done.stderr);
    let duration = verdict["load"]["duration_s"].as_f64().unwrap();
    assert!((4.0..50.0).contains(&duration), "{duration} s of load");
    // Old readers know this state; a newer one reads why.
    let manifest = manifest(&dir.path().join("run"));
    assert_eq!((&manifest["state"], &manifest["load"]["aborted"]["text"]), (&"interrupted".into(), &ended["text"]));
    is_the_same_again(dir.path(), &verdict);
}

#[test]
fn nothing_that_begins_within_the_grace_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = service.url();
    let mut command = holdup(["run", "--url", &url, "--rate=50", "--duration=5s", "--no-collect", "--json", "--quiet"]);
    command.args(["--abort-on", "p50 < 1us for 1s", "--abort-after", "1m", "-o"]).arg(dir.path().join("run"));
    let done = finish(&mut command, 60);
    let verdict = done.json();
    assert_eq!((done.code(), state(&verdict, "p50 < 1us for 1s")), (Some(1), "missed"), "{}", done.stderr);
    assert_eq!((&verdict["load"]["aborted"], &verdict["objectives"][0]["aborted"]), (&Value::Null, &false.into()));
    assert_eq!(verdict["load"]["operations"][0]["completed"], 250, "{:#}", verdict["load"]);
    assert_eq!(manifest(&dir.path().join("run"))["state"], "complete");
    // Without grace it ends within seconds.
    let mut command =
        holdup(["run", "--url", &url, "--rate=50", "--duration=60s", "--no-collect", "--json", "--quiet"]);
    command.args(["--abort-on", "p50 < 1us for 1s", "-o"]).arg(dir.path().join("early"));
    let done = finish(&mut command, 40);
    assert_eq!((done.code(), done.json()["objectives"][0]["aborted"].as_bool()), (Some(1), Some(true)));
}

#[test]
fn flags_that_are_wrong_say_the_way_out() {
    let url = "http://127.0.0.1:1/";
    for (flags, words) in [
        (vec!["--abort-on", "p100 < 1s"], "--abort-on: p100 is the longest response time: use max"),
        (vec!["--threshold", "rate < 5"], "--threshold: for rate more is better: write rate > VALUE"),
        (vec!["--threshold", "errors < 1% for 500ms"], "a window is whole seconds"),
        (vec!["--abort-after", "5s"], "--abort-on"),
    ] {
        let mut command = holdup(["run", "--url", url, "--rate=5", "--duration=1s", "--check"]);
        let done = finish(command.args(flags), 20);
        assert_eq!(done.code(), Some(2), "{}", done.stdout);
        assert!(done.stderr.contains(words), "{}", done.stderr);
    }
}

/// `diagnose` and `watch` take objectives as `run` does, and say when nothing can judge one.
#[test]
fn thresholds_of_commands_without_a_load() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = root().join("fixtures/demo-faulty");
    let diagnose = |objective: &str| finish(holdup(["diagnose", "--threshold", objective]).arg(&fixture), 60);
    let missed = diagnose("p99 < 300ms");
    assert_eq!(missed.code(), Some(1), "{}", missed.stderr);
    assert!(missed.stderr.contains("objective missed") && missed.stderr.contains("p99 < 300ms"), "{}", missed.stderr);
    let own = diagnose("p99 < 250ms");
    assert_eq!((own.code(), own.stdout.matches("p99 was").count()), (Some(1), 1), "{}", own.stdout);
    // The recording has an objective of its own that was missed: only those given set the exit code.
    let met = diagnose("p99 < 1m");
    assert_eq!(met.code(), Some(0), "{}", met.stderr);
    let wrong = diagnose("p99 < 300");
    assert_eq!(wrong.code(), Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("--threshold: expected a duration"), "{}", wrong.stderr);

    let unmeasured = finish(holdup(["watch", "--for=1s", "--watch=host", "--threshold", "p99 < 1s"]), 30);
    assert_eq!(unmeasured.code(), Some(2), "{}", unmeasured.stderr);
    assert!(unmeasured.stderr.contains("--watch prometheus:http://APP/metrics"), "{}", unmeasured.stderr);
    let quiet = dir.path().join("quiet");
    // This process waits: the host's CPUs may be a culprit on a busy machine.
    let idle = format!("pid:{}", std::process::id());
    let watched = finish(holdup(["watch", "--quiet", "--for=2s", "--watch", &idle, "-o"]).arg(&quiet), 60);
    assert_eq!(watched.code(), Some(0), "{}", watched.stderr);
    // A process alone says nothing of requests: the verdict says what to add.
    assert!(watched.stdout.starts_with("\nrecording") && watched.stdout.contains("UNDECIDED"), "{}", watched.stdout);
    assert!(watched.stdout.contains("--watch prometheus:http://APP/metrics"), "{}", watched.stdout);
    let open = finish(holdup(["diagnose", "--threshold", "p99 < 1s"]).arg(&quiet), 60);
    assert_eq!((open.code(), open.stdout.as_str()), (Some(2), ""), "{}", open.stderr);
    assert!(open.stderr.contains("no source measured response times"), "{}", open.stderr);
}

/// The bundled service's own metrics are what a watched objective is judged by.
#[test]
fn a_watched_objective_is_judged_by_the_apps_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let service = Service::with(&["--work-ms=1", "--route=/=", &format!("--admin=127.0.0.1:{port}")]);
    let url = service.url();
    let load = Running::start(
        holdup(["run", "--url", &url, "--rate=50", "--duration=12s", "--no-collect", "--quiet", "-o"])
            .arg(dir.path().join("load")),
    );
    let metrics = format!("prometheus:http://127.0.0.1:{port}/metrics");
    for (name, objective, code) in [("missed", "p50 < 1us", 1), ("met", "p50 < 10m", 0)] {
        let out = dir.path().join(name);
        let watch = ["watch", "--quiet", "--for=4s", "--watch", &metrics, "--threshold", objective, "-o"];
        let done = finish(holdup(watch).arg(&out), 60);
        assert_eq!(done.code(), Some(code), "{}{}", done.stdout, done.stderr);
        assert_eq!(manifest(&out)["thresholds"][0]["text"], objective);
        // The recording keeps the objective: it is judged by it again.
        let again = finish(holdup(["diagnose", "--json"]).arg(&out), 60).json();
        assert_eq!(again["objectives"][0]["state"], name, "{:#}", again["objectives"]);
    }
    load.finish(Duration::from_secs(30));
}
