//! Disks have more to do than they can: threads wait for them, more of them than one session and its workers are.
//!
//! What asks the disks for so much is another cause where it is seen; this one is what is left to say otherwise.

use crate::judge::Account;
use crate::postgres::{Cause, Evidence};
use crate::signal::Signal;
use crate::view::any;

pub const CAUSE: Cause = Cause { slug: "io_contention", title: "threads queue for disks", account };

fn account(seen: &Evidence) -> Account {
    Account::new().defines(
        3.0,
        "more threads wait for disks than one query has",
        any([
            seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 2.0, 6.0),
            seen.level("crowd_blocked_threads", seen.crowd(Signal::BlockedThreads), 2.0, 6.0),
        ]),
    )
}
