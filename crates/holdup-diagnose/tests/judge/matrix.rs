//! Every rule over every fixture: short recordings cut from real labs (`fixtures/`). Each is diagnosed once, for all that is
//! asked of a verdict.
//!
//! `fixtures/verdicts.txt` is the whole matrix in one file, so that a changed rule shows all its side effects
//! in one diff. To accept a change: `HOLDUP_ACCEPT=1 cargo xtask test -p holdup-diagnose fixtures_are_judged`.

mod owned;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use holdup_diagnose::causes::Outcome;
use holdup_diagnose::verdict::{Answer, Diagnosis, Finding, NAMED, Role};
use holdup_diagnose::{Case, Cause, diagnose};
use holdup_recording::Recording;
use holdup_recording::rows::Thread;
use owned::owned;

use crate::fixtures::{self, Fixture, Truth, side_by_side};
use crate::known_wrong;

fn word(case: &Case<'_>, cause: &str) -> &'static str {
    match cause.parse::<Cause>().unwrap().judge(case) {
        Ok(Outcome::Found(_) | Outcome::Fails(..)) => "Found",
        Ok(Outcome::Cleared(_)) => "Cleared",
        Ok(Outcome::Uncounted(..)) => "Uncounted",
        Err(_) => "NotJudged",
    }
}

/// A fixture, its verdict, and each rule's word on it.
struct Judged {
    fixture: &'static Fixture,
    diagnosis: Diagnosis,
    words: Vec<(&'static str, &'static str)>,
}

fn judged(fixture: &&'static Fixture) -> Judged {
    let diagnosis = diagnose(&fixture.recording, None);
    let case = Case::new(&fixture.recording, None);
    let words = Cause::ALL.iter().map(|cause| (cause.slug(), word(&case, cause.slug()))).collect();
    Judged { fixture, diagnosis, words }
}

/// What is wrong with the verdicts on all fixtures.
type Check = fn(&[Judged]) -> Vec<String>;

const CHECKS: &[(&str, Check)] = &[
    ("verdicts are as accepted", as_accepted),
    ("verdicts are what is so", what_is_so),
    ("every piece of evidence resolves", evidence_resolves),
    ("chains end in a root", chains_end_in_a_root),
    ("ledgers close", ledgers_close),
    ("the time of the slowest requests has an owner", slowest_are_owned),
];

#[test]
fn fixtures_are_judged_as_they_should_be() {
    let fixtures: Vec<&'static Fixture> = fixtures::all().iter().collect();
    let judged = side_by_side(&fixtures, judged);
    let mut wrong = String::new();
    for (name, check) in CHECKS {
        for problem in check(&judged) {
            let _ = writeln!(wrong, "{name}: {problem}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn as_accepted(all: &[Judged]) -> Vec<String> {
    let mut matrix = String::new();
    for Judged { fixture, diagnosis, words } in all {
        let next = diagnosis.next.as_ref().map_or("-", |n| n.cause.slug());
        let culprit = diagnosis.culprit.map(Cause::slug).unwrap_or("-");
        let _ = writeln!(matrix, "{}: {:?} {culprit}, next {next}", fixture.name, diagnosis.verdict);
        for finding in &diagnosis.findings {
            let from = finding.follows_from.as_ref().map_or_else(String::new, |cause| format!(" <- {cause}"));
            let to = finding.adds_to.as_ref().map_or_else(String::new, |cause| format!(" -> {cause}"));
            let _ = writeln!(matrix, "  {:?} {}{from}{to}", finding.role, finding.cause);
        }
        for (cause, word) in words {
            let _ = writeln!(matrix, "    {cause:<28}{word}");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/verdicts.txt");
    if std::env::var_os("HOLDUP_ACCEPT").is_some() {
        std::fs::write(&path, &matrix).unwrap();
    }
    let accepted = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = matrix.lines().zip(accepted.lines()).enumerate().filter(|(_, (now, before))| now != before);
    let mut problems: Vec<String> =
        lines.map(|(n, (now, before))| format!("verdicts.txt:{}: \"{before}\" is now \"{now}\"", n + 1)).collect();
    if matrix.lines().count() != accepted.lines().count() {
        problems.push("verdicts.txt has another number of lines".to_owned());
    }
    problems
}

/// The likeliest cause of a fault, named or not; none of several that tie.
fn likeliest(diagnosis: &Diagnosis) -> Option<&'static str> {
    let is_alone = |finding: &&Finding| diagnosis.is_named() || finding.confidence < NAMED;
    diagnosis.likeliest().filter(is_alone).map(|finding| finding.cause.slug())
}

/// What each lab expects of its variants is what is said of the recordings that were cut from them.
fn what_is_so(all: &[Judged]) -> Vec<String> {
    let wrong = all.iter().filter(|Judged { fixture, diagnosis, .. }| match &fixture.truth {
        // The likeliest is right, also where too little is sure to name it.
        Truth::Broken(expected) => likeliest(diagnosis) != Some(expected.as_str()),
        Truth::Healthy => diagnosis.verdict != Answer::Healthy,
        Truth::Unknown => diagnosis.verdict != Answer::Undecided,
    });
    let what = |j: &Judged| likeliest(&j.diagnosis).map_or_else(|| format!("{:?}", j.diagnosis.verdict), str::to_owned);
    known_wrong::changed("verdict", wrong.map(|j| (j.fixture.name.clone(), what(j))))
}

fn evidence_resolves(all: &[Judged]) -> Vec<String> {
    let mut problems = Vec::new();
    for Judged { fixture, diagnosis, .. } in all {
        let (name, recording) = (&fixture.name, &fixture.recording);
        let found = diagnosis.findings.iter().chain(&diagnosis.next).flat_map(|f| &f.evidence);
        let all: Vec<_> = found.chain(diagnosis.cleared.iter().flat_map(|c| &c.evidence)).collect();
        let nowhere = all.iter().filter(|evidence| !evidence.resolves(recording));
        problems.extend(nowhere.map(|evidence| format!("{name}: {evidence:?} points nowhere")));
        if all.len() <= 5 {
            problems.push(format!("{name}: only {} pieces of evidence", all.len()));
        }
    }
    problems
}

/// Followed upwards, every symptom comes from a root or a contributor that was found, too; and what is next is none of them.
fn chains_end_in_a_root(all: &[Judged]) -> Vec<String> {
    let (mut problems, mut symptoms) = (Vec::new(), 0);
    for Judged { fixture: Fixture { name, .. }, diagnosis, .. } in all {
        for finding in &diagnosis.findings {
            let mut at = finding;
            for _ in 0..diagnosis.findings.len() {
                let Some(cause) = &at.follows_from else { break };
                if at.role != Role::Symptom {
                    problems.push(format!("{name}: {} follows from {cause} and is no symptom", at.cause));
                }
                let Some(above) = diagnosis.findings.iter().find(|f| f.cause == *cause) else {
                    problems.push(format!("{name}: {} follows from {cause}, which was not found", at.cause));
                    break;
                };
                at = above;
                symptoms += 1;
            }
            if at.follows_from.is_some() {
                problems.push(format!("{name}: {} runs in a circle", finding.cause));
            }
        }
        if let Some(next) = &diagnosis.next {
            let is_found = diagnosis.findings.iter().any(|f| f.cause == next.cause);
            if next.role != Role::Next || is_found || diagnosis.verdict == Answer::Undecided {
                problems.push(format!("{name}: next is {} as {:?}, {:?}", next.cause, next.role, diagnosis.verdict));
            }
        }
    }
    if symptoms == 0 {
        problems.push("no fixture has a symptom".to_owned());
    }
    problems
}

/// Of response time this share (0-1) may have no owner.
const RESIDUAL: f64 = 0.15;

fn ledgers_close(all: &[Judged]) -> Vec<String> {
    let (mut problems, mut unowned) = (Vec::new(), Vec::new());
    for Judged { fixture, diagnosis, .. } in all.iter().filter(|j| j.diagnosis.culprit.is_some()) {
        // The app and its database know only of requests that were not given up or refused.
        let failed: u64 = diagnosis.load.operations.iter().map(|o| o.errors).sum();
        let Some(all) = diagnosis.ledger.iter().find(|row| row.band == "all") else {
            problems.push(format!("{}: no ledger of all requests", fixture.name));
            continue;
        };
        let residual = all.residual_ms.abs() / all.response_ms;
        if failed * 20 <= all.requests && residual >= RESIDUAL {
            println!("{}: {:.0} % of response time has no owner", fixture.name, residual * 100.0);
            unowned.push((fixture.name.clone(), "unowned".to_owned()));
        }
    }
    problems.extend(known_wrong::changed("ledger", unowned));
    problems
}

/// Of the slowest hundredth of requests this share (0-1) of their time has an owner …
const OWNED: f64 = 0.95;

/// … in this share (0-1) of the recordings.
const OF_RECORDINGS: f64 = 0.9;

/// A recording in which less has an owner has to be known.
const MOST: f64 = 0.5;

fn slowest_are_owned(all: &[Judged]) -> Vec<String> {
    let share = |j: &Judged| (owned(&j.diagnosis, &j.fixture.recording).unwrap_or(0.0), j.fixture.name.as_str());
    let (without, with): (Vec<_>, Vec<_>) = all.iter().map(share).partition(|(share, _)| *share < MOST);
    let unowned = without.iter().map(|(_, name)| ((*name).to_owned(), "unowned".to_owned()));
    let mut problems = known_wrong::changed("slowest", unowned);
    let short: Vec<_> = with.iter().filter(|(share, _)| *share < OWNED).collect();
    if short.len() as f64 > (1.0 - OF_RECORDINGS) * with.len() as f64 {
        problems.push(format!("{} of {}: {short:?}", short.len(), with.len()));
    }
    problems
}

/// Where holdup only watched, the database's sessions stand for requests: the same culprit, and evidence that still resolves.
#[test]
fn culprits_are_named_without_request_rows() {
    let hidden = fixtures::all().iter().filter(|fixture| fixture.name.starts_with("hidden-queue"));
    for Fixture { name, recording, .. } in hidden {
        let culprit = diagnose(recording, None).culprit;
        let mut watched = recording.clone();
        watched.tables.requests.rows.clear();
        watched.manifest.load = None;
        watched.tables.samples.rows.retain(|s| !s.source.starts_with("prometheus:"));
        let diagnosis = diagnose(&watched, None);
        assert_eq!(diagnosis.culprit, culprit, "{name}, watched by its database alone");
        for evidence in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
            assert!(evidence.resolves(&watched), "{name}: {evidence:?} points nowhere");
        }
    }
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

/// Recordings in which a rule loses one of its metrics: more of them judge the same lines of it again, for a minute.
const RECORDINGS_OF_A_LOSS: usize = 1;

/// A rule whose facts are taken away must not turn a culprit into a cleared suspect. A metric that no source names, with the end
/// that histograms have or without, is nobody's fact.
#[test]
fn a_rule_without_its_metric_never_clears_what_it_found() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    // What is known to be wrong is looked at wherever it was seen.
    let is_known = |fixture: &&Fixture| known_wrong::has("metric", &fixture.name);
    let (known, mut others): (Vec<&Fixture>, Vec<&Fixture>) = fixtures::all().iter().partition(is_known);
    // The smallest first: what is lost is lost in all alike, and a large one takes twenty times as long to judge.
    others.sort_by_key(|fixture| fixture.recording.tables.requests.rows.len());
    let fixtures = [known, others].concat();
    let found = side_by_side(&fixtures, |fixture| causes_and_metrics(fixture, &sources));
    let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut losses: Vec<(&Fixture, BTreeMap<String, Vec<&str>>)> = Vec::new();
    for (fixture, (causes, metrics)) in fixtures.iter().zip(&found) {
        let mut of_fixture: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (cause, metric) in causes.iter().flat_map(|cause| metrics.iter().map(move |metric| (*cause, metric))) {
            let count = seen.entry((cause, metric.clone())).or_default();
            *count += 1;
            if *count <= RECORDINGS_OF_A_LOSS || known_wrong::has("metric", &fixture.name) {
                of_fixture.entry(metric.clone()).or_default().push(cause);
            }
        }
        losses.push((fixture, of_fixture));
    }
    let cleared = side_by_side(&losses, |(fixture, losses)| cleared_without_a_metric(fixture, losses)).concat();
    let wrong = known_wrong::changed("metric", cleared);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The causes that are found, and the metrics that some source of the judge names.
fn causes_and_metrics(fixture: &Fixture, sources: &str) -> (Vec<&'static str>, BTreeSet<String>) {
    let Fixture { name, recording, .. } = fixture;
    let mut metrics: BTreeSet<String> = recording.tables.samples.rows.iter().map(|s| s.metric.clone()).collect();
    let all = metrics.len();
    metrics.retain(|m| sources.contains(m.trim_end_matches("_sum").trim_end_matches("_count")));
    assert!(metrics.len() * 20 > all, "{name}: only {} of {all} metrics are named anywhere", metrics.len());
    let whole = Case::new(recording, None);
    let found = Cause::ALL.iter().map(|cause| cause.slug()).filter(|c| word(&whole, c) == "Found").collect();
    (found, metrics)
}

/// The causes that are found and would be called cleared without one of these metrics, which is printed.
fn cleared_without_a_metric(fixture: &Fixture, losses: &BTreeMap<String, Vec<&str>>) -> Vec<(String, String)> {
    let Fixture { name, recording, .. } = fixture;
    let mut cleared = Vec::new();
    if losses.is_empty() {
        return cleared;
    }
    // As it is read to be judged: what rows say is put in order once, not for each metric.
    let mut less = recording.clone();
    less.tables.condensed = Some(Arc::new(less.tables.condense()));
    less.tables.samples.rows.clear();
    for (metric, found) in losses {
        let series = &mut Arc::get_mut(less.tables.condensed.as_mut().unwrap()).unwrap().series.by_metric;
        let gone = series.remove(metric.as_str()).unwrap();
        let case = Case::new(&less, None);
        for cause in found.iter().filter(|cause| word(&case, cause) == "Cleared") {
            println!("{name}: {cause} without {metric}");
            cleared.push((name.clone(), (*cause).to_owned()));
        }
        drop(case);
        let series = &mut Arc::get_mut(less.tables.condensed.as_mut().unwrap()).unwrap().series.by_metric;
        series.insert(metric.clone(), gone);
    }
    cleared
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
        assert_eq!(diagnosis.culprit.map(Cause::slug), Some("on_disk_temporary_tables"), "without {what}");
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

/// The names of columns of `table` that are missing.
fn missing_of<'r>(recording: &'r mut Recording, table: &str) -> &'r mut Vec<&'static str> {
    let tables = &mut recording.tables;
    match table {
        "requests" => &mut tables.requests.missing,
        "samples" => &mut tables.samples.missing,
        "sessions" => &mut tables.sessions.missing,
        "settings" => &mut tables.settings.missing,
        "threads" => &mut tables.threads.missing,
        "statements" => &mut tables.statements.missing,
        _ => panic!("{table} is not taken from"),
    }
}

/// Each rule that judges `fixture`: its word on the whole, and without each of [`COLUMNS`].
fn words_without_columns(fixture: &Fixture) -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    // As it is read to be judged: what rows say is put in order once, not for each column.
    let mut less = fixture.recording.clone();
    less.tables.condensed = Some(Arc::new(less.tables.condense()));
    let whole = Case::new(&less, None);
    let words = Cause::ALL.iter().map(|cause| (cause.slug(), word(&whole, cause.slug()), Vec::new()));
    let mut judged: Vec<_> = words.filter(|(_, word, _)| *word != "NotJudged").collect();
    drop(whole);
    for (table, column) in COLUMNS {
        missing_of(&mut less, table).push(column);
        let case = Case::new(&less, None);
        judged.iter_mut().for_each(|(cause, _, words)| words.push(word(&case, cause)));
        drop(case);
        missing_of(&mut less, table).pop();
    }
    judged
}

/// Metrics that a rule goes by and that a recording need not have, by how their names begin.
const OWN_FIGURES: [(&str, &str); 14] = [
    ("search_rejections", "elasticsearch_"),
    ("pipeline_stage_lag", "kafka_"),
    ("cache_misses", "redis_"),
    ("slow_command", "redis_"),
    ("persistence_pause", "redis_"),
    ("output_buffer_limit", "redis_"),
    // By events of the kernel's log, and by spans.
    ("disk_errors", "kernel_"),
    ("service_fails", "spans_"),
    ("replica_lag", "mysql_replica_lag"),
    ("replication_slot_keeps_log", "postgresql_replication_slot"),
    ("runtime_pause", "jvm_gc_"),
    ("network_limit", "system_network_softnet_"),
    ("tickets_exhausted", "mongodb_"),
    ("replication_wait", "mongodb_"),
];

fn has_metric(fixture: &Fixture, start: &str) -> bool {
    fixture.recording.tables.samples.rows.iter().any(|row| row.metric.starts_with(start))
}

/// Each rule of all has a column without which it is `NotJudged` where it was found or cleared (which one depends on the servers that were
/// watched); and whichever is gone, none that was found is cleared.
#[test]
fn every_rule_without_a_column_it_needs_is_not_judged() {
    let fixtures: Vec<&Fixture> = fixtures::all().iter().collect();
    let per_fixture = side_by_side(&fixtures, |fixture| words_without_columns(fixture));
    // By rule: the columns that it needed anywhere, and in how many fixtures it was judged.
    let mut needs: BTreeMap<&str, (BTreeSet<&Column>, usize)> =
        Cause::ALL.iter().map(|cause| (cause.slug(), (BTreeSet::new(), 0))).collect();
    let mut cleared = Vec::new();
    for (Fixture { name, .. }, words) in fixtures.iter().zip(&per_fixture) {
        for (cause, was, now) in words {
            let (columns, judged) = needs.get_mut(cause).unwrap();
            *judged += 1;
            for (column @ (table, name_of), now) in COLUMNS.iter().zip(now) {
                // Without the client's requests there is another delay to explain, or none.
                if *was == "Found" && *now == "Cleared" && *table != "requests" {
                    println!("{name}: {cause} without {table}.{name_of}");
                    cleared.push((name.clone(), (*cause).to_owned()));
                }
                if *now == "NotJudged" {
                    columns.insert(column);
                }
            }
        }
    }
    let wrong = known_wrong::changed("column", cleared);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (cause, (columns, judged)) in &needs {
        println!("{cause}: judged in {judged}, needs {columns:?}");
    }
    let none: Vec<&str> =
        needs.iter().filter(|(_, (columns, n))| *n > 0 && columns.is_empty()).map(|(c, _)| *c).collect();
    assert!(none.is_empty(), "can do without any column: {none:?}");
    // A rule whose own figures no fixture has: its own tests take its facts away.
    let has_fixture = |cause: &str| {
        let own = OWN_FIGURES.iter().filter(|(of, _)| *of == cause).map(|(_, metric)| metric);
        own.clone().count() == 0 || own.into_iter().any(|metric| fixtures.iter().any(|of| has_metric(of, metric)))
    };
    let unjudged: Vec<&str> =
        needs.iter().filter(|(cause, (_, n))| *n == 0 && has_fixture(cause)).map(|(cause, _)| *cause).collect();
    assert!(unjudged.is_empty(), "judged in no fixture: {unjudged:?}");
}
