//! A lock over the whole server stops all writers: `FLUSH TABLES`, a table lock, a flush that all
//! sessions wait for.
//!
//! Transactions and log stop while pages are still written (dirty ones are flushed). Tables that
//! are closed and opened again change the number of file handles stepwise. The waiters do not wait
//! for row locks. Without page writes it is rather the network.

use crate::trace::Pattern;
use crate::trace::quantities::{COMMITS, FILES, LOG, PAGES, PAGES_PER_COMMIT, WAITING_OF_RUNNING};
use crate::trace::view::{View, all, group};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern = Pattern {
    name: "global_lock",
    title: "a lock over the whole server stops all sessions",
    fix: Some(
        "Find the holder: SHOW PROCESSLIST for 'Waiting for global read lock' or 'Waiting for table metadata lock', metadata_locks of performance_schema or METADATA_LOCK_INFO of MariaDB. End it, oldest first; then back up without a global lock (--single-transaction, mariabackup, xtrabackup), and set lock_wait_timeout for changes of tables.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    Votes::new()
        .defines(
            3.0,
            "transactions and log stop while pages are still written",
            all([group([seen.down(&COMMITS, 2.0), seen.down(&LOG, 2.0)]), seen.up(&PAGES_PER_COMMIT, 2.0)]),
        )
        .supports(2.0, "the number of file handles jumps up", seen.up(&FILES, 0.05))
        .supports(1.0, "waiters don't wait for row locks", seen.down(&WAITING_OF_RUNNING, 1.0))
        .gates("page writes continue", seen.not_down(&PAGES, 3.0))
}
