//! The exam on traces: labelled faults and healthy stretches of a system of ten services, drawn by seed, imported
//! as files of each format and judged end to end. `HOLDUP_TRACE_SEEDS=1001-1060` takes other seeds than the few of
//! every day; rules are made on 1-30 and never on those.

mod cases;
mod draw;
mod formats;
mod run;
mod system;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use self::cases::{Shown, fault, healthy};
use self::run::Run;
use self::system::{Plan, System};

/// Faults of every day, and as many healthy stretches.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=6;

/// Share (0-1) of the faults shown by spans whose service has to be named.
const NAMED: f64 = 0.8;

fn seeds() -> std::ops::RangeInclusive<u64> {
    let given = std::env::var("HOLDUP_TRACE_SEEDS").ok();
    let range = given.as_deref().and_then(|text| text.split_once('-'));
    let range = range.and_then(|(from, to)| Some(from.parse().ok()?..=to.parse().ok()?));
    range.unwrap_or(SEEDS)
}

fn holdup(dir: &Path, words: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_holdup")).current_dir(dir).args(words).output().expect("holdup");
    let (out, said) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{words:?}: {out}{said}");
    out.into_owned()
}

/// The verdict on a plan, by an import of its spans, with a request of it.
fn verdict(number: u64, system: &System, run: &Run<'_>) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let (name, text) = formats::file(number, system, &run.spans);
    std::fs::write(dir.path().join(name), text).expect("a file");
    holdup(dir.path(), &["import", name, "-o", "r"]);
    serde_json::from_str(&holdup(dir.path(), &["diagnose", "r", "--json"])).expect("JSON")
}

/// The service that a verdict names.
fn named(verdict: &Value) -> Option<&str> {
    let service = &verdict["findings"][0]["evidence"][0]["labels"]["service"];
    service.as_str().filter(|_| verdict["verdict"] == "found")
}

fn said(number: u64, plan: &Plan, verdict: &Value) -> String {
    format!(
        "{number}: {:?} {:?}: {} {} {:?} {}",
        plan.fault,
        plan.look_alike,
        verdict["verdict"],
        verdict["culprit"],
        named(verdict),
        verdict["symptom"]
    )
}

#[test]
fn the_service_with_the_fault_is_named() {
    let (mut shown, mut right, mut wrong) = (0, 0, Vec::new());
    for number in seeds() {
        let (system, plan) = fault(number);
        let run = Run::play(&system, &plan);
        let of = Shown::of(&run, &plan);
        if !of.is_shown() && !of.is_shown_inside() {
            continue;
        }
        let verdict = verdict(number, &system, &run);
        let label = plan.fault.map(|(service, _)| system.names[service].as_str());
        shown += 1;
        if named(&verdict) == label {
            right += 1;
        } else {
            wrong.push(format!("{} instead of {label:?} ({of:?})", said(number, &plan, &verdict)));
        }
    }
    println!("{right} of {shown} named\n{}", wrong.join("\n"));
    assert!(f64::from(right) >= NAMED * f64::from(shown), "{right} of {shown}: {}", wrong.join("\n"));
}

#[test]
fn nothing_is_accused_while_all_is_well() {
    let (mut all, mut accused) = (0, Vec::new());
    for number in seeds().take(20) {
        let (system, plan) = healthy(number);
        let verdict = verdict(number, &system, &Run::play(&system, &plan));
        all += 1;
        if verdict["verdict"] == "found" {
            accused.push(said(number, &plan, &verdict));
        }
    }
    println!("{} of {all} accused", accused.len());
    assert!(accused.is_empty(), "{}", accused.join("\n"));
}

#[test]
fn one_request_of_an_import_is_a_waterfall() {
    let (system, plan) = fault(5);
    let run = Run::play(&system, &plan);
    let dir = tempfile::tempdir().expect("a directory");
    let (name, text) = formats::file(0, &system, &run.spans);
    std::fs::write(dir.path().join(name), text).expect("a file");
    holdup(dir.path(), &["import", name, "-o", "r"]);
    let trace = run.spans.iter().find(|span| span.parent == 0).expect("a root");
    let id = format!("{:032x}", trace.trace);
    let text = holdup(dir.path(), &["diagnose", "r", "--request", &id]);
    let spans = run.spans.iter().filter(|span| span.trace == trace.trace).count();
    assert_eq!(text.lines().count(), spans + 1, "{text}");
    assert!(text.lines().nth(1).is_some_and(|line| line.contains(&format!("frontend: {}", trace.name))), "{text}");
}
