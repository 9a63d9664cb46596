//! Another client locks the table of orders, as a migration does, and every statement on it waits.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "table_lock",
    family: Family::Database,
    mechanism: "Another client locks the table of orders, as a migration does, and every statement on it waits.",
    causes: &["lock_contention"],
    parameters: &[Parameter::new("held_ms", 60.0, 2500.0)],
    prepare: |setup, _| setup.load.ensure(Operation::History, 0.25),
    start: |env, values| {
        let held = values.get("held_ms");
        let (begin, end) = if env.database.engine.is_mysql() {
            ("LOCK TABLES orders WRITE", "UNLOCK TABLES")
        } else {
            ("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE", "COMMIT")
        };
        sessions::hold(env.database, begin, held, end, held * 1.3 + 500.0)
    },
    ..Fault::BASE
};
