//! Operations in the queue while no ticket is left.

use crate::instant::facts::Facts;
use crate::instant::{MANY, SOME, Signs};
use crate::strength::CERTAIN;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let queued = facts.documents.queued.as_ref().filter(|(count, _)| *count >= MANY);
    signs.extend(CERTAIN, queued.map(|(_, evidence)| evidence.clone()));
    if facts.documents.is_there {
        let waiting = |_: &str, state: &str| state == "waiting for a ticket";
        signs.extend(CERTAIN, facts.sessions_in(SOME, "waited for a ticket", waiting));
    }
}
