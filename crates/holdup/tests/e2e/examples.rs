//! The scenarios of `examples/`: each is fine, is in the list of its readme, and does what it says when it is run, for a
//! shorter time, against the service it was written for.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::program::{finish, holdup, root};
use crate::python;
use crate::service::Service;

/// Examples that run side by side: most of their time they wait.
const SIDE_BY_SIDE: usize = 4;

/// Most lines of one.
const LONGEST: usize = 40;

/// What is expected of a run.
struct Example {
    name: &'static str,
    /// What is written instead of what, so that it does not take long.
    shorter: &'static [(&'static str, &'static str)],
    /// By operation and outcome, how many.
    counts: &'static [(&'static str, &'static str, RangeInclusive<u64>)],
    /// All of them, if that is known exactly.
    total: Option<u64>,
}

const fn example(
    name: &'static str,
    shorter: &'static [(&'static str, &'static str)],
    counts: &'static [(&'static str, &'static str, RangeInclusive<u64>)],
    total: Option<u64>,
) -> Example {
    Example { name, shorter, counts, total }
}

const EXAMPLES: [Example; 22] = [
    example("k6-shared-iterations", &[], &[("news", "ok", 200..=200)], None),
    example("k6-per-vu-iterations", &[], &[("contacts", "ok", 200..=200)], None),
    example("k6-constant-vus", &[("30s", "2s")], &[("contacts", "ok", 20..=50)], None),
    example(
        "k6-ramping-vus",
        &[("for: 20s", "for: 600ms"), ("for: 30s", "for: 600ms"), ("for: 10s", "for: 400ms")],
        &[("news", "ok", 20..=80)],
        None,
    ),
    example(
        "k6-constant-arrival-rate",
        &[("30s", "1s")],
        &[("front", "ok", 30..=30), ("article", "ok", 30..=30)],
        None,
    ),
    example(
        "k6-ramping-arrival-rate",
        &[("1m", "300ms"), ("2m", "200ms"), ("4m", "300ms")],
        &[("news", "ok", 8..=8), ("comment", "ok", 8..=8)],
        None,
    ),
    example(
        "k6-thresholds",
        &[("duration: 1m", "duration: 2s")],
        &[("front", "ok", 10..=20), ("shop/search", "ok", 10..=20), ("shop/buy", "ok", 5..=20)],
        Some(40),
    ),
    example("k6-setup-teardown", &[("30s", "1s")], &[("order", "ok", 50..=50)], None),
    // The run ends as soon as there is no account left, whatever is on its way; who found none may count.
    example(
        "k6-data-parameterization",
        &[],
        &[
            ("auth", "ok", 7..=8),
            ("auth", "feeder_dry", 0..=2),
            ("auth", "unfinished", 0..=1),
            ("order", "ok", 5..=8),
            ("order", "unfinished", 0..=1),
        ],
        None,
    ),
    example(
        "k6-correlation",
        &[("30s", "1s")],
        &[("form", "ok", 10..=10), ("log in", "ok", 10..=10), ("home", "ok", 10..=10)],
        None,
    ),
    example(
        "k6-http-authentication",
        &[("30s", "1s")],
        &[
            ("basic", "ok", 20..=20),
            ("token", "ok", 20..=20),
            ("with token", "ok", 20..=20),
            ("signed", "ok", 20..=20),
            ("own token", "ok", 20..=20),
        ],
        None,
    ),
    example(
        "k6-crud",
        &[("30s", "1s")],
        &[
            ("entry/make", "ok", 5..=10),
            ("entry/read", "ok", 3..=8),
            ("entry/change", "ok", 2..=6),
            ("entry/delete", "ok", 2..=5),
        ],
        Some(20),
    ),
    example(
        "k6-mixed-workloads",
        &[("1m", "2s"), ("~1s", "~100ms"), ("1s..2s", "100ms..200ms")],
        &[
            ("visitor/news", "ok", 14..=16),
            ("visitor/contacts", "ok", 14..=16),
            ("buyer/auth", "ok", 4..=6),
            ("buyer/order", "ok", 20..=30),
        ],
        None,
    ),
    example(
        "gatling-open-injection",
        &[("pause: 4s", "pause: 100ms"), ("for: 15s", "for: 500ms"), ("for: 10s", "for: 500ms")],
        &[("front", "ok", 20..=40), ("search", "ok", 20..=40)],
        None,
    ),
    example(
        "gatling-throttle",
        &[("for: 30s", "for: 500ms"), ("for: 1m", "for: 500ms"), ("for: 2m", "for: 500ms")],
        &[("front", "ok", 50..=100), ("search", "ok", 0..=50)],
        Some(100),
    ),
    example(
        "gatling-loops",
        &[("duration: 30s", "iterations: 4")],
        &[
            ("auth", "ok", 4..=4),
            ("order", "ok", 4..=4),
            ("item", "ok", 8..=8),
            ("piece", "ok", 8..=8),
            ("poll", "ok", 4..=28),
            ("page", "ok", 12..=12),
        ],
        None,
    ),
    example(
        "gatling-branches",
        &[],
        &[
            ("near", "ok", 30..=30),
            ("far", "ok", 50..=50),
            ("tram", "ok", 40..=40),
            ("bus", "ok", 20..=20),
            ("walk", "ok", 20..=20),
            ("search", "ok", 30..=65),
            ("browse", "ok", 10..=45),
            ("first", "ok", 40..=40),
            ("second", "ok", 40..=40),
        ],
        None,
    ),
    example(
        "gatling-errors",
        &[("duration: 30s", "duration: 2s")],
        &[
            ("lucky", "ok", 28..=40),
            ("lucky", "check_failed", 10..=70),
            ("auth", "ok", 15..=36),
            ("auth", "http_status", 4..=25),
            ("order", "ok", 15..=36),
            ("bill", "ok", 15..=36),
        ],
        None,
    ),
    example(
        "gatling-pauses",
        &[("ramp_up: 10s, duration: 1m", "ramp_up: 500ms, duration: 2s"), ("pace: 3s", "pace: 300ms")],
        &[("front", "ok", 20..=100), ("search", "ok", 20..=100), ("article", "ok", 15..=100)],
        None,
    ),
    example("gatling-feeders", &[], &[("ticket", "ok", 4..=4), ("article", "ok", 12..=12)], None),
    example(
        "gatling-checks",
        &[("duration: 30s", "duration: 1s")],
        &[("auth", "ok", 5..=10), ("order", "ok", 3..=8), ("mirror", "ok", 2..=6), ("gone", "ok", 2..=5)],
        Some(20),
    ),
    example(
        "incident-c",
        &[("every: 30s", "every: 300ms")],
        &[("auth", "ok", 1..=100), ("order", "ok", 200..=314)],
        Some(315),
    ),
];

