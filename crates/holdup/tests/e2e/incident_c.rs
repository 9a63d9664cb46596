//! The profile of incident C twice: as a scenario of ours, and as a JMeter plan that is imported. Over one connection,
//! where no two sessions go on side by side, both ask for exactly the same.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{finish, holdup, root};
use crate::service::Service;

/// 2 s at each of 50, 100, ... 300 requests per second.
const REQUESTS: u64 = 2 * (50 + 100 + 150 + 200 + 250 + 300);

/// `scenario` against `service`, its steps as short as above.
fn run(dir: &Path, name: &str, scenario: &str, service: &Service, steps: &str) -> Value {
    let target = service.url();
    let text = scenario.replace("http://127.0.0.1:8080", target.trim_end_matches('/')).replace(steps, "every: 2s");
    assert!(text.contains("every: 2s") && !text.contains("8080"), "{text}");
    let (file, recording) = (dir.join(format!("{name}.yaml")), dir.join(name));
    fs::write(&file, text).unwrap();
    let mut command = holdup(["run", "--json", "-q", "--no-collect", "--connections", "1", "-o"]);
    let finished = finish(command.arg(&recording).arg(&file).env("PASSWORD", "secret"), 60);
    // An objective may be missed on a busy machine; the load is the same.
    assert!(matches!(finished.code(), Some(0 | 1)), "{}", finished.stderr);
    finished.json()
}

/// Requests that were due, and that ended well, by operation.
fn counts(verdict: &Value) -> Vec<(String, u64, u64)> {
    let operations = verdict["load"]["operations"].as_array().unwrap();
    let count = |o: &Value, key: &str| o[key].as_u64().unwrap();
    operations
        .iter()
        .map(|o| (o["operation"].as_str().unwrap().to_owned(), count(o, "due"), count(o, "completed")))
        .collect()
}

#[test]
fn the_scenario_and_the_imported_plan_ask_for_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::orders();
    let examples = root().join("examples");
    let own = fs::read_to_string(examples.join("incident-c.yaml")).unwrap();
    assert!(own.lines().count() < 40, "{} lines", own.lines().count());
    let own = own.replace("data/accounts.csv", &examples.join("data/accounts.csv").display().to_string());

    let plan = root().join("crates/holdup-import/tests/data/incident-c.jmx");
    let imported = finish(holdup(["import", "scenario"]).arg(plan), 20);
    assert_eq!(imported.code(), Some(0), "{}", imported.stderr);

    let ours = run(dir.path(), "ours", &own, &service, "every: 30s");
    let theirs = run(dir.path(), "theirs", &imported.stdout, &service, "every: 10s");
    let (ours, theirs) = (counts(&ours), counts(&theirs));
    assert_eq!(ours, theirs);
    // A token, a thousand orders, a token, ...
    let tokens = REQUESTS.div_ceil(1_001);
    let expected = [("auth".to_owned(), tokens, tokens), ("order".to_owned(), REQUESTS - tokens, REQUESTS - tokens)];
    assert_eq!(ours, expected);
}
