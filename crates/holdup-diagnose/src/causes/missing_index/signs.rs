//! Large reads in a row, and operations that scan a collection.

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::{MOST, Signs};
use crate::strength::{FAIR, WEAK};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(WEAK, facts.disk_that(|work| work == DiskWork::ReadsMuch));
    signs.extend(FAIR, facts.sessions_in(MOST, "read a whole collection", |_, state| state == "COLLSCAN"));
}
