//! The buffer pool is smaller than what is used of the data.
//!
//! The setting itself is lower than on the same system elsewhere, and more of the pages asked for have to be read.

use super::Cause;
use super::quantities::{MISS_RATIO, POOL};
use crate::judge::Account;
use crate::view::View;

pub const CAUSE: Cause = Cause { slug: "small_buffer_pool", title: "the buffer pool is too small", account };

fn account(seen: &View) -> Account {
    Account::new().defines(3.0, "the setting is lower than elsewhere", seen.lower(&POOL, 1.0)).supports(
        2.0,
        "more pages have to be read",
        seen.higher(&MISS_RATIO, 1.0),
    )
}
