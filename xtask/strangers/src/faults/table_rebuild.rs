//! A table is rebuilt in the middle of the day, and the statements on it wait until that is done.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "table_rebuild",
    family: Family::Database,
    mechanism: "A table is rebuilt in the middle of the day, and the statements on it wait until that is done.",
    causes: &["lock_contention", "backup_or_bulk_load"],
    parameters: &[Parameter::new("pause_ms", 4000.0, 200.0)],
    prepare: |setup, _| setup.load.ensure(Operation::History, 0.25),
    start: |env, values| {
        let rebuild = if env.database.engine.is_mysql() {
            "ALTER TABLE orders FORCE, ALGORITHM=COPY, LOCK=SHARED"
        } else {
            "VACUUM FULL orders"
        };
        sessions::repeat(env.database, 1.0, values.get("pause_ms"), rebuild)
    },
    ..Fault::BASE
};
