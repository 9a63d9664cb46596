//! `holdup lab hidden-queue`: the incident on a real MariaDB with a real thread pool.

use serde_json::Value;

use crate::program::{alone, causes, finish, holdup, root};
use crate::{mariadb, python};

#[test]
fn hidden_queue_is_found_fixed_and_told_from_its_decoy() {
    if !mariadb::is_here() {
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("lab");
    let mut command = holdup(["lab", "hidden-queue", "--json", "--quiet", "-o"]);
    let done = finish(command.arg(&out).arg("--labs").arg(root().join("labs")), 300);
    assert_eq!(done.code(), Some(0), "{}\n{}", done.stderr, done.stdout);
    let all = done.json();

    let faulty = &all["faulty"];
    assert_eq!(faulty["culprit"], "thread_pool_queue");
    expect_cleared(faulty, &["cpu_saturated", "disk_saturated", "lock_contention", "load_generator_limit"]);
    let evidence = faulty["findings"][0]["evidence"].as_array().unwrap();
    let has = |table: &str, test: &dyn Fn(&Value) -> bool| evidence.iter().any(|e| e["table"] == table && test(e));
    let says = |e: &Value, word: &str| e["text"].as_str().unwrap().to_lowercase().contains(word);
    assert!(has("requests", &|e| says(e, "p99")), "the client's p99: {evidence:#?}");
    assert!(has("statements", &|e| e["column"] == "duration_ns"), "the server's own timing: {evidence:#?}");
    assert!(
        has("samples", &|e| e["labels"]["metric"].as_str().is_some_and(|m| m.contains("queue_length"))),
        "{evidence:#?}"
    );
    assert!(has("sessions", &|e| says(e, "sleep")), "sessions shown as Sleep: {evidence:#?}");

    assert_eq!((&all["fixed"]["verdict"], &all["fixed"]["culprit"]), (&"healthy".into(), &Value::Null));
    let decoy = &all["decoy"];
    assert_eq!(decoy["culprit"], "lock_contention");
    expect_cleared(decoy, &["cpu_saturated", "disk_saturated", "thread_pool_queue", "load_generator_limit"]);

    let json = dir.path().join("lab.json");
    std::fs::write(&json, &done.stdout).unwrap();
    let named = ["faulty", "fixed", "decoy"].map(|name| format!("{name}={}", out.join(name).display()));
    python::check("contract.py", &["lab", json.to_str().unwrap(), &named[0], &named[1], &named[2]]);
    python::check("tables.py", &["faulty", "fixed", "decoy"].map(|name| out.join(name)));
}

fn expect_cleared(verdict: &Value, wanted: &[&str]) {
    let cleared = causes(verdict, "cleared");
    for cause in wanted {
        assert!(
            cleared.contains(cause),
            "{cause} is not cleared, but {cleared:?}; not judged: {:?}",
            verdict["not_judged"]
        );
    }
}
