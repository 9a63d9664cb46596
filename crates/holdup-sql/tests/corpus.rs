//! The digest beside what others make of statements that nobody here wrote. Needs the shared data folder: from
//! `HOLDUP_DATA`, else beside the project; without it the tests say so and pass.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use holdup_sql::{Dialect, digest, digest_text, pt_fingerprint};

fn cases(file: &str) -> Option<Vec<serde_json::Value>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let data = std::env::var_os("HOLDUP_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let path = data.join("statements").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is not there; set HOLDUP_DATA", path.display());
        return None;
    };
    let all: serde_json::Value = serde_json::from_str(&text).expect("the corpus is JSON");
    all["cases"].as_array().cloned()
}

fn field<'a>(case: &'a serde_json::Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_default()
}

/// A statement and MariaDB's own digest text of it must meet under one digest, and grouping must be MariaDB's or coarser.
#[test]
fn meets_mariadb_s_digest_text() {
    let Some(cases) = cases("mariadb_digest.json") else { return };
    let (mut apart, mut split) = (Vec::new(), BTreeMap::<&str, BTreeSet<String>>::new());
    for case in &cases {
        let (sql, server) = (field(case, "input"), field(case, "digest_text"));
        let ours = digest(sql, Dialect::MySql);
        if ours != digest(server, Dialect::MySql) {
            apart.push(format!(
                "{}\n  {}\n  {}",
                field(case, "id"),
                digest_text(sql, Dialect::MySql),
                digest_text(server, Dialect::MySql)
            ));
        }
        split.entry(field(case, "digest")).or_default().insert(ours);
    }
    let split: Vec<_> = split.iter().filter(|(_, ours)| ours.len() > 1).collect();
    eprintln!("{} of {} apart, {} groups split", apart.len(), cases.len(), split.len());
    eprintln!("{}", apart.join("\n"));
    assert!(apart.len() * 100 <= cases.len() * 2, "more than 2 % apart");
    assert!(split.is_empty(), "{split:?}");
}

/// Whatever stood in quotes in a statement, a canary there does not come out.
#[test]
fn planted_canaries_do_not_come_out() {
    for file in ["mariadb_digest.json", "fingerprints.json", "gomysql_fingerprints.json"] {
        for case in cases(file).unwrap_or_default() {
            let sql = field(&case, "input");
            // Behind the first quote: inside a literal or a comment, unless that quote stands in a name.
            let Some(quote) = sql.find('\'') else { continue };
            if sql[..quote].contains(['`', '\\']) {
                continue;
            }
            let planted = format!("{}CANARY4711{}", &sql[..=quote], &sql[quote + 1..]);
            let text = digest_text(&planted, Dialect::MySql);
            assert!(!text.contains("CANARY") && !text.contains("4711"), "{planted} -> {text}");
        }
    }
}

/// Statement and fingerprint as pt-query-digest has it: all of them.
#[test]
fn makes_the_fingerprints_of_pt_query_digest() {
    let Some(all) = cases("fingerprints.json") else { return };
    let mut wrong = Vec::new();
    for case in &all {
        // Options of the tool that holdup has not.
        if ["match_md5_checksums", "match_embedded_numbers"].iter().any(|name| case["options"][name] == "1") {
            continue;
        }
        // One is a file of statements, with what ends them.
        let sql = field(case, "input");
        let ours = pt_fingerprint(sql.strip_suffix(";\n").unwrap_or(sql).as_bytes());
        if ours != field(case, "expected") {
            wrong.push(format!(
                "{}\n  {}\n  {ours}\n  {}",
                field(case, "id"),
                field(case, "input"),
                field(case, "expected")
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// What statements do and touch, in pt-query-digest's words: what is theirs in at least 95 of 100, with what isn't by name.
#[test]
fn says_what_statements_do_as_percona_toolkit_does() {
    use holdup_sql::rewrite::{distill, tables};
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let data = std::env::var_os("HOLDUP_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(data.join("statements/query_rewrites.json")) else {
        eprintln!("skipped: no shared data; set HOLDUP_DATA");
        return;
    };
    let all: serde_json::Value = serde_json::from_str(&text).expect("the corpus is JSON");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, cases) in all["cases"].as_object().unwrap() {
        for case in cases.as_array().unwrap() {
            let sql = field(case, "input");
            let ours = match name.as_str() {
                "distill" => serde_json::Value::from(distill(sql)),
                "get_tables" => tables(sql).into(),
                _ => continue,
            };
            count += 1;
            if ours != case["expected"] {
                wrong.push(format!("{}\n  {}\n  ours   {ours}\n  theirs {}", field(case, "id"), sql, case["expected"]));
            }
        }
    }
    eprintln!("{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 226 && wrong.len() * 20 <= count, "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
