//! Every rule over every fixture: short recordings cut from real labs (`fixtures/`).
//!
//! `fixtures/verdicts.txt` is the whole matrix in one file, so that a changed rule shows all its side effects
//! in one diff. To accept a change: `HOLDUP_ACCEPT=1 cargo test -p holdup-diagnose --test matrix`.

mod fixtures;

#[path = "matrix/owned.rs"]
mod owned;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use fixtures::{Fixture, Truth};
use holdup_diagnose::rules::{self, Outcome};
use holdup_diagnose::verdict::{Answer, Role};
use holdup_diagnose::{Case, diagnose};
use holdup_recording::Recording;
use holdup_recording::condensed::Condensed;
use holdup_recording::rows::Thread;
use owned::owned;

fn word(case: &Case<'_>, cause: &str) -> &'static str {
    match (rules::by_cause(cause).unwrap().judge)(case) {
        Ok(Outcome::Found(_) | Outcome::Fails(..)) => "Found",
        Ok(Outcome::Cleared(_)) => "Cleared",
        Err(_) => "NotJudged",
    }
}

#[test]
fn verdicts_are_as_accepted() {
    let mut matrix = String::new();
    for Fixture { name, recording, .. } in fixtures::all() {
        let diagnosis = diagnose(recording, None);
        let next = diagnosis.next.as_ref().map_or("-", |n| n.cause.as_str());
        let culprit = diagnosis.culprit.as_deref().unwrap_or("-");
        let _ = writeln!(matrix, "{name}: {:?} {culprit}, next {next}", diagnosis.verdict);
        for finding in &diagnosis.findings {
            let from = finding.follows_from.as_ref().map_or_else(String::new, |cause| format!(" <- {cause}"));
            let to = finding.adds_to.as_ref().map_or_else(String::new, |cause| format!(" -> {cause}"));
            let _ = writeln!(matrix, "  {:?} {}{from}{to}", finding.role, finding.cause);
        }
        let case = Case::new(recording, None);
        for rule in rules::ALL {
            let _ = writeln!(matrix, "    {:<28}{}", rule.cause, word(&case, rule.cause));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/verdicts.txt");
    if std::env::var_os("HOLDUP_ACCEPT").is_some() {
        std::fs::write(&path, &matrix).unwrap();
    }
    let accepted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(matrix, accepted, "the matrix differs from fixtures/verdicts.txt");
}

/// What each lab expects of its variants is what is said of the recordings that were cut from them.
#[test]
fn verdicts_are_what_is_so() {
    for Fixture { name, recording, truth } in fixtures::all() {
        let diagnosis = diagnose(recording, None);
        match truth {
            Truth::Broken(expected) => {
                assert!(
                    diagnosis.culprit.as_ref().is_some_and(|c| expected.contains(c)),
                    "{name}: {:?}",
                    diagnosis.culprit
                );
            }
            Truth::Healthy => assert_eq!(diagnosis.verdict, Answer::Healthy, "{name}: {}", diagnosis.headline),
            Truth::Unknown => assert_eq!(diagnosis.verdict, Answer::Undecided, "{name}: {}", diagnosis.headline),
        }
    }
}

#[test]
fn every_piece_of_evidence_resolves() {
    for Fixture { name, recording, .. } in fixtures::all() {
        let diagnosis = diagnose(recording, None);
        let found = diagnosis.findings.iter().flat_map(|f| &f.evidence);
        let mut count = 0;
        for evidence in found.chain(diagnosis.cleared.iter().flat_map(|c| &c.evidence)) {
            assert!(evidence.resolves(recording), "{name}: {evidence:?} points nowhere");
            count += 1;
        }
        assert!(count > 5, "{name}: only {count} pieces of evidence");
    }
}

/// Followed upwards, every symptom comes from a root or a contributor that was found, too; and what is next is none of them.
#[test]
fn chains_end_in_a_root() {
    let mut symptoms = 0;
    for Fixture { name, recording, .. } in fixtures::all() {
        let diagnosis = diagnose(recording, None);
        for finding in &diagnosis.findings {
            let mut at = finding;
            for _ in 0..diagnosis.findings.len() {
                let Some(cause) = &at.follows_from else { break };
                assert_eq!(at.role, Role::Symptom, "{name}: {}", at.cause);
                at = diagnosis.findings.iter().find(|f| f.cause == *cause).unwrap();
                symptoms += 1;
            }
            assert_eq!(at.follows_from, None, "{name}: {} runs in a circle", finding.cause);
        }
        if let Some(next) = &diagnosis.next {
            assert_eq!(next.role, Role::Next, "{name}");
            assert!(
                diagnosis.findings.iter().all(|f| f.cause != next.cause),
                "{name}: {} is there already",
                next.cause
            );
            assert!(next.evidence.iter().all(|e| e.resolves(recording)), "{name}: {next:?}");
            assert_ne!(diagnosis.verdict, Answer::Undecided, "{name}");
        }
    }
    assert!(symptoms > 0, "no fixture has a symptom");
}

/// Where holdup only watched, the app's metrics stand for requests, and where there is no app the database's
/// sessions do: the same culprit, and evidence that still resolves.
#[test]
fn culprits_are_named_without_request_rows() {
    for Fixture { name, recording, .. } in fixtures::all() {
        let culprit = diagnose(recording, None).culprit;
        let mut watched = recording.clone();
        watched.tables.requests.rows.clear();
        watched.manifest.load = None;
        watched.tables.samples.rows.retain(|s| !s.source.starts_with("prometheus:"));
        if !name.starts_with("hidden-queue") {
            continue;
        }
        let diagnosis = diagnose(&watched, None);
        assert_eq!(diagnosis.culprit, culprit, "{name}, watched by its database alone");
        for evidence in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
            assert!(evidence.resolves(&watched), "{name}: {evidence:?} points nowhere");
        }
    }
}

#[test]
fn ledgers_close_on_faulty_recordings() {
    for Fixture { name, recording, .. } in fixtures::all() {
        let diagnosis = diagnose(recording, None);
        if diagnosis.culprit.is_none() {
            continue;
        }
        // Of requests that were given up or refused nobody books the time: the app and its database know of the others only.
        let failed: u64 = diagnosis.load.operations.iter().map(|o| o.errors).sum();
        let all = diagnosis.ledger.iter().find(|row| row.band == "all").unwrap();
        if failed * 20 > all.requests as u64 {
            continue;
        }
        let residual = all.residual_ms.abs() / all.response_ms;
        assert!(residual < 0.15, "{name}: {:.0} % of response time is nobody's", residual * 100.0);
    }
}

/// Of the slowest hundredth of requests this share (0-1) of their time has an owner …
const OWNED: f64 = 0.95;

/// … in this share (0-1) of the recordings.
const OF_RECORDINGS: f64 = 0.9;

#[test]
fn the_time_of_the_slowest_has_an_owner() {
    let mut shares = Vec::new();
    for Fixture { name, recording, .. } in fixtures::all() {
        let share = owned(&diagnose(recording, None), recording).unwrap_or(0.0);
        println!("{name}: {:.1} %", share * 100.0);
        shares.push((share, name.as_str()));
    }
    let short: Vec<_> = shares.iter().filter(|(share, _)| *share < OWNED).collect();
    assert!(
        short.len() as f64 <= (1.0 - OF_RECORDINGS) * shares.len() as f64,
        "{} of {}: {short:?}",
        short.len(),
        shares.len()
    );
}

/// Every source of this crate, as one text.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        text += &if path.is_dir() { sources(&path) } else { std::fs::read_to_string(&path).unwrap() };
    }
    text
}

