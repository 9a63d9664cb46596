//! A query fetches as much as its tables hold.
//!
//! One session and its parallel workers wait for disks all the time: a scan of more than memory holds. Writes in a queue are a load
//! or a delete, not a fetch.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "fetch_large_data", account };

fn account(seen: &Evidence) -> Votes {
    Votes::new()
        .defines(
            6.0,
            "a query has no key, no limit and no group",
            seen.holds("fetches_whole_tables", |told| told.fetches_whole_tables()),
        )
        .defines(
            3.0,
            "one session and its workers wait for disks all the time",
            every([
                seen.no_crowd(),
                seen.worked_alone(),
                seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 1.0, 2.5),
            ]),
        )
        .supports(
            2.0,
            "rows are scanned by the hundred thousand",
            seen.level("rows_scanned_per_s", seen.alone(Signal::RowsScanned), 1e4, 1e6),
        )
        .refutes(
            2.0,
            "writes queue at the disks",
            seen.level("alone_disk_writes_in_flight", seen.alone(Signal::DiskWritesInFlight), 20.0, 80.0),
        )
}
