//! Random reads of pages, by themselves or each with a window of readahead.

use holdup_recording::words::percent;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::statements::READS;
use crate::instant::{MOST, SOME, Signs};
use crate::resources::disk::PLAIN_READ_BYTES;
use crate::strength::{FAIR, STRONG, WEAK};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    // Of what was read, a thread waited for each page: data does not fit in memory.
    if let Some((each, evidence)) = &facts.read_per_fault
        && facts.disk_that(|work| work != DiskWork::Writes).is_some()
        && *each <= PLAIN_READ_BYTES
    {
        signs.add(STRONG, evidence.clone());
    }
    for heavy in &facts.statements.heavy {
        let read = heavy.in_stages(&READS);
        if read >= MOST && heavy.share * read >= SOME {
            let why = format!("{} of that waited for reads from files", percent(read));
            let evidence = heavy.evidence(&facts.view, "duration_ns", percent(read), &why);
            signs.accounting(FAIR, evidence, heavy.share(read));
        }
    }
    // A read by PostgreSQL, or the wait for a page of its buffers that another one is read into.
    let of_page =
        |_: &str, state: &str| ["DataFileRead", "BufferMapping", "BufferIO"].iter().any(|of| state.ends_with(of));
    facts.holds(signs, (WEAK, MOST), "waited for a page that was not in memory", of_page);
    signs.extend(FAIR * 0.9, facts.disk_that(|work| work == DiskWork::ReadsPages));
    signs.extend(FAIR, facts.disk_that(|work| work == DiskWork::ReadsWindows));
}
