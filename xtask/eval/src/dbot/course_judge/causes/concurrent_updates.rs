//! Many sessions update rows of one small set at once: they wait for each other's row locks, and leave row versions behind.
//!
//! From the start several sessions commit, a flush of the log always under way, and they compute: what they change is cached, little
//! log is written for it, and finding the last of many versions of a row costs time. Nothing is read from disks. Indexes that were
//! built on the table make the same updates slow by themselves.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::statements::Verb;
use crate::dbot::course_judge::{Alarm, Cause, Evidence};
use holdup_diagnose::counters::view::any;
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "concurrent_updates", account };

fn account(seen: &Evidence) -> Votes {
    const MIB: f64 = 1024.0 * 1024.0;
    Votes::new()
        .defines(
            6.0,
            "many sessions update by key",
            seen.told("updating_sessions", |told| told.sessions_of_small(Verb::Update), 0.0, 5.0),
        )
        .defines(
            4.0,
            "rows are updated by the hundred",
            seen.level("rows_updated_per_s", seen.crowd(Signal::RowsUpdated), 100.0, 1000.0),
        )
        .defines(
            3.0,
            "from the start sessions compute and commit: what they change is cached",
            every([seen.crowd_from_the_start(), seen.crowd_computes(), seen.crowd_commits()]),
        )
        .defines(2.0, "from the start sessions commit", every([seen.crowd_from_the_start(), seen.crowd_commits()]))
        .supports(
            1.0,
            "nothing is read from disks",
            any([
                seen.level("crowd_disk_read_bytes_per_s", seen.crowd(Signal::DiskReadBytes), 4.0 * MIB, MIB),
                seen.level("crowd_disk_reads_per_s", seen.crowd(Signal::DiskReads), 400.0, 100.0),
            ]),
        )
        .supports(
            2.0,
            "sessions wait for row locks",
            seen.level("lock_waiting_sessions", seen.crowd(Signal::LockWaiting), 0.0, 2.0),
        )
        .supports(1.0, "the CPUs are busy", seen.alarm("cpu_high", Alarm::CpuHigh))
        .refutes(
            5.0,
            "indexes were made on what is updated",
            seen.told("indexes_of_written_table", |told| told.indexes_of_written_table(), 0.5, 2.0),
        )
        .refutes(
            2.0,
            "other writes are run as much",
            seen.told("sessions_of_mixed_writes", |told| told.sessions_of_mixed_writes(), 1.0, 10.0),
        )
}
