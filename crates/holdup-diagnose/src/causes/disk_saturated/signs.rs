//! Threads that wait for a disk whose own figures are missing, or that has no time left.

use holdup_recording::events;
use holdup_signals::Disk;
use holdup_signals::host::disk_waits::Wait;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::hung::{self, STORAGE, waits_in};
use crate::instant::{Signs, is_removal};
use crate::strength::{FAIR, STRONG, WEAK};

/// Without a disk's own figures, this share (0-1) of iowait shows that threads wait for one.
const WAITED: f64 = 0.2;

/// Worth (0-1) of a disk without time left: it is what requests wait for, and not why.
const ITSELF: f64 = 0.6;

/// A latch that is held over so many seconds waits for the disk.
const LATCH_S: f64 = 10.0;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let strength = facts.of_disk(if facts.full_disk().is_some() { FAIR } else { WEAK });
    let removals = facts.asleep_in(|place, wait| wait == Wait::Directory && is_removal(place));
    for evidence in removals.into_iter().filter(|_| !facts.waits_for_no_disk()) {
        signs.add(strength, evidence);
    }
    if let ([_, Some((strength, evidence)), _], None) = (&facts.counts.stalled, &facts.disk) {
        signs.add(*strength, evidence.clone());
    }
    let waiting = facts.idle.as_ref().filter(|(_, waiting, _)| facts.disk.is_none() && *waiting >= WAITED);
    signs.extend(FAIR, waiting.map(|(.., evidence)| evidence.clone()));
    hung(facts, signs);
    // Why it gets so much is another question. Windows of readahead and reads for each page that is needed answer it.
    let is_known = |(disk, _): (&Disk, DiskWork)| facts.readahead(&disk.device).is_some();
    let has_reason = facts.read_per_fault.is_some() || facts.full_disk().is_some_and(is_known);
    if signs.is_empty() && !has_reason {
        signs.extend(facts.of_disk(FAIR * ITSELF), facts.disk_that(|_| true));
    }
}

/// Threads that hang in reads or writes of files. A disk that returns errors or has time left is not
/// merely busy.
fn hung(facts: &Facts<'_>, signs: &mut Signs) {
    let fails = [events::IO_ERROR, events::IO_TIMEOUT, events::FILE_SYSTEM_ERROR];
    let is_other = facts.idle_disk().is_some() || fails.iter().any(|kind| facts.happened.of(kind, |_| true).is_some());
    let strength = if is_other { WEAK } else { STRONG };
    let waits = [Wait::Fault, Wait::Read, Wait::Page, Wait::Write];
    for task in hung::tasks(&facts.view, &facts.happened).into_iter().filter(|task| waits.contains(&task.wait)) {
        signs.add(strength, task.evidence);
    }
    if let Some(latches) = facts.happened.of(events::SEMAPHORE_WAIT, |event| waits_in(event, &STORAGE)) {
        let most = latches.most("seconds").unwrap_or(0.0);
        let text = format!("threads waited up to {most:.0} s for a latch of the server's files, {}", latches.when());
        signs.add(FAIR * (most / LATCH_S), latches.evidence(text));
    }
}
