//! `holdup lab --by-hand`: what standard tools alone showed of a variant, as a person would have
//! pasted it, and whether that leads to the same culprit.

use holdup_diagnose::Cause;
use std::fs;
use std::path::{Path, PathBuf};

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::Answer;
use holdup_recording::Recording;

use crate::commands::{diagnose, import};
use crate::failure::Failure;
use crate::lab::Expect;
use crate::terminal;

/// What a lab expects by hand where the tools cannot show its culprit.
const NOTHING: &str = "nothing";
/// So many suspects may be left over if a command is named that decides between them.
const SUSPECTS_LEFT: usize = 2;

/// The paste of the variant whose recording is `place`.
fn paste_of(place: &Path) -> PathBuf {
    place.with_extension("by-hand.txt")
}

/// Keeps the tools' outputs beside the recording `place` of the same variant.
pub(super) fn keep(paste: &Path, place: &Path) -> Result<(), Failure> {
    let kept = paste_of(place);
    let failed =
        |error| Failure::Unusable(format!("failed to copy {} to {}: {error}", paste.display(), kept.display()));
    fs::copy(paste, &kept).map(|_| ()).map_err(failed)
}

/// Judges the kept outputs, prints the verdict, and returns how it differs from what the lab expects.
/// A search overloads on purpose, so its verdict counts only if the lab expects one.
pub(super) fn judge(place: &Path, expect: &Expect, say: &dyn Fn(&str)) -> Result<Option<String>, Failure> {
    let dir = place.with_extension("by-hand");
    import::pasted(&paste_of(place), &dir)?;
    let recording = Recording::open(&dir).map_err(Failure::unusable)?;
    let diagnosis = diagnose(&recording, None);
    say(&format!("by hand, from {}:", paste_of(place).display()));
    say(&terminal::brief(&diagnosis, Some(&dir)).to_string());
    Ok(expect.verdict.as_ref().and_then(|_| unexpected(expect, &diagnosis)))
}

/// What is wrong with a verdict on the outputs of standard tools: another culprit than the lab's, or
/// suspects without it or without the command that decides.
fn unexpected(expect: &Expect, d: &Diagnosis) -> Option<String> {
    let is_right = |cause: &str| expect.culprit.as_deref() == Some(cause) || expect.by_hand.iter().any(|c| c == cause);
    if let Some(cause) = d.culprit.map(Cause::slug).filter(|_| d.verdict == Answer::Found) {
        let confidence = d.findings.first().map_or(0.0, |finding| finding.confidence);
        return (!is_right(cause)).then(|| format!("by hand: {cause} was named with a confidence of {confidence:.2}"));
    }
    expect.culprit.as_ref()?;
    if d.verdict == Answer::Healthy {
        return Some("by hand: called healthy".to_owned());
    }
    let rivals = d.split.iter().flat_map(|split| split.rivals.iter().copied());
    let mut suspects: Vec<&str> = Vec::new();
    for cause in rivals.chain(d.findings.iter().map(|finding| finding.cause)).map(Cause::slug) {
        if suspects.len() < SUSPECTS_LEFT && !suspects.contains(&cause) {
            suspects.push(cause);
        }
    }
    if suspects.is_empty() {
        return (!is_right(NOTHING)).then(|| "by hand: undecided, without a suspect".to_owned());
    }
    if !suspects.iter().any(|cause| is_right(cause)) {
        return Some(format!("by hand: undecided, and the first suspects are {}", suspects.join(", ")));
    }
    let decides = d.split.as_ref().is_some_and(|split| split.command.is_some())
        || d.snapshot.as_ref().is_some_and(|snapshot| !snapshot.paste_next.is_empty());
    (!decides).then(|| format!("by hand: {} are left, and no command decides", suspects.join(", ")))
}

#[cfg(test)]
mod tests {
    use holdup_diagnose::verdict::SplitReport;

    use super::*;

    /// The verdict on a fixture in which a thread pool's queue is the culprit.
    fn verdict() -> Diagnosis {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hidden-queue-faulty");
        diagnose(&Recording::open_condensed(&dir).unwrap(), None)
    }

    fn expected(culprit: Option<&str>, by_hand: &[&str]) -> Expect {
        Expect {
            verdict: Some(if culprit.is_some() { "found" } else { "healthy" }.to_owned()),
            culprit: culprit.map(str::to_owned),
            next: None,
            contributors: Vec::new(),
            symptoms: Vec::new(),
            cleared: Vec::new(),
            knee: None,
            recovered: None,
            by_hand: by_hand.iter().map(|cause| (*cause).to_owned()).collect(),
        }
    }

    #[test]
    fn the_culprit_or_its_stand_in_is_right_and_another_is_wrong() {
        let d = verdict();
        assert_eq!(d.culprit, Some(Cause::ThreadPoolQueue));
        assert_eq!(unexpected(&expected(Some("thread_pool_queue"), &[]), &d), None);
        assert_eq!(unexpected(&expected(Some("cpu_saturated"), &["thread_pool_queue"]), &d), None);
        let said = unexpected(&expected(Some("cpu_saturated"), &[]), &d).unwrap();
        assert!(said.starts_with("by hand: thread_pool_queue was named"), "{said}");
        assert!(unexpected(&expected(None, &[]), &d).is_some());
    }

    #[test]
    fn two_suspects_are_right_if_a_command_decides() {
        let mut d = verdict();
        (d.verdict, d.culprit) = (Answer::Undecided, None);
        let split = |command: Option<&str>| SplitReport {
            rivals: vec![Cause::CpuSaturated, Cause::ThreadPoolQueue, Cause::LockContention],
            measure: "which".to_owned(),
            command: command.map(str::to_owned),
            watch: None,
        };
        d.split = Some(split(Some("vmstat 1 30")));
        assert_eq!(unexpected(&expected(Some("thread_pool_queue"), &[]), &d), None);
        let third = unexpected(&expected(Some("lock_contention"), &[]), &d).unwrap();
        assert!(third.contains("the first suspects are cpu_saturated, thread_pool_queue"), "{third}");
        d.split = Some(split(None));
        d.snapshot = None;
        assert!(unexpected(&expected(Some("thread_pool_queue"), &[]), &d).unwrap().contains("no command decides"));
        (d.split, d.findings) = (None, Vec::new());
        assert!(unexpected(&expected(Some("plan_changed"), &[]), &d).is_some());
        assert_eq!(unexpected(&expected(Some("plan_changed"), &["nothing"]), &d), None);
        d.verdict = Answer::Healthy;
        assert!(unexpected(&expected(Some("thread_pool_queue"), &[]), &d).unwrap().contains("called healthy"));
        assert_eq!(unexpected(&expected(None, &[]), &d), None);
    }
}
