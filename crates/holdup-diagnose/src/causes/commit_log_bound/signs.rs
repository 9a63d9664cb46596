//! Threads in a flush, a disk that writes, and sessions that wait for the log.

use holdup_signals::host::disk_waits::Wait;
use holdup_signals::host::threads::Place;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::flush_times;
use crate::instant::load::{WaitKind, kind};
use crate::instant::{MOST, Signs, is_log_wait, stacks};
use crate::strength::{FAIR, WEAK};

/// What MySQL and MariaDB call a session at the commit of its statement.
const COMMITS: [&str; 6] = [
    "query end",
    "waiting for handler commit",
    "starting commit",
    "commit",
    "Waiting for prior transaction to commit",
    "Waiting for prior transaction to start commit",
];

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for evidence in facts.asleep_in(|place, wait| wait == Wait::Write && is_flush(place)) {
        signs.add(FAIR, evidence);
    }
    signs.extend(facts.of_disk(WEAK), facts.disk_that(|work| work == DiskWork::Writes));
    signs.extend(FAIR, stacks::many(facts, &["log"], "waited until the log was on the disk"));
    for (strength, evidence) in flush_times::slow(&facts.view) {
        signs.add(strength, evidence);
    }
    // Of a managed database the volume must be seen: its limit makes sessions wait for the log, too.
    let is_unseen = !facts.clouds.is_empty() && !facts.clouds.iter().any(|database| database.sees_volume());
    if facts.is_postgresql || !facts.clouds.is_empty() {
        let text = "waited until the log was on the disk";
        let strength = if is_unseen { WEAK } else { FAIR * 0.9 };
        let waits = |_: &str, state: &str| is_log_wait(state) || kind(state) == WaitKind::Log;
        signs.extend(strength, facts.sessions_in(MOST, text, waits));
    } else {
        let commits = |_: &str, state: &str| COMMITS.iter().any(|of| state.eq_ignore_ascii_case(of));
        signs.extend(FAIR * 0.9, facts.sessions_in(MOST, "stood at a commit, which waits for the log", commits));
    }
}

fn is_flush(place: &Place) -> bool {
    place.passes("jbd2_log_wait_commit") || place.functions().any(|f| f.contains("fsync") || f.contains("log_force"))
}
