//! Random reads of pages, by themselves or each with a window of readahead.

use holdup_recording::metrics;
use holdup_recording::words::percent;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::load::{WaitKind, kind};
use crate::instant::statements::READS;
use crate::instant::{MOST, SOME, Signs, stacks};
use crate::resources::disk::PLAIN_READ_BYTES;
use crate::strength::{FAIR, STRONG, WEAK};

/// A call that examines no more rows than this finds them by an index.
const FEW_ROWS: f64 = 1_000.0;

/// The part (0-1) of PostgreSQL's reads that vacuum made, by its own count: they need no memory, because they
/// pass through a ring of their own. 0 if nothing counts them apart.
fn of_vacuum(facts: &Facts<'_>) -> f64 {
    const READS: &str = metrics::postgresql::STAT_IO_READS.name;
    let grown = |labels: &[(&str, &str)]| facts.view.counter(READS, labels, "").map_or(0.0, |reads| reads.delta);
    grown(&[("context", "vacuum")]) / grown(&[]).max(1.0)
}

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
    // What goes beyond the pages of a database was read for another reason.
    let of_pages = facts.disk.as_ref().map_or(1.0, |disk| 1.0 - facts.beyond_pages(disk));
    signs.extend(facts.of_disk(FAIR * 0.9 * of_pages), facts.disk_that(|work| work == DiskWork::ReadsPages));
    signs.extend(facts.of_disk(FAIR), facts.disk_that(|work| work == DiskWork::ReadsWindows));
    // A read by PostgreSQL, or the wait for a page of its buffers that another one is read into. A managed
    // database's own figures tell whether its volume is at a limit.
    let of_page =
        |_: &str, state: &str| ["DataFileRead", "BufferMapping", "BufferIO"].iter().any(|of| state.ends_with(of));
    let strength = match facts.clouds.is_empty() {
        true => WEAK * (1.0 - of_vacuum(facts)),
        false => FAIR * 0.9,
    };
    let waits = |of: &str, state: &str| of_page(of, state) || kind(state) == WaitKind::Read;
    signs.extend(strength, facts.sessions_in(MOST, "waited for a page that was not in memory", waits));
}
