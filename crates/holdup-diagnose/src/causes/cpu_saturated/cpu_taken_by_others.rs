//! Another process on the machine takes the CPU: a batch job, a backup's compression, another
//! tenant.
//!
//! It must leave no CPU idle while the server's own use stays flat or falls, and threads queue for
//! a CPU. A server that uses more CPU itself refutes it: its own work then makes the CPU short.

use crate::trace::Pattern;
use crate::trace::quantities::{BUSY, IDLE, RUN_QUEUE, SERVER_CPU, SERVER_SHARE};
use crate::trace::view::{View, all, group};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern = Pattern {
    name: "cpu_taken_by_others",
    title: "another process uses the CPU",
    fix: Some(
        "Find the process (holdup watch --watch host --watch pid:N, or top sorted by CPU), move it to another machine or another time, or reserve CPUs for the database: CPUAffinity= or CPUWeight= of its systemd unit, a cpuset, another node for the pod.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    Votes::new()
        // A busy but healthy machine is idle for a quarter of the time; a twentieth is within a
        // sample's error of none.
        .defines(
            3.0,
            "the CPU has no idle time left",
            group([seen.level_from_to(&IDLE, 0.25, 0.05), seen.down(&IDLE, 2.0)]),
        )
        .supports(2.0, "the server's share of the CPU in use falls", seen.down(&SERVER_SHARE, 1.0))
        .supports(1.0, "threads queue for a CPU", seen.up(&RUN_QUEUE, 1.0))
        .refutes(3.0, "the server itself uses more CPU", seen.up(&SERVER_CPU, 1.0))
        // A fifth more: a busy machine varies by less.
        .gates("more of the CPU is in use than normally", all([seen.up(&BUSY, 0.25)]))
}
