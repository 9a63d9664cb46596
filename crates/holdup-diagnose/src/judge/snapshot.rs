//! A verdict on an instant: what the pasted outputs of one moment settle, what they leave open, and
//! which commands would decide between the suspects that are left. One instant has no time before
//! it, so nothing shows what changed.

mod accept_queue;
mod documents;
mod facts;
mod machine;
mod pods;
#[cfg(test)]
mod pods_tests;
mod signs;
mod suspects;

use crate::change::Fix;
use holdup_recording::words::round;
use holdup_signals::Window;
use holdup_signals::evidence::Evidence;

use self::facts::Facts;
use self::suspects::{Suspect, is_disk_full, suspects};
use crate::case::Case;
use crate::host_load;
use crate::paste_next::{self, PasteNext};
use crate::resources::disk::what_it_does;
use crate::rules;
use crate::verdict::{Answer, Cleared, Finding, NAMED, PasteNextReport, Role, SnapshotReport, SplitReport};

/// Most suspects to name.
const SUSPECTS: usize = 2;

/// Most commands to paste next.
const COMMANDS: usize = 3;

/// A suspect with less than this share (0-1) of the first one's confidence is not its rival.
const RIVALS: f64 = 0.4;

/// The longest stretch that is judged as a whole, seconds …
const LONGEST_S: f64 = 120.0;

/// … unless the same thing was read no more often than this: with more readings a longer stretch has a
/// past, and what changed in it matters.
const INSTANTS: usize = 5;

/// Causes that Kubernetes itself names.
const OF_PODS: [&str; 2] = ["liveness_probe_kill", "out_of_memory_kill"];

/// How a sentence begins that clears a cause.
const NOT: &str = "Not ";

/// The verdict on an instant.
pub(super) struct Judgement {
    pub verdict: Answer,
    pub headline: String,
    /// The suspects, the likeliest first.
    pub findings: Vec<Finding>,
    pub cleared: Vec<Cleared>,
    pub split: Option<SplitReport>,
    /// Absent if the verdict covers a longer time.
    pub report: Option<SnapshotReport>,
    /// That longer time.
    pub window: Option<Window>,
}

/// Judges an instant; none if nothing stands out in it, or if it is a longer time.
pub(super) fn judge(case: &Case<'_>) -> Option<Judgement> {
    let facts = Facts::read(case);
    if case.whole().seconds() > LONGEST_S && facts.instants() > INSTANTS {
        return None;
    }
    let mut found = suspects(&facts);
    let said = facts.pods.says();
    let first = match found.first() {
        Some(suspect) => suspect.confidence,
        None if said.is_empty() => return None,
        None => 0.0,
    };
    found.retain(|suspect| suspect.confidence >= RIVALS * first);
    found.truncate(SUSPECTS);
    let (cleared, innocent) = cleared(&facts);
    let settles = settles(case, &facts, said, innocent);
    let is_clear = found.get(1).is_none_or(|second| second.confidence < first);
    let is_named = first >= NAMED && is_clear;
    let open = open(&found, is_named, case.whole().seconds());
    let paste_next = next(&facts, &found);
    let names: Vec<&str> = found.iter().map(|suspect| suspect.cause).collect();
    let shown = settles.iter().find(|settled| !settled.starts_with(NOT));
    let headline = match (is_named, found.first()) {
        (true, Some(suspect)) => format!("{} {open}", says(suspect)),
        _ => format!("{} {open}", shown.map_or_else(String::new, |settled| format!("{settled}."))),
    };
    let split = (!is_named || names.len() > 1).then(|| paste_next.first()).flatten().map(|next| SplitReport {
        rivals: names.iter().map(|cause| (*cause).to_owned()).collect(),
        measure: next.shows.clone(),
        command: Some(next.command.clone()),
        watch: None,
    });
    Some(Judgement {
        verdict: if is_named { Answer::Found } else { Answer::Undecided },
        headline: headline.trim().to_owned(),
        findings: found.into_iter().enumerate().map(|(i, suspect)| finding(i, suspect, is_named, &facts)).collect(),
        cleared,
        split,
        report: Some(SnapshotReport { settles, open, paste_next }),
        window: None,
    })
}