/// Matters only for what it adds to the time for which workers are held: a rule that nobody tells of workers any more need not find it.
const OF_WORKERS: (&str, &str) = ("overload-workers", "network_loss");

/// A rule whose facts are taken away must not turn a culprit into a cleared suspect. A metric that no source names, with the end
/// that histograms have or without, is nobody's fact.
#[test]
fn a_rule_without_its_metric_never_clears_what_it_found() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for Fixture { name, recording, .. } in fixtures::all() {
        let mut metrics: BTreeSet<String> = recording.tables.samples.rows.iter().map(|s| s.metric.clone()).collect();
        let all = metrics.len();
        metrics.retain(|m| sources.contains(m.trim_end_matches("_sum").trim_end_matches("_count")));
        assert!(metrics.len() * 20 > all, "{name}: only {} of {all} metrics are named anywhere", metrics.len());
        let whole = Case::new(recording, None);
        let found: Vec<&str> = rules::ALL.iter().map(|r| r.cause).filter(|c| word(&whole, c) == "Found").collect();
        if found.is_empty() {
            continue;
        }
        // As it is read to be judged: what rows say is put in order once, not for each metric.
        let mut less = recording.clone();
        less.tables.condensed = Some(Arc::new(Condensed::of(&less.tables)));
        less.tables.samples.rows.clear();
        for metric in metrics {
            let series = &mut Arc::get_mut(less.tables.condensed.as_mut().unwrap()).unwrap().series.by_metric;
            let gone = series.remove(&metric).unwrap();
            let case = Case::new(&less, None);
            for cause in found.iter().filter(|cause| (name.as_str(), **cause) != OF_WORKERS) {
                assert_ne!(word(&case, cause), "Cleared", "{name}: {cause} without {metric}");
            }
            drop(case);
            let series = &mut Arc::get_mut(less.tables.condensed.as_mut().unwrap()).unwrap().series.by_metric;
            series.insert(metric, gone);
        }
    }
}

