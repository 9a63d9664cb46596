//! Random reads of pages, by themselves or each with a window of readahead.

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::load::{WaitKind, kind};
use crate::instant::{MOST, Signs};
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
    signs.extend(FAIR * 0.9, facts.disk_that(|work| work == DiskWork::ReadsPages));
    signs.extend(FAIR, facts.disk_that(|work| work == DiskWork::ReadsWindows));
    if !facts.clouds.is_empty() {
        let reads = |_: &str, state: &str| kind(state) == WaitKind::Read;
        signs.extend(FAIR * 0.9, facts.sessions_in(MOST, "waited for pages that are not in memory", reads));
    }
}
