//! A managed database's volume that does all the operations that it may.

use holdup_signals::host::throttle::Unit;

use crate::instant::Signs;
use crate::instant::cloud::add_of_volume;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    add_of_volume(facts, signs, |database| database.at_ceiling(Unit::Operations));
}
