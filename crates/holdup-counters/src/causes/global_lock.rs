//! A lock over the whole server stops all writers: `FLUSH TABLES`, a table lock, a flush that everybody waits for.
//!
//! Transactions and log stop while pages go on being written (what was dirty is flushed). Tables that were closed and opened again step
//! the file handles. Waiters are not waiters for row locks. Without page writes it is rather the network.

use super::Cause;
use super::quantities::{COMMITS, FILES, LOG, PAGES, PAGES_PER_COMMIT, WAITING_OF_RUNNING};
use crate::judge::Account;
use crate::view::{View, all, group};

pub const CAUSE: Cause = Cause { slug: "global_lock", title: "a lock over the whole server stops everybody", account };

fn account(seen: &View) -> Account {
    Account::new()
        .defines(
            3.0,
            "transactions and log stop while pages go on being written",
            all([group([seen.down(&COMMITS, 2.0), seen.down(&LOG, 2.0)]), seen.up(&PAGES_PER_COMMIT, 2.0)]),
        )
        .supports(2.0, "file handles step up", seen.up(&FILES, 0.05))
        .supports(1.0, "waiters don't wait for row locks", seen.down(&WAITING_OF_RUNNING, 1.0))
        .refutes(1.0, "page writes fall as well", seen.down(&PAGES, 2.0))
}
