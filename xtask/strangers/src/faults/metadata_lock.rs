//! A schema change waits behind a forgotten transaction, and every new statement on the table waits behind the change.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "metadata_lock",
    family: Family::Database,
    mechanism: "A schema change waits behind a forgotten transaction, and every new statement on the table waits behind the change.",
    causes: &["lock_contention"],
    parameters: &[Parameter::new("held_ms", 300.0, 4000.0)],
    prepare: |setup, _| setup.load.ensure(Operation::History, 0.25),
    start: |env, values| {
        let held = values.get("held_ms");
        let forgotten = "BEGIN; SELECT COUNT(*) FROM orders WHERE customer = 1";
        let open = sessions::hold(env.database, forgotten, held, "COMMIT", held * 1.3 + 600.0)?;
        let change = sessions::repeat(env.database, 1.0, 900.0, "ALTER TABLE orders ALTER quantity SET DEFAULT 1")?;
        Ok(open.and(change))
    },
    ..Fault::BASE
};
