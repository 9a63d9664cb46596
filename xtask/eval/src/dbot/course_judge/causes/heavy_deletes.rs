//! Rows are deleted in bulk, and what is left of them waits for vacuum: every scan still passes over it.
//!
//! One session works for long, waits for disks, and goes over the data a second time: it reads again what was written, or goes
//! on when nothing grows any more. Whoever reads afterwards computes, session by session, for rows that no one sees.
//! A plain load does the first but neither reads nor goes on.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::statements::Verb;
use crate::dbot::course_judge::{Alarm, Cause, Evidence, Workload};
use holdup_diagnose::counters::view::any;
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "heavy_deletes", account };

/// Dead rows are in the way of who reads the table; where nobody is seen to, the delete is half the matter.
fn bulk(told: &Workload) -> f64 {
    match (told.deletes_in_bulk(), told.reads_what_was_deleted_from()) {
        (true, true) => 1.0,
        (true, false) => 0.5,
        (false, _) => 0.0,
    }
}

fn account(seen: &Evidence) -> Votes {
    let deleted = |name, rate| seen.level(name, rate, 500.0, 5000.0);
    Votes::new()
        .defines(
            6.0,
            "statements delete rows in bulk, or many sessions delete",
            any([
                seen.told("deletes_in_bulk", bulk, 0.0, 1.0),
                seen.told("deleting_sessions", |told| told.sessions_of_small(Verb::Delete), 1.0, 5.0),
                seen.holds("vacuum_asked_for", |told| told.vacuums()),
            ]),
        )
        .defines(
            4.0,
            "rows are deleted by the thousand",
            any([
                deleted("alone_rows_deleted_per_s", seen.alone(Signal::RowsDeleted)),
                deleted("crowd_rows_deleted_per_s", seen.crowd(Signal::RowsDeleted)),
            ]),
        )
        .defines(3.0, "one session changes so much that it waits for disks", seen.wrote_alone_until_disks_were_busy())
        .defines(2.0, "it goes over the data again", every([seen.worked_alone(), seen.worked_over_again()]))
        .supports(3.0, "every session that reads afterwards computes", seen.crowd_of_computing(5.0, 20.0))
        .supports(1.0, "dead rows wait for vacuum", seen.level("dead_rows", seen.crowd(Signal::DeadRows), 1e5, 1e6))
        .supports(1.0, "memory is full of pages it touched", seen.alarm("memory_short", Alarm::MemoryShort))
        .refutes(
            2.0,
            "other writes are run as much",
            seen.told("sessions_of_mixed_writes", |told| told.sessions_of_mixed_writes(), 1.0, 10.0),
        )
}
