//! A subquery takes values of the query around it, so that it is run once for each row of it.
//!
//! Only the text tells. That one session keeps CPUs or disks busy by itself goes with it, as with every heavy query.

use crate::judge::Account;
use crate::postgres::evidence::every;
use crate::postgres::{Cause, Evidence};
use crate::signal::Signal;
use crate::view::any;

pub const CAUSE: Cause =
    Cause { slug: "correlated_subquery", title: "a subquery is run again for each row of another query", account };

fn account(seen: &Evidence) -> Account {
    Account::new()
        .defines(
            6.0,
            "a subquery takes values of the query around it",
            seen.holds("correlated", |told| told.correlates()),
        )
        .supports(
            1.0,
            "one session keeps the machine busy",
            every([
                seen.no_crowd(),
                any([
                    seen.level("alone_run_queue_threads", seen.alone(Signal::RunQueue), 2.0, 4.0),
                    seen.level("alone_blocked_threads", seen.alone(Signal::BlockedThreads), 1.0, 2.5),
                ]),
            ]),
        )
}
