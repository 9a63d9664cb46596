//! PostgreSQL's digest beside what others make of statements that nobody here wrote. Needs the shared data folder: from
//! `HOLDUP_DATA`, else beside the project; without it the tests say so and pass.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use holdup_sql::{Dialect, digest, digest_text, parsed_text};

fn statements() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let data = std::env::var_os("HOLDUP_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    data.join("statements")
}

fn json(path: &std::path::Path) -> Option<serde_json::Value> {
    let Ok(text) = std::fs::read_to_string(path) else {
        eprintln!("skipped: {} is not there; set HOLDUP_DATA", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).expect("it is JSON"))
}

fn cases(file: &str) -> Vec<serde_json::Value> {
    json(&statements().join(file)).and_then(|all| all["cases"].as_array().cloned()).unwrap_or_default()
}

fn text(sql: &str) -> String {
    digest_text(sql, Dialect::PostgreSql)
}

/// A statement and libpg_query's normalised text of it meet under one digest.
#[test]
fn meets_normalised_texts() {
    let cases = cases("pg_normalize.json");
    for case in &cases {
        let (sql, normalised) = (case["input"].as_str().unwrap(), case["expected"].as_str().unwrap());
        assert_eq!(text(sql), text(normalised), "{sql}");
    }
}

/// What libpg_query tells apart is told apart: one group of ours is never two of its. The other way round it may be, since it
/// parses and sorts (columns of an INSERT, names of aliases).
#[test]
fn tells_apart_what_a_parser_tells_apart() {
    let cases = cases("pg_fingerprints.json");
    let (mut groups, mut theirs) =
        (BTreeMap::<String, BTreeSet<&str>>::new(), BTreeMap::<&str, BTreeSet<String>>::new());
    for case in &cases {
        let (sql, id) = (case["input"].as_str().unwrap(), case["expected"].as_str().unwrap());
        groups.entry(digest(sql, Dialect::PostgreSql)).or_default().insert(id);
        theirs.entry(id).or_default().insert(text(sql));
        assert_eq!(text(&text(sql)), text(sql), "not the same when done twice");
    }
    let merged: Vec<_> = groups.values().filter(|ids| ids.len() > 1).collect();
    let split: Vec<_> = theirs.values().filter(|texts| texts.len() > 1).collect();
    eprintln!("{} cases, {} groups of theirs; merged {merged:?}; split {split:#?}", cases.len(), theirs.len());
    assert!(merged.is_empty());
    assert!(split.len() * 4 <= theirs.len(), "more than a quarter of the groups is split");
}

/// Behind the first quote of each statement a canary is planted, and the text is cut off at every place.
#[test]
fn planted_canaries_do_not_come_out() {
    for file in ["pg_fingerprints.json", "pg_normalize.json"] {
        for case in cases(file) {
            let sql = case["input"].as_str().unwrap();
            let Some(quote) = sql.find('\'').filter(|_| sql.len() < 10_000) else { continue };
            if sql[..quote].contains(['"', '$']) {
                continue;
            }
            let planted = format!("{}CANARY4711{}", &sql[..=quote], &sql[quote + 1..]);
            for end in (0..=planted.len()).filter(|end| planted.is_char_boundary(*end)) {
                let text = text(&planted[..end]);
                assert!(!text.contains("CANARY") && !text.contains("4711"), "{} -> {text}", &planted[..end]);
            }
        }
    }
}

/// A generated log of known shapes: each shape is one digest, simple and prepared alike.
#[test]
fn finds_the_shapes_of_a_generated_log() {
    let generator = statements().join("generate/gen_pglog.py");
    let dir = std::env::temp_dir().join(format!("holdup-sql-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let out = dir.join("pg");
    let made = Command::new("python3")
        .arg("-B")
        .arg(&generator)
        .args(["--bytes", "2e6", "--seed", "11", "--out"])
        .arg(&out)
        .output();
    if !generator.exists() || !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no generator, or no Python to run it");
        return;
    }
    let truth = json(&dir.join("pg.truth.json")).expect("a truth");
    let log = std::fs::read_to_string(dir.join("pg.json")).expect("a log");
    let _ = std::fs::remove_dir_all(&dir);
    let mut found = BTreeMap::<String, (u64, String)>::new();
    for line in log.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let message = entry["message"].as_str().unwrap_or_default();
        let Some((_, rest)) = message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms  ")) else {
            continue;
        };
        let Some((what, sql)) = rest.split_once(": ") else { continue };
        if what == "statement" || what.starts_with("execute") {
            let entry = found.entry(digest(sql, Dialect::PostgreSql)).or_insert_with(|| (0, text(sql)));
            entry.0 += 1;
        }
    }
    let shapes = truth["shapes"].as_object().expect("shapes");
    eprintln!("{} shapes, {} digests", shapes.len(), found.len());
    // Two that differ in the quotes around plain names only are one to the server, and to us.
    let mut one = BTreeMap::<String, u64>::new();
    for shape in shapes.values() {
        *one.entry(shape["tpl"].as_str().unwrap().replace('"', "")).or_default() += shape["n"].as_u64().unwrap();
    }
    let mut true_counts: Vec<u64> = one.into_values().collect();
    let mut counts: Vec<u64> = found.values().map(|(count, _)| *count).collect();
    true_counts.sort_unstable();
    counts.sort_unstable();
    assert_eq!(
        counts,
        true_counts,
        "{:#?}",
        found.values().filter(|(count, _)| *count == 1).take(20).collect::<Vec<_>>()
    );
}

/// Grouped as a parser groups, the groups are libpg_query's: what is one of its is one here, and no two are.
#[test]
fn groups_as_a_parser_does() {
    let (mut ours, mut theirs) =
        (BTreeMap::<String, BTreeSet<String>>::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for case in &cases("pg_fingerprints.json") {
        let (sql, id) = (case["input"].as_str().unwrap(), case["expected"].as_str().unwrap());
        let text = parsed_text(sql);
        ours.entry(text.clone()).or_default().insert(id.to_owned());
        theirs.entry(id.to_owned()).or_default().insert(text);
    }
    let split: Vec<_> = theirs.values().filter(|texts| texts.len() > 1).collect();
    let merged: Vec<_> = ours.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(split.is_empty() && merged.is_empty(), "split {split:#?} merged {merged:#?}");
}

/// What a server runs must be in the digest: behind a carriage return it goes on.
#[test]
fn comments_end_with_any_line_break() {
    let sql = "select a -- why\r from t -- 'x\n where b = 'y'";
    assert_eq!(digest_text(sql, Dialect::PostgreSql), "select a from t where b = ?");
    assert_eq!(digest_text("select a -- why\r from t", Dialect::MySql), "select a");
    let key = |sql: &str| holdup_sql::key(sql.as_bytes(), Dialect::PostgreSql);
    assert_ne!(key("select a -- x\r from t"), key("select a -- x\r from u"));
    assert_eq!(key("select a -- x\r from t"), key("select a -- yz\r from t"));
}
