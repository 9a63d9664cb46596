//! Somebody else on the machine takes the CPU: a batch job, a backup's compression, another tenant.
//!
//! It must leave no idle CPU while the server's own use stays flat or falls, and threads queue for a CPU. A server that
//! uses more CPU itself refutes it: then the CPU is short because of what is asked of the server.

use super::Cause;
use super::quantities::{BUSY, IDLE, RUN_QUEUE, SERVER_CPU, SERVER_SHARE};
use crate::judge::Account;
use crate::view::{View, all, group};

pub const CAUSE: Cause =
    Cause { slug: "cpu_taken_by_others", title: "the CPU is used by something beside the database", account };

fn account(seen: &View) -> Account {
    Account::new()
        // A quarter idle is what queues of a busy but sound machine leave; a twentieth is within a sample's error of none.
        .defines(
            3.0,
            "the CPU has no idle time left",
            group([seen.level_from_to(&IDLE, 0.25, 0.05), seen.down(&IDLE, 2.0)]),
        )
        .supports(2.0, "the server's share of the CPU in use falls", seen.down(&SERVER_SHARE, 1.0))
        .supports(1.0, "threads queue for a CPU", seen.up(&RUN_QUEUE, 1.0))
        .refutes(3.0, "the server itself uses more CPU", seen.up(&SERVER_CPU, 1.0))
        .gates("more of the CPU is in use than normally", all([seen.up(&BUSY, 0.5)]))
}
