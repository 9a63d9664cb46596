//! Rivals: causes that the recording cannot tell apart, and the one measurement that could. Two
//! findings that each make up most of the same time, without a known link between them, can't both
//! be right. A rule that could win the verdict and lacks its facts is a rival, too. The verdict
//! names them (`split`) with the loss of confidence; `holdup doctor --for-verdict` takes the
//! measurement.

use crate::cause::Cause;
use std::collections::BTreeMap;

use crate::between::UnsplitTime;
use crate::causes::Trait;
use crate::ledger::{LedgerRow, OF_CLIENT, WHOLE_BAND};
use crate::verdict::{Finding, NotJudged, Role, SplitReport};

/// A cause that explains this share (0-1) of the root's time can compete with it: sampling errs by
/// as much.
pub(crate) const WITHIN: f64 = 0.8;

/// Each cause that may lead to the root and could not be judged takes this much from the
/// confidence, …
const UPSTREAM_PENALTY: f64 = 0.03;

/// … all together at most this: the more such causes there are, the fewer apply to the servers
/// present.
const UPSTREAM_MOST: f64 = 0.15;

/// A culprit of this confidence needs no further measurement.
const SURE: f64 = 0.75;

/// Most rivals to name.
const NAMED: usize = 4;

/// From this share (0-1) of the time with the service, a part of the ledger is where to look.
const MOST: f64 = 0.5;

/// What to record to measure response time.
const RESPONSE_TIME: &str = "--watch prometheus:http://APP/metrics";

/// The finding that competes for the time of `root`, if any: not its consequence, not a
/// contributor, and large enough.
pub(crate) fn find_rival<'f>(root: &Finding, findings: &'f [Finding], claims: &[Cause]) -> Option<&'f Finding> {
    if root.cause.is(Trait::Outside) {
        return None;
    }
    let is_rival = |f: &&Finding| {
        f.cause != root.cause
            && f.role == Role::Contributor
            && f.adds_to.is_none()
            && claims.contains(&f.cause)
            && !f.cause.is(Trait::Outside)
            && f.explains_ratio >= 0.5
            && f.explains_ms >= WITHIN * root.explains_ms
    };
    findings.iter().filter(is_rival).max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

/// Says that two causes are equally likely.
pub(crate) fn tied(root: &Finding, rival: &Finding) -> String {
    let of = |f: &Finding| format!("{} ({} of the delay)", f.cause, holdup_recording::words::percent(f.explains_ratio));
    format!("Either {} or {}: both can't be right, and the recording does not show which.", of(root), of(rival))
}

/// Confidence (0-1) in the root if `rival` can't be excluded: in proportion to the evidence for
/// each.
pub(crate) fn shared(root: f64, rival: f64) -> f64 {
    if root + rival > 0.0 { root * root / (root + rival) } else { root }
}

/// What the unjudged causes that may lead to `cause` take from the confidence in it.
pub(crate) fn upstream_penalty(cause: Cause, not_judged: &[NotJudged]) -> f64 {
    (upstream(cause, not_judged).len() as f64 * UPSTREAM_PENALTY).min(UPSTREAM_MOST)
}

/// Unjudged causes that may lead to `cause`, nearest first.
fn upstream(cause: Cause, not_judged: &[NotJudged]) -> Vec<&NotJudged> {
    cause.may_follow_from().into_iter().filter_map(|of| not_judged.iter().find(|n| n.cause == of)).collect()
}

/// The measurement that tells two findings apart: on what may lead to either, else the fix of one
/// alone.
pub(crate) fn of_two(root: &Finding, rival: &Finding, not_judged: &[NotJudged]) -> SplitReport {
    let rivals = vec![root.cause, rival.cause];
    let open: Vec<&NotJudged> = [root, rival].iter().flat_map(|f| upstream(f.cause, not_judged)).collect();
    if let Some(mut split) = by_source(&open) {
        split.rivals = rivals;
        return split;
    }
    let fix = root.fixes.first();
    let what = fix.map_or_else(|| root.prove.clone(), |fix| fix.text.clone());
    SplitReport {
        rivals,
        measure: format!("the same load after one change alone: {what}"),
        command: fix.and_then(|fix| fix.command.clone()),
        watch: None,
    }
}

/// The measurement that would make an uncertain culprit more certain: on what may lead to it.
pub(crate) fn of_root(root: &Finding, not_judged: &[NotJudged]) -> Option<SplitReport> {
    let mut split = by_source(&upstream(root.cause, not_judged)).filter(|_| root.confidence < SURE)?;
    split.rivals.insert(0, root.cause);
    split.rivals.truncate(NAMED);
    Some(split)
}

