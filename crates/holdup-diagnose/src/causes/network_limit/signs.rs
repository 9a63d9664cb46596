//! A full table of tracked connections, by its size or by what the kernel dropped for it.

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{CERTAIN, FAIR};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some((strength, evidence)) = &facts.counts.tracked {
        signs.add(*strength, evidence.clone());
    }
    for (kind, strength) in [("conntrack_full", CERTAIN), ("neighbor_table_full", FAIR)] {
        signs.extend(strength, facts.happened.of(kind, |_| true).map(|full| full.told()));
    }
}
