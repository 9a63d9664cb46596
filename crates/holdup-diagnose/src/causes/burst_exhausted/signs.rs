//! Credits of a managed database's volume that are used up.

use crate::instant::Signs;
use crate::instant::cloud::add_of_volume;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    add_of_volume(facts, signs, |database| database.out_of_credits());
}
