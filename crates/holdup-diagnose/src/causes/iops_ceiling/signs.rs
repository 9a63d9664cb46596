//! A managed database's volume that does all the operations that it may.

use holdup_signals::host::throttle::Unit;

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    facts.add_of_volume(signs, |database| database.at_ceiling(Unit::Operations));
}
