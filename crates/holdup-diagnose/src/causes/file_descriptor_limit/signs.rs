//! A log that says that no descriptor was left.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some((strength, evidence)) = &facts.counts.descriptors {
        signs.add(*strength, evidence.clone());
    }
}
