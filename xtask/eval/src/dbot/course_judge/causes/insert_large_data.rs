//! A load: one statement brings very many rows, and pages and log of them keep the disks busy.
//!
//! One session works for long, waits for disks, memory and files grow with it, nothing is read, and it ends when growth ends.
//! Rows that are deleted or indexed right afterwards make the load a preparation of that.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::{Alarm, Cause, Evidence};
use holdup_diagnose::counters::view::{Observation, any};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "insert_large_data", account };

fn account(seen: &Evidence) -> Votes {
    Votes::new()
        .defines(
            6.0,
            "one statement inserts very many rows",
            seen.told("insert_rows", |told| told.largest_insert_rows(), 1e4, 1e5),
        )
        .defines(
            4.0,
            "rows are inserted by the ten thousand",
            seen.level("rows_inserted_per_s", seen.alone(Signal::RowsInserted), 2e3, 2e4),
        )
        .defines(3.0, "one session writes so much that it waits for disks", seen.wrote_alone_until_disks_were_busy())
        .defines(
            2.0,
            "it reads nothing, and ends when growth ends",
            every([seen.worked_alone(), seen.worked_over_again().map(Observation::inverse)]),
        )
        .supports(
            1.0,
            "memory or disks are full of what it brought",
            any([seen.alarm("memory_short", Alarm::MemoryShort), seen.alarm("filesystem_full", Alarm::FilesystemFull)]),
        )
        .refutes(
            3.0,
            "what was inserted is then deleted, updated or indexed",
            seen.holds("insert_is_preparation", |told| told.insert_is_preparation()),
        )
        .refutes(2.0, "it was over before a crowd began to compute", seen.crowd_of_computing(5.0, 20.0))
}
