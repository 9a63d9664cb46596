//! The text around a finding: the chain of causes, the load average, and settings that differ from
//! the vendors' advice.

use holdup_diagnose::Cause;
use std::fmt::Write as _;

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::{EpisodeReport, Finding, Note};

use super::{BOLD, DIM, dim, wrap};

/// Most episodes shown; `--json` has all.
const EPISODES: usize = 6;

/// Most notes shown; `--json` and the report have all.
const NOTES: usize = 5;

/// The longest chain of causes, `A -> B -> C`, with contributors in front; nothing for a chain of
/// one.
pub(super) fn chain(out: &mut String, d: &Diagnosis) {
    let Some((parts, adding)) = parts(d) else { return };
    wrap(out, "", &parts.join(" -> "));
    for link in d.chain.iter().filter(|link| adding.contains(&link.cause)) {
        dim(out, &format!("without {}: {}", link.cause, link.without));
    }
}

/// The links of that chain; none if it does not exist.
pub(super) fn chain_of(d: &Diagnosis) -> Option<Vec<String>> {
    parts(d).map(|(parts, _)| parts)
}

/// The links in words, and the contributors among them.
fn parts(d: &Diagnosis) -> Option<(Vec<String>, Vec<Cause>)> {
    let longest = d.findings.iter().map(|f| upwards(f, &d.findings)).max_by_key(Vec::len);
    let chain = longest?;
    let is_on = |f: &&Finding| f.adds_to.is_some_and(|to| chain.contains(&to));
    // A contributor of a contributor comes before it.
    let adding = d.findings.iter().filter(|f| is_on(f)).map(|f| beneath(f, &d.findings)).max_by_key(Vec::len);
    let adding = adding.unwrap_or_default();
    if adding.is_empty() && chain.len() < 2 {
        return None;
    }
    let contributors = adding.iter().map(|cause| format!("{cause} (contributor)"));
    let root = chain.first().map(|cause| if adding.is_empty() { cause.to_string() } else { format!("{cause} (root)") });
    let rest = chain.iter().skip(1).map(Cause::to_string);
    Some((contributors.chain(root).chain(rest).collect(), adding))
}

