//! A managed database's volume that does all the operations that it may.

use holdup_signals::host::throttle::Unit;

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.at_ceiling(Unit::Operations)) {
        signs.add(strength, evidence);
    }
}