fn says(suspect: &Suspect) -> String {
    let sign = suspect.evidence.first().map_or_else(String::new, |sign| format!(": {}", sign.text));
    format!("{}{sign}.", title(suspect.cause))
}

fn title(cause: &str) -> &str {
    rules::by_cause(cause).map_or(cause, |rule| rule.doc.title)
}

/// What the instant shows whatever the suspects are, the largest queue first.
fn settles(case: &Case<'_>, facts: &Facts<'_>, said: Vec<String>, innocent: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = said.iter().map(|text| rules::capital(text)).collect();
    if let Some(disk) = facts.disk.as_ref().filter(|_| is_disk_full(facts)) {
        all.push(format!("The disk is full: {}", what_it_does(disk)));
    }
    all.extend(facts.full.iter().map(|full| rules::capital(&full.evidence.text)));
    let asleep = facts.asleep.as_ref().filter(|asleep| asleep.mean >= 1.0);
    let load = facts.load.as_ref().zip(facts.cpus).filter(|(load, cpus)| load.max > *cpus);
    if load.is_some() || asleep.is_some() {
        all.extend(host_load::explain(case).map(|load| rules::capital(&load.text)));
    }
    all.extend(innocent);
    all
}

/// What the instant, or a stretch without a time before it, cannot show.
fn open(found: &[Suspect], is_named: bool, seconds: f64) -> String {
    const SINCE: &str = "since when, and how much of response time it costs";
    const PROBE: &str = "liveness_probe_kill";
    /// Tools that each run for some seconds, one after another, still show one moment.
    const INSTANT_S: f64 = 5.0;
    let shows = match seconds > INSTANT_S {
        true => format!("these {seconds:.0} s do not show"),
        false => "one instant does not show".to_owned(),
    };
    match found {
        [one, ..] if is_named && one.cause == PROBE => {
            "It does not show why the server left the probe without an answer: measure its queue and its workers."
                .to_owned()
        }
        [one] if is_named => format!("{} {SINCE}: {} is the only suspect.", rules::capital(&shows), one.cause),
        [_, other] if is_named => format!("{} {SINCE}; {} is possible too.", rules::capital(&shows), other.cause),
        [one, other] => format!("Either {} or {}: {shows} which.", one.cause, other.cause),
        [one] => format!("It may be {}: {shows} it.", one.cause),
        _ => String::new(),
    }
}

/// A suspect as a finding; its remedy only if it is named, because a change on a guess costs time.
fn finding(i: usize, suspect: Suspect, is_named: bool, facts: &Facts<'_>) -> Finding {
    let doc = rules::by_cause(suspect.cause).map(|rule| &rule.doc);
    let fix = |doc: &rules::Doc| match suspect.cause == rules::disk_full::RULE.cause {
        true => rules::disk_full::fixes(&facts.view, &facts.full),
        false => vec![Fix { text: doc.fix.to_owned(), command: None, keep: None, risk: None }],
    };
    let fixes = doc.filter(|_| is_named && i == 0).map_or_else(Vec::new, fix);
    Finding {
        cause: suspect.cause.to_owned(),
        title: title(suspect.cause).to_owned(),
        role: if i == 0 { Role::Root } else { Role::Contributor },
        follows_from: None,
        adds_to: None,
        hosts: Vec::new(),
        confidence: round(suspect.confidence, 2),
        explains_ms: 0.0,
        explains_ratio: 0.0,
        evidence: suspect.evidence,
        fixes,
        prove: doc.map_or_else(String::new, |doc| doc.prove.to_owned()),
    }
}

