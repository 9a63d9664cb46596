//! Recordings of several hosts as one case. One machine's recordings are taken apart into what three
//! hosts would have recorded, each by its own clock: joined again they say what they said before.

pub mod apart;
mod live;
mod networks;
mod shards;

use std::path::Path;

use serde_json::Value;

use self::apart::{Host, Split, mark, split};
use crate::program::{finish, holdup, manifest, root};

const MS: i64 = 1_000_000;

/// The verdict on recordings as JSON.
fn judged(arguments: &[&str]) -> Value {
    judged_in(Path::new("."), arguments)
}

/// The same of recordings in `dir`.
fn judged_in<S: AsRef<str>>(dir: &Path, arguments: &[S]) -> Value {
    let words = ["diagnose", "--json"].into_iter().chain(arguments.iter().map(AsRef::as_ref));
    let run = finish(holdup(words).current_dir(dir), 60);
    assert_eq!(run.code(), Some(0), "{}", run.stderr);
    run.json()
}

fn fixture(name: &str) -> String {
    root().join("fixtures").join(name).display().to_string()
}

/// The finding of the culprit.
fn culprit(verdict: &Value) -> &Value {
    let named = |finding: &&Value| finding["cause"] == verdict["culprit"];
    verdict["findings"].as_array().unwrap().iter().find(named).unwrap_or(&Value::Null)
}

fn host<'v>(verdict: &'v Value, name: &str) -> &'v Value {
    verdict["fleet"]["hosts"].as_array().unwrap().iter().find(|host| host["host"] == name).unwrap()
}

/// The share of response time that the ledger leaves unexplained.
fn residual(verdict: &Value) -> f64 {
    let rows = verdict["ledger"].as_array().unwrap().iter().filter(|row| row["band"] == "all");
    let largest = rows.max_by_key(|row| row["requests"].as_u64()).unwrap();
    (largest["residual_ms"].as_f64().unwrap() / largest["response_ms"].as_f64().unwrap()).abs()
}

#[test]
fn three_hosts_are_one_case_whatever_their_clocks() {
    let dir = tempfile::tempdir().unwrap();
    let shifts = Split { app_ns: 40 * MS, database_ns: -25 * MS, ..Split::default() };
    let parts = split(&fixture("hidden-queue-accounts"), dir.path(), &shifts);
    let alone = judged(&[&fixture("hidden-queue-accounts")]);
    let together = judged(&[&parts.generator, &parts.app, &parts.database]);
    assert_eq!(together["culprit"], "thread_pool_queue");
    assert_eq!((&together["verdict"], &together["culprit"]), (&alone["verdict"], &alone["culprit"]));
    assert_eq!(culprit(&together)["hosts"], serde_json::json!(["db1"]));
    let evidence = culprit(&together)["evidence"].as_array().unwrap();
    assert!(evidence.iter().any(|piece| piece["host"] == "db1"), "{evidence:?}");
    assert!(residual(&together) <= 0.05, "{}", residual(&together));
    for (name, role, offset_ms) in [("app1", "app", -40.0), ("db1", "database", 25.0)] {
        let found = host(&together, name);
        // The machine was one, and has the app's port in each of them.
        assert!(found["roles"].as_array().unwrap().contains(&role.into()), "{found}");
        let (offset, error) = (&found["clock"]["offset_ms"], &found["clock"]["error_ms"]);
        let (offset, error) = (offset.as_f64().unwrap(), error.as_f64().unwrap());
        println!("{name}: {offset} ms ± {error} ms");
        assert!((offset - offset_ms).abs() <= 1.0, "{found}");
        assert!((offset - offset_ms).abs() <= error + 0.05, "{found}");
    }
    assert_eq!(host(&together, "gen1")["roles"], serde_json::json!(["generator"]));
    let mine = |verdict: &Value| culprit(verdict)["confidence"].as_f64().unwrap();
    assert!((mine(&together) - mine(&alone)).abs() < 0.15, "{} {}", mine(&together), mine(&alone));
}

