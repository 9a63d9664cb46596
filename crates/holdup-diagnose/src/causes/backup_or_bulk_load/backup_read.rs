//! A backup or an export reads the whole database and sends it away.
//!
//! Rows are scanned and bytes leave in bulk, read from files beyond what the pool requests, while
//! changes and log stay flat or stop. More changed rows refute it: a restore reads, too.

use crate::trace::Pattern;
use crate::trace::quantities::{CHANGED, LOG, READ_AHEAD, SCANNED, SENT, SENT_PER_COMMIT, SERVER_READS};
use crate::trace::view::{View, all, any, group};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern = Pattern {
    name: "backup_read",
    title: "a backup or an export reads everything",
    fix: Some(
        "Take it from a replica, or at a quiet time, or slower: --single-transaction with --quick, --throttle of xtrabackup, a LIMIT by key in an export. innodb_old_blocks_time keeps pages that are read once from pushing out pages that are read often.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    Votes::new()
        .defines(
            3.0,
            "bytes to clients and rows scanned rise together",
            all([any([seen.up(&SENT, 1.0), seen.up(&SENT_PER_COMMIT, 2.0)]), seen.up(&SCANNED, 2.0)]),
        )
        .supports(
            1.0,
            "more is read from files than the pool misses",
            any([seen.up(&READ_AHEAD, 1.0), seen.up(&SERVER_READS, 1.0)]),
        )
        .supports(1.0, "changes and log don't rise", group([seen.steady(&CHANGED, 1.0), seen.steady(&LOG, 1.0)]))
        .refutes(3.0, "less is read from files", seen.down(&SERVER_READS, 1.0))
        .refutes(3.0, "more rows are changed", seen.up(&CHANGED, 1.0))
}
