//! The exams as a gate: what the judge of counters reached on public data, it still reaches. The data is not part of the
//! project: `HOLDUP_EXAMS`, or `../shared/data` beside the checkout; where neither is, the tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

fn set(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("HOLDUP_EXAMS").map_or(beside, PathBuf::from).join(name);
    if !folder.is_dir() {
        println!("skipped: {} is not there; HOLDUP_EXAMS names the folder that holds {name}", folder.display());
        return None;
    }
    Some(folder)
}

fn scores(exam: &str, folder: &Path) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask-eval")).args([exam, "--json"]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn at_least(scores: &serde_json::Value, key: &str, least: f64) {
    let score = scores[key].as_f64().unwrap();
    assert!(score >= least, "{key} is {score:.3}, which was at least {least}");
}

#[test]
fn dbsherlock_is_passed() {
    let Some(folder) = set("dbsherlock") else { return };
    let scores = scores("dbsherlock", &folder);
    for (key, least) in
        [("top1", 0.97), ("top2", 0.98), ("compound_top3", 0.9), ("detected_compound", 0.8), ("iou", 0.75)]
    {
        at_least(&scores, key, least);
    }
    at_least(&scores, "detected_top1", 0.93);
}

/// What is aimed at is 0.88 and 0.93; `docs/exams.md` says what is confused.
const DBPA: [(&str, f64); 2] = [("macro_f1", 0.84), ("macro_f1_own_head", 0.91)];

/// Normal runs (0-1) in which something is named, at most; with session counts that were moved at random, where 0.02 is aimed at as well.
const FALSE: f64 = 0.02;
const FALSE_JITTERED: f64 = 0.03;

#[test]
fn dbpa_is_not_worse_than_it_was() {
    let Some(folder) = set("dbpa") else { return };
    let scores = scores("dbpa", &folder);
    for (key, least) in DBPA {
        at_least(&scores, key, least);
    }
    for key in ["false_on_normal", "false_on_normal_own_head"] {
        assert!(scores[key].as_f64().unwrap() <= FALSE, "{key}: {}", scores[key]);
        assert!(
            scores["sessions_jittered"][key].as_f64().unwrap() <= FALSE_JITTERED,
            "jittered {key}: {}",
            scores[key]
        );
    }
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask-eval")).args(["dbpa", "/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere is not a folder"));
}

#[test]
fn a_database_s_own_regressions_are_found_where_they_are() {
    let Some(folder) = set("sap-hana") else { return };
    let scores = scores("sap-hana", &folder);
    assert_eq!((&scores["found"], &scores["regressions"]), (&5.into(), &5.into()), "{scores:#}");
    assert!(scores["false_alarms"].as_u64().unwrap() <= 1, "{scores:#}");
    let share = |part: &str, all: &str| scores[part].as_f64().unwrap() / scores[all].as_f64().unwrap();
    assert!(share("failed_as_pull_request", "looks_at_others") <= 0.02, "{scores:#}");
}
