//! A subquery takes values of the query around it, so that it is run once for each row of it.
//!
//! The text tells. PostgreSQL runs what references a correlated subplan in the session itself and not in parallel workers, so one
//! session that keeps one CPU busy, no more and no less, for long goes with it.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "correlated_subquery", account };

fn account(seen: &Evidence) -> Votes {
    let running = seen.alone(Signal::RunQueue);
    Votes::new()
        .defines(
            6.0,
            "a subquery takes values of the query around it",
            seen.holds("correlated", |told| told.correlates()),
        )
        .defines(
            2.0,
            "one session keeps one CPU busy, and no worker helps",
            every([
                seen.no_crowd(),
                seen.worked_alone(),
                // The reader of `/proc` is one more.
                seen.level("alone_run_queue_threads", running, 1.5, 1.9),
                seen.level("alone_run_queue_threads at most", running, 3.0, 2.4),
                seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 0.5, 0.1),
            ]),
        )
}
