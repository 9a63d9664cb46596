//! Sessions wait for locks that others hold for long.
//!
//! The server says who waits; without it, a crowd that neither computes nor waits for disks sleeps for something, and a lock is what
//! PostgreSQL lets sessions sleep for. Both the run queue and blocked threads must be known for that.

use crate::dbot::course_judge::evidence::every;
use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::view::Observation;
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "row_lock_contention", account };

fn account(seen: &Evidence) -> Votes {
    let asleep = every([
        seen.crowd_of(3.0, 10.0),
        seen.crowd_computes().map(Observation::inverse),
        seen.level("crowd_blocked_threads", seen.crowd(Signal::BlockedThreads), 0.4, 0.1),
    ]);
    Votes::new()
        .defines(
            5.0,
            "sessions wait for locks",
            seen.level("lock_waiting_sessions", seen.crowd(Signal::LockWaiting), 0.0, 3.0),
        )
        .defines(3.0, "a crowd is there that neither computes nor waits for disks", asleep)
}
