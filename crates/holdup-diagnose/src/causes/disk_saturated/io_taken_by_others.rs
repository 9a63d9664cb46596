//! Another process on the machine takes the disk: a copy, a log shipper, another tenant.
//!
//! Disks must write more than the server accounts for, and unused CPU time turns into waits for
//! them. Growth of that ratio does not show it: while disks write less than the server asked for
//! (the cache holds the rest, or its volume is elsewhere), all of it can be the server's. Writes of
//! the server that explain the traffic refute it. A busy disk proves nothing: on a loaded database
//! it always is.

use crate::trace::Pattern;
use crate::trace::quantities::{
    DISK_BEYOND_SERVER, DISK_OPERATIONS, DISK_OPERATIONS_BEYOND_SERVER, DISK_WRITES, IOWAIT, IOWAIT_OF_UNUSED, KERNEL,
    PAGES, RUNNING, SERVER_WRITES,
};
use crate::trace::view::{View, all, any};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern = Pattern {
    name: "io_taken_by_others",
    title: "another process uses the disk",
    fix: Some(
        "Find the process (holdup watch --watch host --watch pid:N: bytes by process, or iotop), move it to another volume or another time, or limit it: IOWriteBandwidthMax= of its systemd unit, io.max of its cgroup, ionice.",
    ),
    account,
};

/// Bytes on disks for a byte that the server wrote: up to here the file system's journal, metadata
/// and whole blocks of a log make up the difference …
const EXPLAINED: f64 = 1.5;

/// … and from here on most bytes are those of others.
const OTHERS: f64 = 3.0;

/// Disk writes for a page that the server wrote: a page takes one at most, and the log some.
const EXPLAINED_OPERATIONS: f64 = 1.0;

/// See [`OTHERS`].
const OTHERS_OPERATIONS: f64 = 2.0;

fn account(seen: &View) -> Votes {
    let bytes = all([
        seen.level_from_to(&DISK_BEYOND_SERVER, EXPLAINED, OTHERS),
        seen.up(&DISK_BEYOND_SERVER, 1.0),
        seen.up(&DISK_WRITES, 1.0),
    ]);
    let operations = all([
        seen.level_from_to(&DISK_OPERATIONS_BEYOND_SERVER, EXPLAINED_OPERATIONS, OTHERS_OPERATIONS),
        seen.up(&DISK_OPERATIONS_BEYOND_SERVER, 0.5),
        seen.up(&DISK_OPERATIONS, 0.5),
    ]);
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
