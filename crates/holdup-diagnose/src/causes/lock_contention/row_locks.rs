//! Transactions wait for each other's rows.
//!
//! Most of the running sessions wait for row locks and the resources idle, but clients keep
//! talking: bytes do not fall as they do when the network delays all clients (which lengthens lock
//! waits, too).

use crate::trace::Pattern;
use crate::trace::quantities::{IDLE, RECEIVED, SERVER_CPU, WAITING, WAITING_OF_RUNNING, WORKING};
use crate::trace::view::{Observation, View, all, any, group};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern =
    Pattern { name: "lock_contention", title: "transactions wait for each other's rows", fix: None, account };

fn account(seen: &View) -> Votes {
    Votes::new()
        .defines(
            3.0,
            "more sessions wait for row locks, and fewer do anything else",
            group([
                any([seen.up(&WAITING, 1.0), seen.up(&WAITING_OF_RUNNING, 0.5)]),
                any([seen.down(&WORKING, 1.0), seen.up(&WAITING_OF_RUNNING, 1.0)]),
            ]),
        )
        .gates("most of the running sessions wait for row locks", seen.level_from_to(&WAITING_OF_RUNNING, 0.25, 0.75))
        .supports(1.0, "the server does not use more CPU", seen.steady(&SERVER_CPU, 1.0))
        .supports(1.0, "the machine has idle time", seen.level_from_to(&IDLE, 0.1, 0.5))
        .refutes(
            2.0,
            "clients send less, and waiters don't explain it",
            all([seen.down(&RECEIVED, 1.0), seen.up(&WAITING_OF_RUNNING, 1.0).map(Observation::inverse)]),
        )
        .refutes(2.0, "more sessions do other work, too", seen.up(&WORKING, 1.0))
}