/// The measurement that would name a culprit if there is none: on the time between two sources,
/// else with the source that most causes lack, among those where the ledger shows the time.
pub(crate) fn of_none(
    between: Option<&UnsplitTime>,
    ledger: &[LedgerRow],
    findings: &[Finding],
    not_judged: &[NotJudged],
) -> Option<SplitReport> {
    if let Some(between) = between {
        return Some(SplitReport {
            rivals: between.rivals.to_vec(),
            measure: between.measure.to_owned(),
            command: Some(command(between.watch)),
            watch: Some(between.watch.to_owned()),
        });
    }
    let in_app = not_judged.iter().filter(|n| n.cause.is(Trait::Pool) && is_in_app(ledger));
    let in_app = by_source(&in_app.collect::<Vec<_>>());
    let mut split = in_app.or_else(|| by_source(&not_judged.iter().collect::<Vec<_>>()))?;
    let best = findings.iter().find(|f| f.role == Role::Root).map(|f| f.cause);
    split.rivals.splice(0..0, best);
    split.rivals.truncate(NAMED);
    Some(split)
}

/// Whether the slowest operation's requests spent most of their service time in the app itself, not
/// in services that it called.
fn is_in_app(ledger: &[LedgerRow]) -> bool {
    let rows = ledger.iter().filter(|row| row.band == WHOLE_BAND);
    let slowest = rows.max_by(|a, b| a.response_ms.total_cmp(&b.response_ms));
    slowest.is_some_and(|row| {
        let of = |names: &[&str]| -> f64 {
            row.parts.iter().filter(|p| names.contains(&p.part.as_str())).map(|p| p.ms).sum()
        };
        of(&["app_queue", "app_other"]) >= MOST * (row.response_ms - of(&OF_CLIENT))
    })
}

/// If only a part of the service was timed, such as its database, and it is well.
pub(crate) fn of_a_part() -> SplitReport {
    SplitReport {
        measure: "response time at the app: what lies in front of the part that was timed does not show in it"
            .to_owned(),
        ..of_counters(Vec::new())
    }
}

/// If no source measured response time: that, between the likeliest causes by counters.
pub(crate) fn of_counters(rivals: Vec<Cause>) -> SplitReport {
    SplitReport {
        rivals,
        measure: "response time, and since when requests are slow".to_owned(),
        command: Some(command(RESPONSE_TIME)),
        watch: Some(RESPONSE_TIME.trim_start_matches("--watch ").to_owned()),
    }
}

/// The source that most of `open` lack, with those as rivals.
fn by_source(open: &[&NotJudged]) -> Option<SplitReport> {
    let mut by_watch: BTreeMap<&str, Vec<&NotJudged>> = BTreeMap::new();
    for one in open {
        if let Some(watch) = watched(&one.enable) {
            by_watch.entry(watch).or_default().push(one);
        }
    }
    let first = |of: &[&NotJudged]| open.iter().position(|o| of.first().is_some_and(|f| f.cause == o.cause));
    let (watch, of) =
        by_watch.into_iter().max_by(|(_, a), (_, b)| a.len().cmp(&b.len()).then(first(b).cmp(&first(a))))?;
    let measure = of.first().map_or_else(String::new, |one| one.missing.clone());
    Some(SplitReport {
        rivals: of.iter().take(NAMED).map(|one| one.cause).collect(),
        measure,
        command: Some(command(watch)),
        watch: Some(watch.to_owned()),
    })
}

/// The first source in a sentence: `mysql://USER@HOST:PORT` in `--watch mysql://USER@HOST:PORT, as
/// …`.
fn watched(enable: &str) -> Option<&str> {
    let address = enable.split_once("--watch ")?.1.split_whitespace().next()?;
    Some(address.trim_end_matches([',', ';', '.', ')']))
}

