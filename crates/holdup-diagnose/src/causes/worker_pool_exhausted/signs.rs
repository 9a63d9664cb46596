//! A line in front of the app while CPUs idle has workers behind it that wait, for whatever it is. To
//! name them takes a source that saw all of them busy; else it stays open.

use crate::instant::Signs;
use crate::instant::app_pools::{Holds, used_up};
use crate::instant::facts::Facts;
use crate::strength::{FAIR, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some(((strength, evidence), share)) = &facts.counts.proxy_queue {
        signs.accounting(*strength, evidence.clone(), share.clone());
    }
    for (strength, evidence) in used_up(&facts.view, Holds::Workers) {
        signs.add(strength, evidence);
    }
    let Some(queue) = facts.standing_accept_queue() else { return };
    signs.add(FAIR, queue.evidence.clone());
    if let Some(busy) = &queue.busy_workers {
        signs.add(STRONG, busy.clone());
    }
}
