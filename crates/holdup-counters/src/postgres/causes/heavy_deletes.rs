//! Rows are deleted in bulk, and what is left of them waits for vacuum: every scan still passes over it.
//!
//! One session works for long, waits for disks, and goes over the data a second time: it reads again what was written, or goes
//! on when nothing grows any more. Whoever reads afterwards computes, session by session, for rows that no one sees.
//! A plain load does the first but neither reads nor goes on.

use crate::judge::Account;
use crate::postgres::evidence::every;
use crate::postgres::statements::Verb;
use crate::postgres::{Alarm, Cause, Evidence};
use crate::signal::Signal;
use crate::view::any;

pub const CAUSE: Cause =
    Cause { slug: "heavy_deletes", title: "many rows are deleted, and dead rows wait for vacuum", account };

fn account(seen: &Evidence) -> Account {
    let deleted = |name, rate| seen.level(name, rate, 500.0, 5000.0);
    Account::new()
        .defines(
            6.0,
            "statements delete rows in bulk, or many sessions delete",
            any([
                seen.holds("deletes_in_bulk", |told| told.deletes_in_bulk()),
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
        .supports(1.0, "memory is full of pages it touched", seen.alarm("memory_short", Alarm::MemoryShort))
}
