//! A managed database whose connections stand at their limit.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.at_connection_limit()) {
        signs.add(strength, evidence);
    }
}
