//! A disk that mostly writes, sessions that wait for pages to be written, and checkpoints that the log
//! asked for.

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::load::{WaitKind, kind};
use crate::instant::{MOST, Signs, stacks};
use crate::strength::{STRONG, WEAK};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(WEAK, facts.disk_that(|work| work == DiskWork::Writes));
    signs.extend(STRONG, stacks::many(facts, &["flush"], "waited until pages were written"));
    let flushes = |_: &str, state: &str| kind(state) == WaitKind::Flush;
    let waiting = facts.sessions_in(MOST, "waited until pages were written", flushes);
    // Checkpoints may be usual, so they count beside sessions that wait.
    if waiting.is_some() {
        for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.requested_checkpoints()) {
            signs.add(strength, evidence);
        }
    }
    signs.extend(STRONG, waiting);
}
