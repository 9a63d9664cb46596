//! Many sessions insert at once, and what they insert goes through one log and the same last pages of a table.
//!
//! From the start many more sessions are there than compute: each has much log to write, or waits for the table to be extended,
//! and one flush is always under way. Sessions that compute are held up by something else.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::statements::Verb;
use crate::dbot::course_judge::{Alarm, Cause, Evidence};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "concurrent_inserts", account };

fn account(seen: &Evidence) -> Votes {
    Votes::new()
        .defines(
            6.0,
            "many sessions insert a few rows each time",
            seen.told("inserting_sessions", |told| told.sessions_of_small(Verb::Insert), 1.0, 10.0),
        )
        .defines(
            4.0,
            "rows are inserted by the thousand",
            seen.level("rows_inserted_per_s", seen.crowd(Signal::RowsInserted), 200.0, 2000.0),
        )
        .defines(
            3.0,
            "from the start a large crowd commits",
            every([seen.crowd_from_the_start(), seen.crowd_of(8.0, 25.0), seen.crowd_commits()]),
        )
        .refutes(3.0, "the crowd computes", seen.crowd_computes())
        .supports(1.0, "disks fill up", seen.alarm("filesystem_full", Alarm::FilesystemFull))
        .refutes(
            4.0,
            "what was inserted is then deleted, updated or indexed",
            seen.holds("insert_is_preparation", |told| told.insert_is_preparation()),
        )
        .refutes(
            2.0,
            "other writes are run as much",
            seen.told("sessions_of_mixed_writes", |told| told.sessions_of_mixed_writes(), 1.0, 10.0),
        )
}
