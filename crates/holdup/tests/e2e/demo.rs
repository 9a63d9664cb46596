//! `holdup demo`: the main job, with nothing installed.

use crate::program::{causes, finish, holdup};
use crate::python;

#[test]
#[holdup_witness::judged(VERDICTS)]
fn names_the_pool_and_proves_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("demo");
    let done = finish(holdup(["demo", "--json", "--quiet", "-o"]).arg(&out), 240);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let both = done.json();
    let faulty = &both["faulty"];
    assert_eq!((&faulty["verdict"], &faulty["culprit"]), (&"found".into(), &"connection_pool_exhausted".into()));
    let root = &faulty["findings"][0];
    assert_eq!((&root["role"], &root["cause"]), (&"root".into(), &"connection_pool_exhausted".into()));
    for rival in ["cpu_saturated", "disk_saturated", "lock_contention", "load_generator_limit"] {
        assert!(
            causes(faulty, "cleared").contains(&rival),
            "{rival} is not cleared: {:?}",
            causes(faulty, "not_judged")
        );
    }
    assert!(causes(faulty, "not_judged").contains(&"thread_pool_queue"), "there is no thread pool to judge");
    let fixed = &both["fixed"];
    assert_eq!((&fixed["verdict"], &fixed["culprit"]), (&"healthy".into(), &serde_json::Value::Null));

    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("connection_pool_exhausted") && page.contains("faulty") && page.contains("fixed"));
    for link in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(link), "the report fetches something: {link}");
    }
    let json = dir.path().join("demo.json");
    std::fs::write(&json, &done.stdout).unwrap();
    let recordings = ["faulty", "fixed"].map(|name| out.join(name));
    let named = ["faulty", "fixed"].map(|name| format!("{name}={}", out.join(name).display()));
    python::check("contract.py", &["demo", json.to_str().unwrap(), &named[0], &named[1]]);
    python::check("tables.py", &recordings);

    // The same recording gives the same verdict, now and later.
    let again = finish(holdup(["diagnose", "--json"]).arg(&recordings[0]), 60);
    assert_eq!(&again.json(), faulty);
}
