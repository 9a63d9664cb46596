//! The buffer pool is smaller than what is used of the data.
//!
//! The setting itself is lower than on the same system elsewhere, and more of the pages asked for have to be read.

use super::quantities::{MISS_RATIO, POOL};
use super::{Cause, Doc};
use crate::counters::judge::Account;
use crate::counters::view::View;

pub const CAUSE: Cause = Cause {
    slug: "small_buffer_pool",
    title: "the buffer pool is too small",
    doc: Some(Doc {
        what: "The buffer pool is set smaller than on the same system elsewhere, and more of the pages that are asked for have to be read.",
        hurts: "Each miss is a read from the disk, or at best a copy from the kernel's cache, in the middle of a statement.",
        looks_like: "Statements that read more than before (then pages asked for rise, too), a server that was just started and is not warm yet.",
        fix: "Set innodb_buffer_pool_size (or shared_buffers) to what the data in use needs and the machine has: it can be changed while MySQL and MariaDB run. Read what else needs memory first.",
        references: "MySQL Reference Manual: Configuring InnoDB Buffer Pool Size; PostgreSQL documentation: shared_buffers.",
    }),
    account,
};

fn account(seen: &View) -> Account {
    Account::new().defines(3.0, "the setting is lower than elsewhere", seen.lower(&POOL, 1.0)).supports(
        2.0,
        "more pages have to be read",
        seen.higher(&MISS_RATIO, 1.0),
    )
}