/// The commands that decide between the suspects, and then what shows most of what was not pasted.
fn next(facts: &Facts<'_>, found: &[Suspect]) -> Vec<PasteNextReport> {
    let is_full = is_disk_full(facts);
    // A place in the kernel says which call waits, and not for what: the disk, or a lock.
    let has_asleep = facts.asleep.as_ref().is_some_and(|asleep| asleep.mean >= 1.0);
    let has_places = facts.asleep.as_ref().is_some_and(|asleep| asleep.groups.iter().any(|p| p.function().is_some()));
    let missing = [
        ("disk_saturated", facts.disk.is_none() && (has_asleep || !facts.has_load)),
        ("uninterruptible_pileup", has_asleep && !has_places || is_full && facts.asleep.is_none()),
        ("disk_saturated", is_full),
        ("lock_contention", facts.sessions.is_none() && !is_full),
    ];
    let is_answered = |cause: &str| match cause {
        "thread_pool_queue" => facts.pool_queue.is_some(),
        "readahead_too_large" | "working_set_exceeds_memory" => facts.read_per_fault.is_some(),
        _ => false,
    };
    let suspects = found.iter().map(|suspect| suspect.cause).filter(|cause| !is_answered(cause));
    let causes = suspects.chain(missing.into_iter().filter(|(_, is)| *is).map(|(cause, _)| cause));
    let command = |next: &'static PasteNext| PasteNextReport {
        causes: next.causes.iter().map(|cause| (*cause).to_owned()).collect(),
        command: next.command_on(facts.machine, facts.is_postgresql).to_owned(),
        seconds: next.seconds,
        shows: next.shows_on(facts.machine),
    };
    // Kubernetes' own figures are there already where these ask for more.
    let mut all = facts.pods.next();
    let is_of_pods = !all.is_empty();
    let causes =
        causes.filter(|cause| !is_of_pods || found.iter().any(|s| s.cause == *cause) && !OF_PODS.contains(cause));
    all.extend(paste_next::for_causes(causes, COMMANDS).into_iter().map(command));
    all.truncate(COMMANDS);
    all
}

/// Causes that the instant clears of what it shows, and that in sentences.
fn cleared(facts: &Facts<'_>) -> (Vec<Cleared>, Vec<String>) {
    const HAS_ROOM: f64 = 0.3;
    const EXAMINED: f64 = 3.0;
    let mut all: Vec<(&str, Evidence)> = Vec::new();
    let idle = facts.idle.as_ref();
    if let Some((.., evidence)) = idle.filter(|(idle, waiting, _)| idle + waiting >= HAS_ROOM) {
        all.push(("cpu_saturated", evidence.clone()));
    }
    if let Some(evidence) = facts.pods.idle().filter(|_| idle.is_none()) {
        all.push(("cpu_saturated", evidence));
    }
    let is_lock = facts.is_no_disk_waited_for() && facts.asleep.as_ref().is_some_and(|asleep| asleep.mean >= 1.0);
    if let Some((.., evidence)) = idle.filter(|_| is_lock && facts.disk.is_none()) {
        let text = "threads sleep uninterruptibly and idle CPUs counted hardly any iowait: they wait for a lock of the kernel, not for a disk";
        all.push(("disk_saturated", evidence.clone().saying("iowait, if they waited for a disk", text)));
    }
    if let Some(disk) = facts.idle_disk()
        && let Ok(evidence) = facts.view.disk_evidence(disk, "above 1, if the disk were the cause", what_it_does(disk))
    {
        all.push(("disk_saturated", evidence));
    }
    let has_memory = facts.available.as_ref().filter(|(share, _)| *share >= 0.1);
    if let Some((_, evidence)) = has_memory.filter(|_| facts.swapped.as_ref().is_none_or(|(rate, _)| *rate < 1.0)) {
        all.push(("memory_pressure", evidence.clone()));
    }
    // A missing index reads many documents for each that it returns or changes.
    let examined = facts.documents.examined.as_ref().filter(|(each, _)| *each <= EXAMINED);
    all.extend(examined.map(|(_, evidence)| ("missing_index", evidence.clone())));
    if let Some(sessions) = facts.sessions.as_ref().filter(|sessions| sessions.count(|of, _| of == "lock_wait") < 1.0) {
        let text = "no session waited for a lock".to_owned();
        all.extend(
            sessions.evidence(|_, _| true, "some, if locks were the cause", text).map(|e| ("lock_contention", e)),
        );
    }
    let sentence = |(cause, evidence): &(&str, Evidence)| format!("{NOT}{cause}: {}", evidence.text);
    let told = all.iter().map(sentence).collect();
    let cleared = |(cause, evidence): (&str, Evidence)| Cleared {
        cause: cause.to_owned(),
        title: title(cause).to_owned(),
        evidence: vec![evidence],
    };
    (all.into_iter().map(cleared).collect(), told)
}
