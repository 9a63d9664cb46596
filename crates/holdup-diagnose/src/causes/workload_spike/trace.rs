//! There is more of everything: more clients, the same transactions.
//!
//! Sessions rise while the cost of a transaction stays the same. Demand that something else holds
//! back shows when it is let in: as a backlog right after the episode.
//!
//! Sessions are rate times time (Little's law). A server that had room for more does more when more
//! is asked of it; if it does not, its sessions rose because each takes longer, or because clients
//! open connections while they wait.

use crate::trace::quantities::{
    COMMITS, CONNECTED, CPU_PER_COMMIT, KEYED_PER_COMMIT, LOG_PER_COMMIT, REQUESTS_PER_COMMIT, RUNNING, SERVER_CPU,
};
use crate::trace::view::{Observation, View, all, any, group};
use crate::trace::votes::Votes;
use crate::trace::{Pattern, lighter, piled_up_at_rows};

pub const PATTERN: Pattern =
    Pattern { name: "workload_spike", title: "more clients ask for more of the same", fix: None, account };

fn account(seen: &View) -> Votes {
    Votes::new()
        .defines(
            3.0,
            "there are more sessions",
            any([seen.up(&CONNECTED, 1.0), seen.up(&RUNNING, 1.0), seen.up_since_before(&RUNNING, 1.0)]),
        )
        .supports(1.0, "more is done", seen.up(&COMMITS, 1.0))
        .supports(
            1.0,
            "a transaction costs the same as before",
            group([
                seen.flat(&CPU_PER_COMMIT, 1.0),
                seen.flat(&KEYED_PER_COMMIT, 1.0),
                seen.flat(&LOG_PER_COMMIT, 1.0),
                seen.flat(&REQUESTS_PER_COMMIT, 1.0),
            ]),
        )
        .refutes(
            2.0,
            "the server uses more CPU, in all and per transaction",
            all([seen.up(&SERVER_CPU, 1.0), seen.up(&CPU_PER_COMMIT, 1.0)]),
        )
        .refutes(2.0, "there are more transactions, and lighter ones", lighter(seen))
        .refutes(2.0, "they wait for row locks more than before", piled_up_at_rows(seen))
        .gates(
            "more is done than before, or the server had no room for more",
            idle_and_does_no_more(seen).map(Observation::inverse),
        )
}

/// Whether the server had hardly a session at work before, and does no more now.
fn idle_and_does_no_more(seen: &View) -> Option<Observation> {
    all([seen.normal_from_to(&RUNNING, 4.0, 2.0), seen.steady(&COMMITS, 0.5)])
}
