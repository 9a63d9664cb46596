//! Every change keeps more indexes than it needs up to date.
//!
//! A changed row costs more log and more pages than the same row elsewhere, while rows changed are flat or down and the
//! log as a whole is not down: in a stall anything a row grows without bound. A weak signal: a state, not an event.

use super::Cause;
use super::quantities::{CHANGED, LOG, LOG_PER_CHANGE, PAGES_PER_CHANGE, REQUESTS_PER_CHANGE};
use crate::judge::Account;
use crate::view::{View, group};

pub const CAUSE: Cause = Cause { slug: "too_many_indexes", title: "changes keep too many indexes", account };

fn account(seen: &View) -> Account {
    Account::new()
        .defines(3.0, "a changed row costs more log", seen.up(&LOG_PER_CHANGE, 0.5))
        .supports(1.0, "and more pages", group([seen.up(&PAGES_PER_CHANGE, 0.5), seen.up(&REQUESTS_PER_CHANGE, 0.5)]))
        .supports(1.0, "rows changed are not more", seen.steady(&CHANGED, 0.5))
        .gates("the log as a whole is not down", seen.not_down(&LOG, 1.0))
}