fn command(watch: &str) -> String {
    format!("holdup watch --watch '{}' --for 30s", watch.trim_start_matches("--watch "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Part;

    fn finding(cause: Cause, confidence: f64, explains: f64) -> Finding {
        Finding {
            cause,
            title: cause.title().to_owned(),
            role: Role::Contributor,
            follows_from: None,
            adds_to: None,
            hosts: Vec::new(),
            confidence,
            explains_ms: explains * 100.0,
            explains_ratio: explains,
            share: None,
            evidence: Vec::new(),
            fixes: Vec::new(),
            prove: "The same load again.".to_owned(),
        }
    }

    fn open(cause: Cause, enable: &str) -> NotJudged {
        NotJudged {
            cause,
            title: cause.title().to_owned(),
            missing: format!("facts of {cause}"),
            enable: enable.into(),
        }
    }

    #[test]
    fn findings_of_the_same_milliseconds_are_rivals() {
        let root = Finding { role: Role::Root, ..finding(Cause::DiskSaturated, 0.8, 0.9) };
        let near = finding(Cause::LockContention, 0.7, 0.8);
        let all = [
            root.clone(),
            near.clone(),
            finding(Cause::CpuSaturated, 0.9, 0.3),
            finding(Cause::WorkloadSpike, 0.9, 0.9),
        ];
        let claims = [Cause::DiskSaturated, Cause::LockContention, Cause::CpuSaturated, Cause::WorkloadSpike];
        assert_eq!(find_rival(&root, &all, &claims).map(|f| f.cause), Some(Cause::LockContention));
        assert!(find_rival(&root, &all, &[]).is_none(), "a contributor by its own rule claims nothing");
        let added = Finding { adds_to: Some(Cause::DiskSaturated), ..near.clone() };
        assert!(find_rival(&root, &[root.clone(), added], &claims).is_none());
        assert!((shared(0.8, 0.8) - 0.4).abs() < 1e-9 && shared(0.9, 0.1) > 0.8);
        // Nothing open would tell: the fix of one does.
        let split = of_two(&root, &near, &[]);
        assert_eq!((split.rivals.len(), split.watch), (2, None));
        assert!(split.measure.contains("one change alone"), "{}", split.measure);
    }

    #[test]
    fn the_source_that_most_rivals_lack_is_asked_for() {
        let not_judged = [
            open(Cause::CpuThrottled, "--watch pid:N for the app and the database, server:PORT, or cgroup:PATH"),
            open(Cause::ThreadPoolQueue, "--watch mysql://USER@HOST:PORT, as an account with PROCESS"),
            open(Cause::LockContention, "--watch mysql://USER@HOST:PORT, as an account with PROCESS"),
            open(Cause::OutOfMemoryKill, "--watch host"),
        ];
        let root = Finding { role: Role::Root, ..finding(Cause::WorkerPoolExhausted, 0.6, 0.9) };
        let split = of_root(&root, &not_judged).unwrap();
        assert_eq!(split.rivals, [Cause::WorkerPoolExhausted, Cause::ThreadPoolQueue, Cause::LockContention]);
        assert_eq!(split.watch.as_deref(), Some("mysql://USER@HOST:PORT"));
        assert!(of_root(&Finding { confidence: 0.9, ..root.clone() }, &not_judged).is_none());
        // What can't have brought it about is no rival.
        assert!((upstream_penalty(Cause::WorkerPoolExhausted, &not_judged) - 0.09).abs() < 1e-9);
        assert!(upstream_penalty(Cause::WorkerPoolExhausted, &not_judged[3..]).abs() < 1e-9);
        let none = of_none(None, &[], &[], &not_judged).unwrap();
        assert_eq!(none.watch.as_deref(), Some("mysql://USER@HOST:PORT"));
        assert!(of_none(None, &[], &[], &[]).is_none());
    }

    #[test]
    fn the_split_asks_for_sources_where_the_time_went() {
        let not_judged = [
            open(Cause::WorkerPoolExhausted, "--watch otlp, with the app's server span"),
            open(Cause::ThreadPoolQueue, "--watch mysql://USER@HOST:PORT, as an account with PROCESS"),
            open(Cause::TableCacheSmall, "--watch mysql://USER@HOST:PORT, as an account with PROCESS"),
        ];
        let watch = |app: f64, database: f64| {
            let part = |part: &str, ms: f64| Part { part: part.to_owned(), ms, error_ms: 0.0 };
            let row = LedgerRow {
                operation: "order".to_owned(),
                band: "all".to_owned(),
                requests: 100,
                response_ms: 2300.0,
                parts: vec![part("client_queue", 1000.0), part("app_other", app), part("database", database)],
                residual_ms: 0.0,
            };
            of_none(None, &[row], &[], &not_judged).unwrap().watch.unwrap()
        };
        assert_eq!(watch(1200.0, 100.0), "otlp");
        assert_eq!(watch(100.0, 1200.0), "mysql://USER@HOST:PORT");
    }
}
