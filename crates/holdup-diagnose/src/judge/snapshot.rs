//! A verdict on an instant: what the pasted outputs of one moment settle, what they leave open, and
//! which commands would decide between the suspects that are left. One instant has no time before
//! it, so nothing shows what changed.

mod suspects;

use crate::change::Fix;
use std::collections::BTreeSet;

use holdup_recording::words::round;
use holdup_signals::Window;
use holdup_signals::evidence::Evidence;

use self::suspects::{Suspect, suspects};
use crate::case::Case;
use crate::causes::{self, Cause, Trait};
use crate::host_load;
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use crate::resources::disk::what_it_does;
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
    let names: Vec<Cause> = found.iter().map(|suspect| suspect.cause).collect();
    let shown = settles.iter().find(|settled| !settled.starts_with(NOT));
    let headline = match (is_named, found.first()) {
        (true, Some(suspect)) => format!("{} {open}", says(suspect)),
        _ => format!("{} {open}", shown.map_or_else(String::new, |settled| format!("{settled}."))),
    };
    let split = (!is_named || names.len() > 1).then(|| paste_next.first()).flatten().map(|next| SplitReport {
        rivals: names.clone(),
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
    format!("{}{sign}.", suspect.cause.title())
}

/// What the instant shows whatever the suspects are, the largest queue first.
fn settles(case: &Case<'_>, facts: &Facts<'_>, said: Vec<String>, innocent: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = said.iter().map(|text| causes::capital(text)).collect();
    if let Some((disk, _)) = facts.full_disk() {
        all.push(format!("The disk is full: {}", what_it_does(disk)));
    }
    all.extend(facts.full.iter().map(|full| causes::capital(&full.evidence.text)));
    let asleep = facts.asleep.as_ref().filter(|asleep| asleep.mean >= 1.0);
    let load = facts.load.as_ref().zip(facts.cpus).filter(|(load, cpus)| load.max > *cpus);
    if load.is_some() || asleep.is_some() {
        all.extend(host_load::explain(case).map(|load| causes::capital(&load.text)));
    }
    all.extend(innocent);
    all
}

/// What the instant, or a stretch without a time before it, cannot show.
fn open(found: &[Suspect], is_named: bool, seconds: f64) -> String {
    const SINCE: &str = "since when, and how much of response time it costs";
    const PROBE: Cause = Cause::LivenessProbeKill;
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
        [one] if is_named => format!("{} {SINCE}: {} is the only suspect.", causes::capital(&shows), one.cause),
        [_, other] if is_named => format!("{} {SINCE}; {} is possible too.", causes::capital(&shows), other.cause),
        [one, other] => format!("Either {} or {}: {shows} which.", one.cause, other.cause),
        [one] => format!("It may be {}: {shows} it.", one.cause),
        _ => String::new(),
    }
}

/// A suspect as a finding; its remedy only if it is named, because a change on a guess costs time.
fn finding(i: usize, suspect: Suspect, is_named: bool, facts: &Facts<'_>) -> Finding {
    let doc = &suspect.cause.definition().doc;
    let fixes = match suspect.cause {
        _ if !is_named || i > 0 => Vec::new(),
        Cause::DiskFull => causes::disk_full::fixes(&facts.view, &facts.full),
        _ => vec![Fix { text: doc.fix.to_owned(), command: None, keep: None, risk: None }],
    };
    Finding {
        cause: suspect.cause,
        title: doc.title.to_owned(),
        role: if i == 0 { Role::Root } else { Role::Contributor },
        follows_from: None,
        adds_to: None,
        hosts: Vec::new(),
        confidence: round(suspect.confidence, 2),
        explains_ms: 0.0,
        explains_ratio: 0.0,
        evidence: suspect.evidence,
        fixes,
        prove: doc.prove.to_owned(),
    }
}

