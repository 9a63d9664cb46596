//! Large reads, in a row.

use crate::instant::Signs;
use crate::instant::facts::{DiskWork, Facts};
use crate::strength::WEAK;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(WEAK, facts.disk_that(|work| work == DiskWork::ReadsMuch));
}
