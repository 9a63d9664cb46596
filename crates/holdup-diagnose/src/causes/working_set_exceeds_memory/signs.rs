//! Random reads of pages, by themselves or each with a window of readahead.

use holdup_recording::words::percent;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::load::{WaitKind, kind};
use crate::instant::statements::READS;
use crate::instant::{MOST, SOME, Signs, stacks};
use crate::resources::disk::PLAIN_READ_BYTES;
use crate::strength::{FAIR, STRONG, WEAK};

/// A call that examines no more rows than this finds them by an index.
const FEW_ROWS: f64 = 1_000.0;

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
            // A few rows by an index, each read from a file: they are not in memory. Many rows are
            // read through for want of an index.
            let strength = if heavy.of.examined_each() <= FEW_ROWS { STRONG } else { FAIR };
            signs.accounting(strength, evidence, heavy.share(read));
        }
    }
    signs.extend(WEAK, stacks::many(facts, &["page"], "waited for a page of a file"));
    signs.extend(facts.of_disk(FAIR * 0.9), facts.disk_that(|work| work == DiskWork::ReadsPages));
    signs.extend(facts.of_disk(FAIR), facts.disk_that(|work| work == DiskWork::ReadsWindows));
    // A read by PostgreSQL, or the wait for a page of its buffers that another one is read into. A managed
    // database's own figures tell whether its volume is at a limit.
    let of_page =
        |_: &str, state: &str| ["DataFileRead", "BufferMapping", "BufferIO"].iter().any(|of| state.ends_with(of));
    let strength = match facts.clouds.is_empty() {
        // A vacuum reads pages, too, and takes the place of others.
        true if facts.vacuums.is_some() => WEAK * 0.5,
        true => WEAK,
        false => FAIR * 0.9,
    };
    let waits = |of: &str, state: &str| of_page(of, state) || kind(state) == WaitKind::Read;
    signs.extend(strength, facts.sessions_in(MOST, "waited for a page that was not in memory", waits));
}
