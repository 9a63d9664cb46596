//! Segments that were sent again, as a share of all.

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::WEAK;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some((strength, evidence)) = &facts.counts.again {
        // What a full accept queue drops is sent again, too.
        let is_queue = facts.counts.overflows.is_some() || facts.accept_queue.is_some();
        signs.add(if is_queue { WEAK } else { *strength }, evidence.clone());
    }
}
