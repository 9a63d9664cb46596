//! Workers that are all busy while requests wait, whatever holds them. A line in front of the app has such
//! workers behind it as a rule; to name them takes a source that saw them, or another consequence of theirs.

use crate::instant::Signs;
use crate::instant::app_pools::{Holds, used_up};
use crate::instant::facts::Facts;
use crate::strength::{FAIR, STRONG, WEAK};

/// Worth (0-1) of a line that was seen at one look: it may be the peak of a burst.
const ONE_LOOK: f64 = 0.9;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some(((strength, evidence), share)) = &facts.counts.proxy_queue {
        signs.accounting(*strength, evidence.clone(), share.clone());
    }
    for (strength, evidence) in used_up(&facts.view, Holds::Workers) {
        signs.add(strength, evidence);
    }
    // Free workers would take them: then something else keeps the server from it.
    let are_free = facts.workers.as_ref().is_some_and(|seen| seen.busy.is_none());
    let queue = facts.standing_accept_queue().filter(|_| !are_free);
    if let Some(queue) = queue {
        signs.add(if queue.is_sure { FAIR } else { FAIR * ONE_LOOK }, queue.evidence.clone());
    }
    let (busy, queued) = facts.workers.as_ref().map_or((None, None), |seen| (seen.busy.clone(), seen.queued.clone()));
    let is_line = queue.is_some() || queued.is_some();
    // Without a line all workers are busy at some instants of a healthy server.
    signs.extend(if is_line { STRONG } else { WEAK }, busy);
    signs.extend(FAIR, queued);
    // A probe that gets no answer in time waited in the same line.
    signs.extend(FAIR, facts.pods.unanswered().filter(|_| is_line));
}
