//! A full table of tracked connections.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some((strength, evidence)) = &facts.counts.tracked {
        signs.add(*strength, evidence.clone());
    }
}
