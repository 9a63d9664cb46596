//! More clients that commit a row at a time.
//!
//! There are a few more sessions, each transaction is as heavy as before or lighter, and neither
//! the CPU nor the run queue show more work. What clients send grows no faster than what they
//! receive: that would be rows in bulk.

use crate::trace::quantities::{
    BUSY, CONNECTED, IDLE_SESSIONS, PER_SENT, RECEIVED_PER_COMMIT, RUN_QUEUE, RUNNING, SWITCHES_PER_COMMIT,
};
use crate::trace::view::{Observation, View, all, any};
use crate::trace::votes::Votes;
use crate::trace::{Pattern, lighter, piled_up_at_rows};

pub const PATTERN: Pattern = Pattern {
    name: "many_small_commits",
    title: "many clients commit a row at a time",
    fix: Some(
        "Put the rows of one piece of work into one transaction, or let several sessions' commits share a flush (binlog_group_commit_sync_delay, commit_delay). If losing the last second is acceptable: innodb_flush_log_at_trx_commit=2, synchronous_commit=off.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    let sessions = |from, to| any([seen.up_from_to(&CONNECTED, from, to), seen.up_from_to(&RUNNING, from, to)]);
    Votes::new()
        // A twelfth to a sixth more: slower work alone keeps fewer waiting.
        .defines(3.0, "there are some more sessions", sessions(0.1, 0.2))
        .supports(
            2.0,
            "a transaction is as heavy as before, or lighter",
            any([
                all([
                    seen.steady(&RECEIVED_PER_COMMIT, 1.0),
                    seen.steady(&SWITCHES_PER_COMMIT, 1.0),
                    seen.steady(&PER_SENT, 0.5),
                ]),
                lighter(seen),
            ]),
        )
        .refutes(3.0, "some of them are idle", seen.up(&IDLE_SESSIONS, 0.5))
        // Half again as many would be a spike.
        .gates("there are fewer of them than in a spike", sessions(0.5, 0.75).map(Observation::inverse))
        .refutes(3.0, "clients send more per byte they receive", seen.up(&PER_SENT, 1.0))
        .refutes(3.0, "the machine has more to do", any([seen.up(&BUSY, 2.0), seen.up(&RUN_QUEUE, 2.0)]))
        .refutes(3.0, "sessions wait for row locks more than before", piled_up_at_rows(seen))
}
