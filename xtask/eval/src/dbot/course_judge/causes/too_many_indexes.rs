//! A table has more indexes than its reads need, and each of them is written with every row that is.
//!
//! Before its writers are slow somebody built the indexes: one session that sorts, so it computes, with parallel workers beside it
//! (`max_parallel_maintenance_workers`, 2 by default), and hardly waits for disks. Then sessions write, commit by commit. A crowd
//! that computes in each of its sessions is no crowd of writers and refutes it.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "too_many_indexes", account };

fn account(seen: &Evidence) -> Votes {
    let indexes = |name| seen.told(name, |told| told.indexes_of_written_table(), 0.5, 2.0);
    Votes::new()
        .defines(6.0, "several indexes are made on a table that is written", indexes("indexes_of_written_table"))
        .defines(
            3.0,
            "one session computes first, with workers beside it and without waiting for disks",
            every([
                seen.worked_alone(),
                seen.level("alone_run_queue_threads", seen.alone(Signal::RunQueue), 2.5, 4.0),
                seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 0.75, 0.25),
                seen.crowd_of(1.0, 3.0),
            ]),
        )
        .defines(
            2.0,
            "one session is there for long without waiting for disks, then several commit",
            every([
                seen.level("alone_connected_s", seen.course.map(|course| course.alone_connected_s), 15.0, 30.0),
                seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 0.75, 0.25),
                seen.crowd_of(1.0, 3.0),
                seen.crowd_commits(),
            ]),
        )
        .supports(2.0, "then sessions commit, one flush after the other", seen.crowd_commits())
        .refutes(2.0, "a large crowd only computes", seen.crowd_of_computing(10.0, 30.0))
}
