//! Random reads of pages, by themselves or each with a window of readahead.

use crate::instant::Signs;
use crate::instant::facts::{DiskWork, Facts};
use crate::resources::disk::PLAIN_READ_BYTES;
use crate::strength::{FAIR, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    // Of what was read, a thread waited for each page: data does not fit in memory.
    if let Some((each, evidence)) = &facts.read_per_fault
        && facts.disk_that(|work| work != DiskWork::Writes).is_some()
        && *each <= PLAIN_READ_BYTES
    {
        signs.add(STRONG, evidence.clone());
    }
    signs.extend(facts.of_disk(FAIR * 0.9), facts.disk_that(|work| work == DiskWork::ReadsPages));
    signs.extend(facts.of_disk(FAIR), facts.disk_that(|work| work == DiskWork::ReadsWindows));
}
