//! A managed database whose network carries all that its class sustains.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.network_full()) {
        signs.add(strength, evidence);
    }
}
