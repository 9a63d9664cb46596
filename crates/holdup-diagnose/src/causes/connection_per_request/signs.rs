//! Closed connections that hold most ports: they are opened and closed all the time.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (strength, evidence) in [&facts.counts.closed, &facts.counts.ports].into_iter().flatten() {
        signs.add(*strength, evidence.clone());
    }
}
