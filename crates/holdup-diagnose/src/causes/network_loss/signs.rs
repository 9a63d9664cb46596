//! Segments that were sent again, as a share of all.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some((strength, evidence)) = &facts.counts.again {
        signs.add(*strength, evidence.clone());
    }
}
