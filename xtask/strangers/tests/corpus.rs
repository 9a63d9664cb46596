//! The bench's program on a corpus of recorded fixtures, and one real draw from beginning to end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FAULTY: &str = "hidden-queue-faulty";
const FIXED: &str = "hidden-queue-fixed";

fn bench(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask-strangers"));
    let output = command.arg("--dir").arg(dir).args(arguments).output().unwrap();
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{error}");
    said.into_owned()
}

/// The fixture as the draw of a seed: its topology and times do not matter to a score, what clients felt does.
fn put(dir: &Path, seed: u64, fixture: &str, fault: &str, causes: &[&str], ratio: f64) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(fixture);
    let place = dir.join("corpus").join(seed.to_string());
    fs::create_dir_all(&place).unwrap();
    for entry in fs::read_dir(&fixture).unwrap().flatten() {
        fs::copy(entry.path(), place.join(entry.file_name())).unwrap();
    }
    let times =
        |mean_ms: f64| serde_json::json!({"count": 10, "mean_ms": mean_ms, "p95_ms": mean_ms, "failed_ratio": 0.0});
    let family = if causes.is_empty() { "control" } else { "database" };
    let truth = serde_json::json!({
        "draw": {
            "seed": seed,
            "topology": {
                "engine": "mariadb_thread_pool", "app": "rust", "between": "nothing", "instruments": "none",
                "data": "in_cache", "storage": "free",
            },
            "load": {"rate": 100.0, "shape": "even", "mix": [], "connections": 400, "has_objectives": true},
            "doses": [{"fault": fault, "intensity": 0.8}],
            "onset_s": 8.0, "end_s": 14.0, "seconds": 15.0,
        },
        "played": [{"fault": fault, "family": family, "intensity": 0.8, "values": [], "causes": causes}],
        "onset_at": 0, "end_at": 1,
        "symptom": {"baseline": times(10.0), "fault": times(10.0 * ratio)},
        "sources": {"database": ["mysql://127.0.0.1"], "database_process": [], "app": [], "host": ["host"]},
        "wall_s": 30.0, "bytes": 1,
    });
    fs::write(place.join("truth.json"), truth.to_string()).unwrap();
}

/// The figures of a line of a table that begins with `name`.
fn figures<'a>(said: &'a str, name: &str) -> Vec<&'a str> {
    let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{said}"));
    line[name.len()..].split_whitespace().filter(|word| *word != "%").collect()
}

#[test]
fn a_corpus_is_scored_and_answers_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), 1, FAULTY, "thread_pool_scans", &["thread_pool_queue"], 50.0);
    put(dir.path(), 2, FIXED, "healthy", &[], 1.0);
    // A control that was felt is not one.
    put(dir.path(), 3, FIXED, "healthy", &[], 3.0);
    // Fresh: not judged unless that is asked for.
    put(dir.path(), 1_000_000, FAULTY, "lock_holder", &["lock_contention"], 50.0);
    let said = bench(dir.path(), &["--score"]);
    assert!(said.starts_with("rules "), "{said}");
    assert!(said.contains("3 draws, for learning") && said.contains("1 fresh draws are not judged"), "{said}");
    assert!(said.contains("1 controls were felt"), "{said}");
    // Faults, top-1, top-3, undecided, missed, wrong, nameless, accused.
    assert_eq!(figures(&said, "everything  ")[..8], ["1", "100", "100", "0", "0", "0", "0/0", "0/1"]);
    assert_eq!(figures(&said, "database  ").len(), 9);
    let each = bench(dir.path(), &["--score", "--each"]);
    let told: Vec<&str> = each.lines().filter(|line| line.starts_with("  everything")).collect();
    assert!(told[0].contains("found") && told[0].ends_with("thread_pool_queue") && told.len() == 2, "{told:?}");
    let hash = said["rules ".len()..].split_whitespace().next().unwrap();
    let blamed = bench(dir.path(), &["--blame", &hash[..6]]);
    assert!(blamed.contains("better: 0") && blamed.contains("worse: 0") && blamed.contains("neither: 0"), "{blamed}");
}

#[test]
fn draws_and_kinds_are_printed_without_playing() {
    let dir = tempfile::tempdir().unwrap();
    let said = bench(dir.path(), &["--list", "--seeds", "1000..1003"]);
    let seeds: Vec<&str> = said.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(seeds, ["1000", "1001", "1002"]);
    assert!(bench(dir.path(), &["--kinds"]).contains("| `lock_holder` |"));
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
}

#[test]
#[ignore = "full: starts servers and plays a draw, about a minute"]
fn a_draw_is_played_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let said = bench(dir.path(), &["--try-out", "lock_holder=0.9", "--seeds", "1..2"]);
    let place: PathBuf = dir.path().join("trials/1");
    let truth: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.join("truth.json")).unwrap()).unwrap();
    assert_eq!(truth["played"][0]["fault"], "lock_holder");
    let mean = |part: &str| truth["symptom"][part]["mean_ms"].as_f64().unwrap();
    assert!(mean("fault") > 1.5 * mean("baseline"), "{said}");
    assert!(said.contains("1/database from afar: "), "{said}");
    // Only fixtures of this size are kept by the hundred.
    assert!(truth["bytes"].as_u64().unwrap() < 2 << 20, "{said}");
}
