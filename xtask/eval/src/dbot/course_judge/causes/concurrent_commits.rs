//! Many sessions commit transactions so small that the flush of the log, which all must go through, is most of their work.
//!
//! Commits come by the thousand, or statements show many sessions with small writes of several kinds; what transactions of one
//! kind do is said better by the causes named for inserts and updates. That a flush is under way fits every writer.

use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "concurrent_commits", account };

fn account(seen: &Evidence) -> Votes {
    Votes::new()
        .defines(
            4.0,
            "many sessions run small writes of several kinds",
            seen.told("sessions_of_mixed_writes", |told| told.sessions_of_mixed_writes(), 1.0, 10.0),
        )
        .defines(
            3.0,
            "transactions are committed by the thousand",
            seen.level("commits_per_s", seen.crowd(Signal::Commits), 300.0, 3000.0),
        )
        .supports(2.0, "a flush of the log is always under way", seen.crowd_commits())
        .refutes(
            3.0,
            "they write to a table that got indexes",
            seen.told("indexes_of_written_table", |told| told.indexes_of_written_table(), 0.5, 2.0),
        )
        .refutes(2.0, "rows are deleted in bulk", seen.holds("deletes_in_bulk", |told| told.deletes_in_bulk()))
}
