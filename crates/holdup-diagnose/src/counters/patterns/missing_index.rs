//! A query reads far more rows than it returns: an index is missing, or a join has no condition.
//!
//! The server uses more CPU, and more a transaction; rows scanned a transaction are far up; transactions are not more.
//! A spike is refuted by CPU a transaction, which it leaves as it was.

use super::Pattern;
use super::quantities::{
    BUSY, BUSY_PER_COMMIT, COMMITS, CPU_PER_COMMIT, REQUESTS, REQUESTS_PER_COMMIT, SCANNED, SCANNED_PER_COMMIT, SENT,
    SERVER_CPU,
};
use crate::counters::judge::Account;
use crate::counters::view::{View, all, any};

pub const PATTERN: Pattern = Pattern {
    name: "missing_index",
    cause: "missing_index",
    title: "a query reads far more rows than it returns",
    fix: None,
    doc: None,
    account,
};

fn account(seen: &View) -> Account {
    let rows = all([seen.up(&SCANNED, 2.0), seen.up(&SCANNED_PER_COMMIT, 2.0)]);
    let pages = all([seen.up(&REQUESTS, 2.0), seen.up(&REQUESTS_PER_COMMIT, 2.0)]);
    let cpu = all([seen.up(&SERVER_CPU, 1.0), seen.up(&CPU_PER_COMMIT, 1.0)]);
    let machine = all([seen.up(&BUSY, 1.0), seen.up(&BUSY_PER_COMMIT, 1.0)]);
    Account::new()
        .defines(3.0, "rows or pages read a transaction are far up", any([rows, pages]))
        .supports(3.0, "the server uses more CPU, and more a transaction", cpu.or(machine))
        .supports(1.0, "transactions are not more", seen.steady(&COMMITS, 1.0))
        .refutes(2.0, "more is sent to clients: it is read to be given away", seen.up(&SENT, 1.0))
}
