//! Disks have more to do than they can: threads wait for them, more of them than one session and its workers are.
//!
//! What asks the disks for so much is another cause where it is seen; this one is what is left to say otherwise. One session that
//! writes until disks are busy is such a cause.

use crate::dbot::course_judge::{Cause, Evidence};
use holdup_diagnose::counters::view::any;
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "io_contention", account };

fn account(seen: &Evidence) -> Votes {
    Votes::new()
        .defines(
            3.0,
            "more threads wait for disks than one query has",
            any([
                seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 2.0, 6.0),
                seen.level("crowd_blocked_threads", seen.crowd(Signal::BlockedThreads), 2.0, 6.0),
            ]),
        )
        .refutes(2.0, "one session's own writes keep them busy", seen.wrote_alone_until_disks_were_busy())
}
