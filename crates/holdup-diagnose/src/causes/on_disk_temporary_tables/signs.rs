//! Threads that remove files from a directory, and sessions that say what they do.

use holdup_signals::host::disk_waits::Wait;
use holdup_signals::host::threads::Place;

use crate::instant::facts::Facts;
use crate::instant::{SOME, Signs, is_removal};
use crate::strength::{FAIR, STRONG};

/// Files that come and go by the hundred are temporary. They are slow to remove because of the
/// directory's lock, or because the disk is.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let strength = if facts.waits_for_no_disk() { STRONG } else { FAIR };
    let removes = |place: &Place, wait| wait == Wait::Directory && is_removal(place);
    for evidence in facts.asleep_in(removes) {
        match facts.asleep_share(removes) {
            Some(share) => signs.accounting(strength, evidence, share),
            None => signs.add(strength, evidence),
        }
    }
    if let Some((strength, evidence)) = &facts.counts.temporary {
        signs.add(*strength, evidence.clone());
    }
    let of_table = |_: &str, state: &str| state.to_lowercase().contains("tmp table");
    signs.extend(FAIR, facts.sessions_in(SOME, "made or removed a temporary table", of_table));
}