/// Where holdup may not see where threads sleep, they still sleep: the same root, or none, and nothing cleared of it.
#[test]
fn temporary_tables_are_told_with_and_without_places() {
    let recording = &fixtures::named("uninterruptible-faulty").recording;
    type Hide = fn(&mut Thread);
    let hidden: [(&str, Hide); 3] = [
        ("files", |t| t.path = None),
        ("files and stacks", |t| (t.path, t.stack) = (None, None)),
        ("places", |t| (t.path, t.stack, t.wchan, t.syscall) = (None, None, None, None)),
    ];
    let mut before = f64::MAX;
    for (what, hide) in hidden {
        let mut less = recording.clone();
        less.tables.threads.rows.iter_mut().for_each(hide);
        let diagnosis = diagnose(&less, None);
        assert_eq!(diagnosis.culprit.as_deref(), Some("on_disk_temporary_tables"), "without {what}");
        let confidence = diagnosis.findings[0].confidence;
        assert!(confidence <= before, "surer without {what}: {confidence}");
        before = confidence;
    }
    for column in ["state", "process", "source"] {
        let mut less = recording.clone();
        less.tables.threads.missing.push(column);
        let case = Case::new(&less, None);
        for cause in ["on_disk_temporary_tables", "uninterruptible_pileup"] {
            assert_eq!(word(&case, cause), "NotJudged", "{cause} without threads.{column}");
        }
    }
}

/// Table and column.
type Column = (&'static str, &'static str);

/// Columns without which rules can't judge, by the rules that need them.
const COLUMNS: &[Column] = &[
    ("requests", "intended_at"),
    ("requests", "sent_at"),
    ("requests", "ready_at"),
    ("samples", "value"),
    ("samples", "metric"),
    ("samples", "labels"),
    ("sessions", "true_state"),
    ("sessions", "command"),
    ("settings", "value"),
    ("threads", "state"),
    ("statements", "duration_ns"),
];

fn without_column(recording: &Recording, table: &str, column: &'static str) -> Recording {
    let mut less = recording.clone();
    let tables = &mut less.tables;
    let missing = match table {
        "requests" => &mut tables.requests.missing,
        "samples" => &mut tables.samples.missing,
        "sessions" => &mut tables.sessions.missing,
        "settings" => &mut tables.settings.missing,
        "threads" => &mut tables.threads.missing,
        "statements" => &mut tables.statements.missing,
        _ => panic!("{table} is not taken from"),
    };
    missing.push(column);
    less
}

/// Each rule of all has a column without which it is `NotJudged` where it was found or cleared (which one depends on the servers that were
/// watched); and whichever is gone, none that was found is cleared.
#[test]
fn every_rule_without_a_column_it_needs_is_not_judged() {
    // By rule: the columns that it needed anywhere, and in how many fixtures it was judged.
    let mut needs: BTreeMap<&str, (BTreeSet<&Column>, usize)> =
        rules::ALL.iter().map(|rule| (rule.cause, (BTreeSet::new(), 0))).collect();
    let mut cleared = Vec::new();
    for Fixture { name, recording, .. } in fixtures::all() {
        let whole = Case::new(recording, None);
        let judged: Vec<(&str, &str)> =
            rules::ALL.iter().map(|r| (r.cause, word(&whole, r.cause))).filter(|(_, w)| *w != "NotJudged").collect();
        for (cause, _) in &judged {
            needs.get_mut(cause).unwrap().1 += 1;
        }
        for column @ (table, name_of) in COLUMNS {
            let less = without_column(recording, table, name_of);
            let case = Case::new(&less, None);
            for (cause, was) in &judged {
                let now = word(&case, cause);
                // Without the client's requests there is another delay to explain, or none.
                if *was == "Found" && now == "Cleared" && *table != "requests" {
                    cleared.push(format!("{name}: {cause} without {table}.{name_of}"));
                }
                if now == "NotJudged" {
                    needs.get_mut(cause).unwrap().0.insert(column);
                }
            }
        }
    }
    assert!(cleared.is_empty(), "{}", cleared.join("\n"));
    for (cause, (columns, judged)) in &needs {
        println!("{cause}: judged in {judged}, needs {columns:?}");
    }
    let none: Vec<&str> =
        needs.iter().filter(|(_, (columns, n))| *n > 0 && columns.is_empty()).map(|(c, _)| *c).collect();
    assert!(none.is_empty(), "can do without any column: {none:?}");
    let unjudged: Vec<&str> = needs.iter().filter(|(_, (_, n))| *n == 0).map(|(cause, _)| *cause).collect();
    assert!(unjudged.is_empty(), "judged in no fixture: {unjudged:?}");
}
