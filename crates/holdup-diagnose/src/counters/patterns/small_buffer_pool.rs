//! The buffer pool is smaller than what is used of the data.
//!
//! The setting itself is lower than on the same system elsewhere, and more of the pages asked for have to be read.

use super::Pattern;
use super::quantities::{MISS_RATIO, POOL};
use crate::counters::judge::Account;
use crate::counters::view::View;

pub const PATTERN: Pattern = Pattern {
    name: "small_buffer_pool",
    cause: "working_set_exceeds_memory",
    title: "the buffer pool is too small",
    fix: Some(
        "Set innodb_buffer_pool_size (or shared_buffers) to what the data in use needs and the machine has: it can be changed while MySQL and MariaDB run. Read what else needs memory first.",
    ),
    doc: None,
    account,
};

fn account(seen: &View) -> Account {
    Account::new().defines(3.0, "the setting is lower than elsewhere", seen.lower(&POOL, 1.0)).supports(
        2.0,
        "more pages have to be read",
        seen.higher(&MISS_RATIO, 1.0),
    )
}
