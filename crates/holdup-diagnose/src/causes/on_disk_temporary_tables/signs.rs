//! Threads that remove files from a directory, and sessions that say what they do.

use holdup_signals::host::disk_waits::Wait;

use crate::instant::facts::Facts;
use crate::instant::load::{WaitKind, kind};
use crate::instant::{MOST, SOME, Signs, is_removal};
use crate::strength::{FAIR, STRONG};

/// Files that come and go by the hundred are temporary. They are slow to remove because of the
/// directory's lock, or because the disk is.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let strength = if facts.waits_for_no_disk() { STRONG } else { FAIR };
    for evidence in facts.asleep_in(|place, wait| wait == Wait::Directory && is_removal(place)) {
        signs.add(strength, evidence);
    }
    let of_file = |_: &str, state: &str| kind(state) == WaitKind::Temporary;
    signs.extend(STRONG, facts.sessions_in(MOST, "read or wrote temporary files", of_file));
    let of_table = |_: &str, state: &str| state.to_lowercase().contains("tmp table");
    signs.extend(FAIR, facts.sessions_in(SOME, "made or removed a temporary table", of_table));
}
