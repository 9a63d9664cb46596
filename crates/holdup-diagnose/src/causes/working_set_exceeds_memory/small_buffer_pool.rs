//! The buffer pool is smaller than the data in use.
//!
//! The setting itself is lower than in other runs of the same system, and more of the requested
//! pages have to be read.

use crate::trace::Pattern;
use crate::trace::quantities::{MISS_RATIO, POOL};
use crate::trace::view::View;
use crate::trace::votes::Votes;

pub const PATTERN: Pattern = Pattern {
    name: "small_buffer_pool",
    title: "the buffer pool is too small",
    fix: Some(
        "Set innodb_buffer_pool_size (or shared_buffers) to fit the data in use and the machine's memory: MySQL and MariaDB can change it live. Check first what else needs memory.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    Votes::new().defines(3.0, "the setting is lower than in other runs", seen.lower(&POOL, 1.0)).supports(
        2.0,
        "more pages have to be read",
        seen.higher(&MISS_RATIO, 1.0),
    )
}
