//! What a run says of a target that answers, of one that never does, and of an objective that was missed.

use crate::program::{finish, holdup, manifest, send};
use crate::service::Service;

#[test]
fn a_missed_objective_is_a_no_and_a_met_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = service.url();
    for (objective, code) in [("p99 < 5s", 0), ("p50 < 1us", 1)] {
        let arguments = ["run", "--url", &url, "--rate=50", "--duration=2s", "--threshold", objective, "--json", "-o"];
        let done = finish(holdup(arguments).arg(dir.path().join(code.to_string())), 30);
        assert_eq!(done.code(), Some(code), "{objective}: {}", done.stderr);
        assert_eq!(done.stderr.contains(objective), code == 1, "it says which: {}", done.stderr);
        assert_eq!(done.json()["load"]["operations"][0]["completed"], 100);
    }
}

#[test]
fn a_request_that_never_got_an_answer_counts_at_its_age() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let service = Service::start();
    let url = service.url();
    // The kernel goes on accepting connections for it, as many as its backlog holds (128): it looks alive from outside.
    send(service.pid(), libc::SIGSTOP);
    let mut arguments = vec!["run", "--url", &url, "--rate=25", "--duration=4s", "--connections=10", "--timeout=1s"];
    arguments.extend(["--watch=host", "--json", "--quiet", "-o"]);
    let done = finish(holdup(arguments).arg(&out), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let verdict = done.json();
    let operation = &verdict["load"]["operations"][0];
    assert_eq!((&operation["completed"], &operation["errors"]), (&0.into(), &100.into()), "{operation:#}");
    let kind = |name: &str| operation["errors_by_kind"][name].as_u64().unwrap_or(0);
    assert_eq!(kind("timeout") + kind("never_sent"), 100, "{operation:#}");
    // A second at least: one that found no connection is given up then, one that was sent late has a second from there.
    for kind in ["response_ms", "service_ms"] {
        for percentile in ["p50", "p99", "max"] {
            let ms = operation[kind][percentile].as_f64().unwrap();
            assert!(ms >= 990.0, "{kind} {percentile} is {ms}: {operation:#}");
        }
    }
    assert_ne!(verdict["verdict"], "healthy", "{verdict:#}");
    assert_eq!(manifest(&out)["tables"]["requests"], 100, "what was due and never sent is a row too");
}