fn folder() -> PathBuf {
    root().join("examples")
}

/// Every scenario of the folder, by name.
fn files() -> BTreeMap<String, PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let scenarios = entries.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    scenarios.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

#[test]
fn every_example_is_fine_short_and_listed() {
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let files = files();
    for (name, path) in &files {
        let done = finish(holdup(["run", "--check"]).arg(path), 10);
        assert_eq!(done.code(), Some(0), "{name}: {}", done.stderr);
        assert!(readme.contains(&format!("({name}.yaml)")), "{name} is not in the list of examples/README.md");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.lines().count() < LONGEST && text.starts_with("# "), "{name}");
        let is_run = name == crate::mongodb::EXAMPLE || EXAMPLES.iter().any(|example| example.name == name);
        assert!(is_run, "{name} is never run");
    }
    let arguments: Vec<PathBuf> = std::iter::once(PathBuf::from("good")).chain(files.into_values()).collect();
    python::check("scenarios.py", &arguments);
}

/// Runs it, shortened, against `service`. What is wrong with what came of it.
fn run(example: &Example, service: &Service, dir: &Path) -> Vec<String> {
    let mut text = std::fs::read_to_string(folder().join(format!("{}.yaml", example.name))).unwrap();
    text = text.replace("http://127.0.0.1:8080", service.url().trim_end_matches('/'));
    for (from, to) in example.shorter {
        assert!(text.contains(from), "{} has no {from}", example.name);
        text = text.replace(from, to);
    }
    // What it includes lies in the folder of examples.
    text = text.replace(": data/", &format!(": {}/", folder().join("data").display()));
    let file = dir.join(format!("{}.yaml", example.name));
    std::fs::write(&file, text).unwrap();
    let mut command = holdup(["run", "--no-collect", "--json", "--quiet", "-o"]);
    let done = finish(command.arg(dir.join(example.name)).arg(&file), 60);
    if done.status.code() != Some(0) {
        return vec![format!("exit code {:?}: {}", done.status.code(), done.stderr)];
    }
    let verdict = done.json();
    let counts = counts(&verdict);
    let of = |operation: &str, outcome: &str| counts.get(&(operation.to_owned(), outcome.to_owned())).copied();
    let mut wrong = Vec::new();
    for (operation, outcome, expected) in example.counts {
        let n = of(operation, outcome).unwrap_or(0);
        if !expected.contains(&n) {
            wrong.push(format!("{operation} {outcome}: {n}, expected {expected:?}"));
        }
    }
    for ((operation, outcome), n) in &counts {
        let is_expected = example.counts.iter().any(|(o, k, _)| o == operation && k == outcome);
        if !is_expected && *n > 0 {
            wrong.push(format!("{operation} {outcome}: {n}, none expected"));
        }
    }
    let total: u64 = counts.values().sum();
    if example.total.is_some_and(|expected| expected != total) {
        wrong.push(format!("{total} in all, expected {:?}", example.total));
    }
    wrong
}

/// Requests by operation and outcome.
fn counts(verdict: &Value) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for operation in verdict["load"]["operations"].as_array().unwrap() {
        let name = operation["operation"].as_str().unwrap();
        let mut add =
            |outcome: &str, n: &Value| counts.insert((name.to_owned(), outcome.to_owned()), n.as_u64().unwrap());
        add("ok", &operation["completed"]);
        operation["errors_by_kind"].as_object().into_iter().flatten().for_each(|(kind, n)| {
            add(kind, n);
        });
    }
    counts
}

#[test]
#[holdup_witness::judged(ON_THE_WHOLE)]
fn every_example_does_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::orders();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(example) = EXAMPLES.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.extend(run(example, &service, dir.path()).into_iter().map(|why| format!("{}: {why}", example.name)));
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