/// All episodes, if there are several.
pub(super) fn episodes(out: &mut String, d: &Diagnosis) {
    if d.episodes.len() < 2 {
        return;
    }
    let one = |e: &EpisodeReport| {
        let judged = if e.judged { ", judged here" } else { "" };
        format!("{:.0} to {:.0} s ({:.0} ms{judged})", e.from_s, e.to_s, e.response_ms)
    };
    let all: Vec<String> = d.episodes.iter().take(EPISODES).map(one).collect();
    let more = d.episodes.len().saturating_sub(EPISODES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let baseline = d.episodes.first().map_or(0.0, |e| e.baseline_ms);
    wrap(
        out,
        "",
        &format!("{} episodes against {baseline:.0} ms in between: {}{more}.", d.episodes.len(), all.join(", ")),
    );
}

/// Contributors to `finding`, the most distant first, and itself.
fn beneath(finding: &Finding, all: &[Finding]) -> Vec<Cause> {
    let mut chain = vec![finding.cause];
    while let Some(below) = all.iter().find(|f| f.adds_to == chain.last().copied() && !chain.contains(&f.cause)) {
        chain.push(below.cause);
    }
    chain.reverse();
    chain
}

/// Causes from the root to `finding`. The walk stops at a cycle, which no rule produces.
fn upwards(finding: &Finding, all: &[Finding]) -> Vec<Cause> {
    let mut chain = vec![finding.cause];
    let mut above = finding.follows_from;
    while let Some(cause) = above.filter(|c| !chain.contains(c)) {
        chain.push(cause);
        above = all.iter().find(|f| f.cause == cause).and_then(|f| f.follows_from);
    }
    chain.reverse();
    chain
}

/// The load average, if it is worth a line: it was above one per CPU, or threads were in
/// uninterruptible sleep.
pub(super) fn host_load(out: &mut String, d: &Diagnosis) {
    if let Some(load) = d.host_load.as_ref().filter(|l| l.per_cpu_max >= 1.0 || l.uninterruptible >= 1.0) {
        dim(out, &load.text);
    }
}

/// Notes: those that matter, and a few of the others.
pub(super) fn notes(out: &mut String, notes: &[Note]) {
    if notes.is_empty() {
        return;
    }
    let matter = notes.iter().filter(|n| n.finding.is_some()).count();
    let shown = notes.len().min(matter.max(NOTES));
    let _ = writeln!(out, "\n{BOLD}Settings that differ from the vendors' advice{BOLD:#}");
    for note in notes.iter().take(shown) {
        let whether = note.finding.as_ref().map_or_else(String::new, |f| format!(" It matters here: {f}."));
        let text = format!("{}: {}; {} advises {}.{whether}", note.subject, note.observed, note.vendor, note.advised);
        wrap(out, &format!("  {:<26}", note.check), &text);
    }
    let rest = notes.len() - shown;
    if rest > 0 {
        let _ = writeln!(out, "  {DIM}and {rest} more: --json, or the report{DIM:#}");
    }
}

#[cfg(test)]
mod tests {
    use holdup_diagnose::verdict::Role;

    use super::*;

    fn finding(cause: Cause, follows_from: Option<Cause>) -> Finding {
        Finding {
            cause,
            title: String::new(),
            role: Role::Root,
            follows_from,
            adds_to: None,
            hosts: Vec::new(),
            confidence: 0.9,
            explains_ms: 1.0,
            explains_ratio: 1.0,
            share: None,
            evidence: Vec::new(),
            fixes: Vec::new(),
            prove: String::new(),
        }
    }

    #[test]
    fn a_chain_begins_at_its_root() {
        let all = [
            finding(Cause::OnDiskTemporaryTables, None),
            finding(Cause::DiskSaturated, Some(Cause::OnDiskTemporaryTables)),
            finding(Cause::UninterruptiblePileup, Some(Cause::DiskSaturated)),
        ];
        let expected = [Cause::OnDiskTemporaryTables, Cause::DiskSaturated, Cause::UninterruptiblePileup];
        assert_eq!(upwards(&all[2], &all), expected);
        let circle = [
            finding(Cause::DiskFull, Some(Cause::DiskSaturated)),
            finding(Cause::DiskSaturated, Some(Cause::DiskFull)),
        ];
        assert_eq!(upwards(&circle[0], &circle), [Cause::DiskSaturated, Cause::DiskFull]);
    }

    #[test]
    fn contributors_stand_in_front_of_the_root() {
        let adds = |cause, to| Finding { adds_to: Some(to), ..finding(cause, None) };
        let all = [
            finding(Cause::ThroughputCeiling, None),
            adds(Cause::ToastRewrite, Cause::AutovacuumPressure),
            adds(Cause::AutovacuumPressure, Cause::ThroughputCeiling),
        ];
        assert_eq!(beneath(&all[2], &all), [Cause::ToastRewrite, Cause::AutovacuumPressure]);
    }

    #[test]
    fn few_notes_are_shown_and_all_that_matter() {
        let note = |check: &str, finding: Option<Cause>| Note {
            check: check.into(),
            vendor: "MongoDB".into(),
            subject: "vdb".into(),
            observed: "128 KB".into(),
            advised: "8 to 32 sectors".into(),
            text: String::new(),
            finding,
            fix: None,
            reference: String::new(),
        };
        let mut all: Vec<Note> = (0..7).map(|_| note("readahead", Some(Cause::ReadaheadTooLarge))).collect();
        all.extend((0..3).map(|_| note("swappiness", None)));
        let mut out = String::new();
        notes(&mut out, &all);
        assert_eq!(out.matches("readahead_too_large.").count(), 7, "{out}");
        assert!(!out.contains("swappiness") && out.contains("and 3 more"), "{out}");
    }
}
