//! Threads in a flush, a disk that writes, and sessions that wait for the log.

use holdup_signals::host::disk_waits::Wait;
use holdup_signals::host::threads::Place;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::{MOST, Signs, is_log_wait};
use crate::strength::{FAIR, WEAK};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for evidence in facts.asleep_in(|place, wait| wait == Wait::Write && is_flush(place)) {
        signs.add(FAIR, evidence);
    }
    signs.extend(facts.of_disk(WEAK), facts.disk_that(|work| work == DiskWork::Writes));
    if facts.is_postgresql {
        let text = "waited until the log was on the disk";
        signs.extend(FAIR * 0.9, facts.sessions_in(MOST, text, |_, state| is_log_wait(state)));
    }
}

fn is_flush(place: &Place) -> bool {
    place.passes("jbd2_log_wait_commit") || place.functions().any(|f| f.contains("fsync") || f.contains("log_force"))
}
