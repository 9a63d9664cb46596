//! Rows are looked up by a column without an index, so each lookup reads the table.
//!
//! Every session of a crowd computes and waits for nothing, though each wants one row. Many dead rows do the same to scans:
//! where rows were deleted or updated in bulk before, that explains it better. An index made on the table refutes it.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "missing_index", account };

fn account(seen: &Evidence) -> Votes {
    Votes::new()
        .defines(
            6.0,
            "a table that was just filled, and got no index, is searched by key",
            seen.told("sessions_reading_fresh_table", |told| told.sessions_reading_fresh_table(), 0.0, 5.0),
        )
        .defines(3.0, "every session of a crowd computes", seen.crowd_of_computing(2.0, 8.0))
        .supports(
            1.0,
            "and waits for nothing",
            seen.level("crowd_blocked_threads", seen.crowd(Signal::BlockedThreads), 0.75, 0.25),
        )
        .refutes(2.0, "rows were changed in bulk before", every([seen.worked_alone(), seen.worked_over_again()]))
        .refutes(4.0, "rows are deleted in bulk", seen.holds("deletes_in_bulk", |told| told.deletes_in_bulk()))
        .refutes(4.0, "indexes are made", seen.told("indexes_made", |told| told.indexes_made(), 0.0, 1.0))
}
