//! A full accept queue shows that a server takes connections more slowly than they come, and not why.
//! One that a burst fills drains at once.

use holdup_recording::events;

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{FAIR, STRONG, WEAK};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    // The same queue, by what it refused or by its length.
    if let Some((strength, evidence)) = facts.counts.overflows.as_ref().filter(|_| facts.accept_queue.is_none()) {
        signs.add(*strength, evidence.clone());
    }
    // Clients beyond a proxy's limit wait in its accept queue.
    if let Some((strength, evidence)) = &facts.counts.proxy_limit {
        signs.add(*strength, evidence.clone());
    }
    for (action, full) in facts.happened.by(events::SYN_FLOODING, "action") {
        signs.add(if action == "dropped" { STRONG } else { FAIR }, full.told());
    }
    let Some(queue) = &facts.accept_queue else { return };
    // A line that stands is that of whatever does not accept.
    let strength = if facts.standing_accept_queue().is_some() { WEAK } else { FAIR };
    signs.add(strength, queue.evidence.clone());
}
