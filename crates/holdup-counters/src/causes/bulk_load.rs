//! A restore, an import, a batch of inserts: many rows a transaction.
//!
//! Rows inserted and changed rise with the log, rows a transaction rise, and the log *a changed row* does not: a row costs
//! what it always cost.

use super::Cause;
use super::quantities::{CHANGED, CHANGED_PER_COMMIT, INSERTED, LOG, LOG_PER_CHANGE, LOG_PER_COMMIT};
use crate::judge::Account;
use crate::view::{View, any, group};

pub const CAUSE: Cause = Cause { slug: "bulk_load", title: "a restore or an import writes many rows", account };

fn account(seen: &View) -> Account {
    Account::new()
        .defines(3.0, "rows inserted and changed rise", group([seen.up(&INSERTED, 1.0), seen.up(&CHANGED, 1.0)]))
        .supports(2.0, "the log rises with them", seen.up(&LOG, 1.0))
        .supports(
            2.0,
            "rows and log a transaction rise",
            any([seen.up(&CHANGED_PER_COMMIT, 1.0), seen.up(&LOG_PER_COMMIT, 1.0)]),
        )
        .refutes(1.0, "a changed row costs more log", seen.up(&LOG_PER_CHANGE, 1.0))
}
