//! A backup takes the lock that stops all writes of the server for a while.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "global_read_lock",
    family: Family::Database,
    mechanism: "A backup takes the lock that stops all writes of the server for a while.",
    causes: &["lock_contention", "backup_or_bulk_load"],
    parameters: &[Parameter::new("held_ms", 80.0, 2500.0)],
    fits: |topology| topology.engine.is_mysql(),
    prepare: |setup, _| setup.load.ensure(Operation::Order, 0.25),
    stage: |_, _| Ok(()),
    start: |env, values| {
        let held = values.get("held_ms");
        sessions::hold(env.database, "FLUSH TABLES WITH READ LOCK", held, "UNLOCK TABLES", held * 1.3 + 500.0)
    },
};
