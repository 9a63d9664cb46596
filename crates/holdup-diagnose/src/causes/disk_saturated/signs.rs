//! Threads that wait for a disk whose own figures are missing, or that has no time left.

use holdup_signals::host::disk_waits::Wait;

use crate::instant::facts::Facts;
use crate::instant::{Signs, is_removal};
use crate::strength::{FAIR, WEAK};

/// Without a disk's own figures, this share (0-1) of iowait shows that threads wait for one.
const WAITED: f64 = 0.2;

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
}