/// The commands that decide between the suspects, and then what shows most of what was not pasted.
fn next(facts: &Facts<'_>, found: &[Suspect]) -> Vec<PasteNextReport> {
    let is_full = facts.full_disk().is_some();
    // A place in the kernel says which call waits, and not for what: the disk, or a lock.
    let has_asleep = facts.asleep.as_ref().is_some_and(|asleep| asleep.mean >= 1.0);
    let has_places = facts.asleep.as_ref().is_some_and(|asleep| asleep.groups.iter().any(|p| p.function().is_some()));
    let missing = [
        (Cause::DiskSaturated, facts.disk.is_none() && (has_asleep || !facts.has_load)),
        (Cause::UninterruptiblePileup, has_asleep && !has_places || is_full && facts.asleep.is_none()),
        (Cause::DiskSaturated, is_full),
        (Cause::LockContention, facts.sessions.is_none() && !is_full),
    ];
    let is_answered = |cause: &Cause| match cause {
        Cause::ThreadPoolQueue => facts.pool_queue.is_some(),
        Cause::ReadaheadTooLarge | Cause::WorkingSetExceedsMemory => facts.read_per_fault.is_some(),
        _ => false,
    };
    let suspects = found.iter().map(|suspect| suspect.cause).filter(|cause| !is_answered(cause));
    let causes = suspects.chain(missing.into_iter().filter(|(_, is)| *is).map(|(cause, _)| cause));
    // Kubernetes' own figures are there already where these ask for more.
    let mut all = facts.pods.next();
    let is_of_pods = !all.is_empty();
    let is_new =
        |cause: &Cause| !is_of_pods || found.iter().any(|s| s.cause == *cause) && !cause.is(Trait::NamedByKubernetes);
    let mut shown = BTreeSet::new();
    for next in causes.filter(is_new).map(|cause| cause.definition().next) {
        if shown.insert(next.command) {
            all.push(report(next, facts));
        }
    }
    all.truncate(COMMANDS);
    all
}

/// A command as it is for the machine of `facts`, with all causes that it shows.
fn report(next: &NextCommand, facts: &Facts<'_>) -> PasteNextReport {
    let shows = |cause: &Cause| cause.definition().next.command == next.command;
    PasteNextReport {
        causes: Cause::ALL.iter().copied().filter(shows).collect(),
        command: next.command_on(facts.machine, facts.is_postgresql).to_owned(),
        seconds: next.seconds,
        shows: next.shows_on(facts.machine),
    }
}

/// Causes that the instant clears of what it shows, and that in sentences.
fn cleared(facts: &Facts<'_>) -> (Vec<Cleared>, Vec<String>) {
    const HAS_ROOM: f64 = 0.3;
    const EXAMINED: f64 = 3.0;
    let mut all: Vec<(Cause, Evidence)> = Vec::new();
    let idle = facts.idle.as_ref();
    if let Some((.., evidence)) = idle.filter(|(idle, waiting, _)| idle + waiting >= HAS_ROOM) {
        all.push((Cause::CpuSaturated, evidence.clone()));
    }
    if let Some(evidence) = facts.pods.idle().filter(|_| idle.is_none()) {
        all.push((Cause::CpuSaturated, evidence));
    }
    let is_lock = facts.is_no_disk_waited_for() && facts.asleep.as_ref().is_some_and(|asleep| asleep.mean >= 1.0);
    if let Some((.., evidence)) = idle.filter(|_| is_lock && facts.disk.is_none()) {
        let text = "threads sleep uninterruptibly and idle CPUs counted hardly any iowait: they wait for a lock of the kernel, not for a disk";
        all.push((Cause::DiskSaturated, evidence.clone().saying("iowait, if they waited for a disk", text)));
    }
    if let Some(disk) = facts.idle_disk()
        && let Ok(evidence) = facts.view.disk_evidence(disk, "above 1, if the disk were the cause", what_it_does(disk))
    {
        all.push((Cause::DiskSaturated, evidence));
    }
    let has_memory = facts.available.as_ref().filter(|(share, _)| *share >= 0.1);
    if let Some((_, evidence)) = has_memory.filter(|_| facts.swapped.as_ref().is_none_or(|(rate, _)| *rate < 1.0)) {
        all.push((Cause::MemoryPressure, evidence.clone()));
    }
    // A missing index reads many documents for each that it returns or changes.
    let examined = facts.documents.examined.as_ref().filter(|(each, _)| *each <= EXAMINED);
    all.extend(examined.map(|(_, evidence)| (Cause::MissingIndex, evidence.clone())));
    if let Some(sessions) = facts.sessions.as_ref().filter(|sessions| sessions.count(|of, _| of == "lock_wait") < 1.0) {
        let text = "no session waited for a lock".to_owned();
        all.extend(
            sessions.evidence(|_, _| true, "some, if locks were the cause", text).map(|e| (Cause::LockContention, e)),
        );
    }
    let sentence = |(cause, evidence): &(Cause, Evidence)| format!("{NOT}{cause}: {}", evidence.text);
    let told = all.iter().map(sentence).collect();
    let cleared = |(cause, evidence): (Cause, Evidence)| Cleared {
        cause,
        title: cause.title().to_owned(),
        evidence: vec![evidence],
    };
    (all.into_iter().map(cleared).collect(), told)
}
