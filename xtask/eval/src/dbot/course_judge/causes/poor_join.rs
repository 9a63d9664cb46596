//! A join is carried out badly: tables without a condition between them, patterns that no index serves, or so many tables that the
//! planner guesses.
//!
//! One session keeps CPUs busy by itself, with parallel workers, on data that is cached: nothing is waited for and no crowd is
//! there. Statements that show a join of one or two tables refute it.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::view::any;
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "poor_join", account };

fn account(seen: &Evidence) -> Votes {
    Votes::new()
        .defines(
            6.0,
            "many tables are joined, or some without a usable condition",
            any([
                seen.told("joined_tables", |told| told.most_tables(), 2.0, 5.0),
                seen.holds("joins_blindly", |told| told.joins_blindly()),
            ]),
        )
        .defines(
            3.0,
            "one session keeps several CPUs busy and waits for nothing",
            every([
                seen.no_crowd(),
                seen.worked_alone(),
                seen.level("alone_run_queue_threads", seen.alone(Signal::RunQueue), 2.5, 4.0),
                seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 0.75, 0.25),
            ]),
        )
        .supports(2.0, "it spills to files", seen.level("temp_bytes_per_s", seen.alone(Signal::TempBytes), 1e5, 1e7))
}
