//! `holdup report` over the short recordings of real labs: the page has all that the verdict has, and its links lead somewhere.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::program::{finish, holdup, root};

/// What at least one of the recordings has.
const KINDS: [&str; 6] = ["chain", "symptom", "contributor", "degradation", "debt", "plans"];

/// What the page shows of the verdict as it is.
const SAME: [&str; 9] =
    ["verdict", "culprit", "headline", "symptom", "episode", "episodes", "debt", "chain", "not_judged"];

fn fixtures() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("fixtures")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.join("manifest.json").exists()).collect()
}

/// The data of the page, as the page itself would read it.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"holdup-report\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn of_each<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    value.as_array().unwrap().iter().filter_map(|item| item[key].as_str()).collect()
}

/// What a verdict has that not each has, so that it is seen that the test saw it.
fn kinds(verdict: &Value) -> Vec<&'static str> {
    let findings = verdict["findings"].as_array().unwrap();
    let has = |key: &str| findings.iter().any(|f| !f[key].is_null());
    let chain = verdict["chain"].as_array().unwrap();
    let all = [
        ("chain", !chain.is_empty()),
        ("symptom", has("follows_from")),
        ("contributor", has("adds_to")),
        ("debt", !verdict["debt"].is_null()),
        ("plans", findings.iter().flat_map(|f| f["evidence"].as_array().unwrap()).any(|e| e["table"] == "plans")),
        ("degradation", !verdict["symptom"].is_null()),
    ];
    all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect()
}

fn check(name: &str, page: &str, verdict: &Value) {
    let report = data(page);
    let run = &report["runs"][0];
    let shown = &run["verdict"];
    for key in SAME {
        assert_eq!(shown[key], verdict[key], "{name}: {key}");
    }
    for key in ["cause", "role", "follows_from", "adds_to"] {
        assert_eq!(of_each(&shown["findings"], key), of_each(&verdict["findings"], key), "{name}: {key}");
    }
    let charts = of_each(&run["charts"], "id");
    let findings = shown["findings"].as_array().unwrap();
    for evidence in findings.iter().flat_map(|f| f["evidence"].as_array().unwrap()) {
        if let Some(chart) = evidence["chart"].as_str() {
            assert!(charts.contains(&chart), "{name}: no chart {chart}");
        }
        if evidence["table"] == "plans" {
            let is_it =
                |plan: &&Value| ["kind", "digest", "shape"].iter().all(|key| plan[key] == evidence["labels"][key]);
            let plan = run["plans"].as_array().unwrap().iter().find(is_it);
            let nodes = plan.and_then(|plan| plan["nodes"].as_array());
            assert!(nodes.is_some_and(|nodes| !nodes.is_empty()), "{name}: no plan of {evidence:#}");
        }
    }
}

#[test]
fn the_report_has_what_the_verdict_has() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("page.html");
    let mut seen = BTreeSet::new();
    for recording in fixtures() {
        let name = recording.file_name().unwrap().to_string_lossy().into_owned();
        let done = finish(holdup(["report"]).arg(&recording).arg("-o").arg(&to), 60);
        assert_eq!(done.code(), Some(0), "{name}: {}", done.stderr);
        let verdict = finish(holdup(["diagnose", "--json"]).arg(&recording), 60).json();
        check(&name, &std::fs::read_to_string(&to).unwrap(), &verdict);
        seen.extend(kinds(&verdict));
    }
    for kind in KINDS {
        assert!(seen.contains(kind), "no recording with {kind}: {seen:?}");
    }
}

/// Whatever names a recording and its phases have, they end no element and begin none.
#[test]
fn names_from_outside_stay_text() {
    const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--";
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(root().join("fixtures/demo-faulty")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    let path = dir.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    manifest["name"] = HOSTILE.into();
    manifest["phases"][0]["name"] = HOSTILE.into();
    std::fs::write(&path, manifest.to_string()).unwrap();
    let to = dir.path().join("page.html");
    let done = finish(holdup(["report"]).arg(dir.path()).arg("-o").arg(&to), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let page = std::fs::read_to_string(&to).unwrap();
    assert_eq!((page.matches("</script").count(), page.matches("<img").count()), (2, 0));
    assert!(page.trim_end().ends_with("</html>"));
    let run = &data(&page)["runs"][0];
    assert_eq!((&run["name"], &run["phases"][0]["name"]), (&HOSTILE.into(), &HOSTILE.into()));
}
