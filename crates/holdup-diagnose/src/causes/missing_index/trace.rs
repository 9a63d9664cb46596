//! A query reads far more rows than it returns: an index is missing, or a join has no condition.
//!
//! The server uses more CPU in all and per transaction, and scans far more rows per transaction;
//! the number of transactions stays. A spike is refuted by the CPU per transaction, which it does not
//! change.

use crate::trace::Pattern;
use crate::trace::quantities::{
    BUSY, BUSY_PER_COMMIT, COMMITS, CPU_PER_COMMIT, REQUESTS, REQUESTS_PER_COMMIT, SCANNED, SCANNED_PER_COMMIT, SENT,
    SERVER_CPU,
};
use crate::trace::view::{View, all, any};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern =
    Pattern { name: "missing_index", title: "a query reads far more rows than it returns", fix: None, account };

fn account(seen: &View) -> Votes {
    let rows = all([seen.up(&SCANNED, 2.0), seen.up(&SCANNED_PER_COMMIT, 2.0)]);
    let pages = all([seen.up(&REQUESTS, 2.0), seen.up(&REQUESTS_PER_COMMIT, 2.0)]);
    let cpu = all([seen.up(&SERVER_CPU, 1.0), seen.up(&CPU_PER_COMMIT, 1.0)]);
    let machine = all([seen.up(&BUSY, 1.0), seen.up(&BUSY_PER_COMMIT, 1.0)]);
    Votes::new()
        .defines(3.0, "far more rows or pages are read per transaction", any([rows, pages]))
        .supports(3.0, "the server uses more CPU, in all and per transaction", cpu.or(machine))
        .supports(1.0, "the number of transactions stays", seen.steady(&COMMITS, 1.0))
        .refutes(2.0, "more is sent to clients: the rows are read for them", seen.up(&SENT, 1.0))
}
