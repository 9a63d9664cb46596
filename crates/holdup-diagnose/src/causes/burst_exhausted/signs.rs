//! Credits of a managed database's volume that are used up.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    facts.add_of_volume(signs, |database| database.out_of_credits());
}
