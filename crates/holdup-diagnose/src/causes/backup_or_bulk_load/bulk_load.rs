//! A restore or an import: clients insert many rows per transaction.
//!
//! Inserted and changed rows rise with the log, or clients send more per byte they receive. A
//! transaction gets heavier, but the log *per changed row* does not grow: a row costs what it did
//! before.

use crate::trace::quantities::{
    CHANGED, CHANGED_PER_COMMIT, COMMITS, INSERTED, INSERTED_PER_COMMIT, LOG, LOG_PER_CHANGE, LOG_PER_COMMIT, PER_SENT,
    RECEIVED, RECEIVED_PER_COMMIT,
};
use crate::trace::view::{View, all, any, group};
use crate::trace::votes::Votes;
use crate::trace::{Pattern, piled_up_at_rows};

pub const PATTERN: Pattern = Pattern {
    name: "bulk_load",
    title: "many rows are written per transaction",
    fix: Some(
        "Load in smaller pieces with a pause between them, at a quiet time, or elsewhere first. If it must be now: indexes after the data, a larger log, and a rate limit.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    let rows = group([seen.up(&INSERTED, 1.0), seen.up(&CHANGED, 1.0)]);
    let talks = seen.not_down(&RECEIVED, 0.5);
    let sent = all([seen.up(&PER_SENT, 0.5), talks.clone()]);
    let heavier = all([seen.up(&RECEIVED_PER_COMMIT, 1.0), seen.up(&INSERTED_PER_COMMIT, 1.0), talks]);
    Votes::new()
        .defines(
            3.0,
            "inserted and changed rows rise, or clients send more per byte they receive",
            any([rows, sent, heavier]),
        )
        .supports(2.0, "the log rises with them", seen.up(&LOG, 1.0))
        .gates(
            "a transaction is heavier",
            any([
                seen.up(&CHANGED_PER_COMMIT, 1.0),
                all([seen.began(&INSERTED_PER_COMMIT, 0.0, 1.0), seen.up(&RECEIVED_PER_COMMIT, 0.5)]),
                seen.up(&LOG_PER_COMMIT, 1.0),
                seen.up(&RECEIVED_PER_COMMIT, 1.0),
            ]),
        )
        .supports(1.0, "the number of transactions stays", seen.steady(&COMMITS, 1.0))
        .refutes(1.0, "a changed row costs more log", seen.up(&LOG_PER_CHANGE, 1.0))
        .refutes(3.0, "sessions wait for row locks more than before", piled_up_at_rows(seen))
}
