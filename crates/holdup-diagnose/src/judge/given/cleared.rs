//! What the given evidence clears.

use holdup_signals::evidence::Evidence;

use super::NOT;
use crate::causes::Cause;
use crate::instant::facts::Facts;
use crate::resources::disk::what_it_does;
use crate::verdict::Cleared;

/// Causes that the instant clears of what it shows, and that in sentences.
pub(super) fn cleared(facts: &Facts<'_>) -> (Vec<Cleared>, Vec<String>) {
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
