//! Another process on the machine takes the disk: a copy, a log shipper, another tenant.
//!
//! Disks must write more than the server accounts for, and unused CPU time turns into waits for
//! them. Writes of the server that explain the traffic refute it. A busy disk proves nothing: on a
//! loaded database it always is.

use super::Pattern;
use crate::counters::view::{View, all, any};
use crate::counters::votes::Votes;
use holdup_signals::counters::quantities::{
    DISK_BEYOND_SERVER, DISK_OPERATIONS, DISK_OPERATIONS_BEYOND_SERVER, DISK_WRITES, IOWAIT, IOWAIT_OF_UNUSED, KERNEL,
    PAGES, RUNNING, SERVER_WRITES,
};

pub const PATTERN: Pattern = Pattern {
    name: "io_taken_by_others",
    cause: "disk_saturated",
    title: "another process uses the disk",
    fix: Some(
        "Find the process (holdup watch --watch host --watch pid:N: bytes by process, or iotop), move it to another volume or another time, or limit it: IOWriteBandwidthMax= of its systemd unit, io.max of its cgroup, ionice.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    let bytes = all([seen.up(&DISK_BEYOND_SERVER, 1.0), seen.up(&DISK_WRITES, 1.0)]);
    let operations = all([seen.up(&DISK_OPERATIONS_BEYOND_SERVER, 0.5), seen.up(&DISK_OPERATIONS, 0.5)]);
    let kernel = all([seen.up(&KERNEL, 1.0), seen.not_down(&IOWAIT, 0.5), seen.steady(&RUNNING, 0.25)]);
    Votes::new()
        .defines(
            3.0,
            "disks write more than the server accounts for, or the kernel works without matching client traffic",
            any([bytes, operations, kernel]),
        )
        .supports(3.0, "unused CPU time turns into waits for disks", seen.up(&IOWAIT_OF_UNUSED, 0.5))
        .refutes(2.0, "the server itself writes more", any([seen.up(&SERVER_WRITES, 1.0), seen.up(&PAGES, 1.0)]))
}
