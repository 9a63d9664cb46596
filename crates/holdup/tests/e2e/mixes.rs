//! A load in phases with mixes, in groups, on new connections: what the program counts is what the scenario says.

use crate::program::{finish, holdup, manifest};
use crate::service::Service;

#[test]
fn a_phase_changes_what_is_sent_and_the_recording_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = service.url();
    let text = format!(
        "target: {}\n\
         http: {{keep_alive: false}}\n\
         load:\n  connections: 20\n  warm_up: none\n  timeout: 60s\n  arrivals: {{groups_of: 10}}\n  phases:\n\
         \x20   - {{name: usual, rate: 50, for: 1s}}\n\
         \x20   - {{name: month-end, rate: 50, for: 1s, mix: {{report: 30/s}}}}\n\
         operations: [{{name: search, get: /}}, {{name: report, get: /, weight: 0}}]\n",
        url.trim_end_matches('/')
    );
    let file = dir.path().join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    let checked = finish(holdup(["run", "--check"]).arg(&file), 10);
    for line in
        ["130 requests", "mix of month-end: search 62.5 %, report 37.5 %", "in groups of 10", "a new one for each"]
    {
        assert!(checked.stdout.contains(line), "no {line:?}: {}{}", checked.stdout, checked.stderr);
    }
    let to = dir.path().join("run");
    let done = finish(holdup(["run"]).arg(&file).args(["--no-collect", "--quiet", "-o"]).arg(&to), 60);
    assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
    let manifest = manifest(&to);
    let rates: Vec<f64> = (0..2).map(|phase| manifest["phases"][phase]["rate_to"].as_f64().unwrap()).collect();
    assert_eq!(rates, [50.0, 80.0]);
    let totals = &manifest["load"]["totals"];
    let offered = |operation: usize| totals[operation]["offered"].as_u64().unwrap();
    assert_eq!(offered(0) + offered(1), 130, "{totals:#}");
    assert!((28..=32).contains(&offered(1)) && totals[1]["completed"] == totals[1]["offered"], "{totals:#}");
}