#[test]
fn each_fault_is_found_on_its_host() {
    for (name, cause, hosts) in [
        ("hidden-queue-faulty", "thread_pool_queue", vec!["db1"]),
        ("hidden-queue-decoy", "lock_contention", vec!["db1"]),
        ("stranger-network-delay", "network_delay", vec!["app1", "db1"]),
        ("stranger-few-workers", "worker_pool_exhausted", vec!["app1"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let parts = split(&fixture(name), dir.path(), &Split::default());
        let together = judged(&[&parts.database, &parts.generator, &parts.app]);
        assert_eq!(together["culprit"], cause, "{name}: {}", together["headline"]);
        assert_eq!(culprit(&together)["hosts"], serde_json::json!(hosts), "{name}");
        println!("{name}: residual {:.3}", residual(&together));
    }
}

#[test]
fn recordings_of_other_times_are_refused_with_both_times() {
    let dir = tempfile::tempdir().unwrap();
    let late = Split { database_ns: 3_600_000 * MS, ..Split::default() };
    let parts = split(&fixture("hidden-queue-faulty"), dir.path(), &late);
    let run = finish(holdup(["diagnose", &parts.generator, &parts.database]), 60);
    assert_eq!(run.code(), Some(2));
    assert!(
        run.stderr.contains("no time in common: 2026-") && run.stderr.matches(" to 2026-").count() == 2,
        "{}",
        run.stderr
    );
    let twice = finish(holdup(["diagnose", &parts.generator, &parts.generator]), 60);
    assert!(twice.code() == Some(2) && twice.stderr.contains("given twice"), "{}", twice.stderr);
}

#[test]
fn recordings_of_two_cases_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("watched").display().to_string();
    let words = ["watch", "--watch", "host", "--for", "1s", "-q", "--recording-id", "case-7", "-o", &place];
    assert_eq!(finish(holdup(words), 60).code(), Some(0));
    assert_eq!(manifest(Path::new(&place))["recording_id"], "case-7");
    let bad = finish(holdup(["watch", "--watch", "host", "--recording-id", "a b"]), 60);
    assert!(bad.code() == Some(2) && bad.stderr.contains("letters, digits"), "{}", bad.stderr);

    let parts = split(&fixture("hidden-queue-faulty"), dir.path(), &Split::default());
    let all = [parts.generator.as_str(), &parts.app, &parts.database];
    // One without an id goes with any.
    mark(all[0], "case-7");
    mark(all[1], "case-7");
    assert_eq!(judged(&all)["culprit"], "thread_pool_queue");
    mark(all[2], "case-8");
    let refused = finish(holdup(["diagnose"].iter().chain(&all)), 60);
    let said = ["recording id case-7", "has case-8", "gen1", "db1"].iter().all(|word| refused.stderr.contains(word));
    assert!(refused.code() == Some(2) && said, "{}", refused.stderr);
}

#[test]
fn a_host_that_was_recorded_for_a_part_only_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let short = Split { database_for_ns: Some(7_000 * MS), ..Split::default() };
    let parts = split(&fixture("hidden-queue-faulty"), dir.path(), &short);
    let together = judged(&[&parts.generator, &parts.app, &parts.database]);
    let lacks = host(&together, "db1")["lacks"].as_str().unwrap();
    assert!(lacks.contains("only") && lacks.contains('%'), "{lacks}");
    let coverage = together["coverage"].as_array().unwrap();
    let said = coverage.iter().find(|entry| entry["source"] == "recording" && entry["host"] == "db1").unwrap();
    assert_eq!((&said["state"], &said["why"]), (&"partial".into(), &lacks.into()));
    // Nothing joins these hosts: that is said, too.
    assert!(
        coverage
            .iter()
            .any(|entry| entry["host"] == "app1" && entry["why"].as_str().is_some_and(|why| why.contains("clock")))
    );
    let text = finish(holdup(["diagnose", &parts.generator, &parts.app, &parts.database]), 60).stdout;
    assert!(text.contains("were taken as right") && text.contains("Hosts: gen1 (generator)"), "{text}");
}

#[test]
fn a_machine_s_own_facts_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let both = Split { host_on: vec![Host::Generator, Host::App, Host::Database], ..Split::default() };
    let parts = split(&fixture("hidden-queue-faulty"), dir.path(), &both);
    let together = judged(&[&parts.generator, &parts.app, &parts.database]);
    assert_eq!(together["culprit"], "thread_pool_queue");
    // Of three hosts of two CPUs none has six.
    let alone = judged(&[&fixture("hidden-queue-faulty")]);
    assert_eq!(together["host_load"]["cpus"], alone["host_load"]["cpus"]);
    assert_eq!(together["host_load"]["load_1m_max"], alone["host_load"]["load_1m_max"]);
    let hosts: Vec<&Value> = together["coverage"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["source"] == "host")
        .map(|entry| &entry["host"])
        .collect();
    assert_eq!(hosts, ["gen1", "app1", "db1"]);
}
