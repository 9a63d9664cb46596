//! Somebody else on the machine takes the disk: a copy, a log shipper, another tenant.
//!
//! Disks must write more than the server can account for, and unused CPU time turns into waits for them. Writes of the
//! server that explain the traffic refute it. That a disk is busy proves nothing: on a loaded database it always is.

use super::Cause;
use super::quantities::{DISK_BEYOND_SERVER, DISK_WRITES, IOWAIT_OF_UNUSED, SERVER_WRITES};
use crate::judge::Account;
use crate::view::{View, all};

pub const CAUSE: Cause =
    Cause { slug: "io_taken_by_others", title: "the disk is used by something beside the database", account };

fn account(seen: &View) -> Account {
    Account::new()
        .defines(
            3.0,
            "disks write more than the server can account for",
            all([seen.up(&DISK_BEYOND_SERVER, 1.0), seen.up(&DISK_WRITES, 1.0)]),
        )
        .supports(2.0, "unused CPU time turns into waits for disks", seen.up(&IOWAIT_OF_UNUSED, 1.0))
        .refutes(2.0, "the server itself writes more", seen.up(&SERVER_WRITES, 1.0))
}
