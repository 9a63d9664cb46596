//! A forgotten transaction keeps old versions of a row that is updated all the time, and readers walk through them.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;
use crate::topology::Engine;

pub const FAULT: Fault = Fault {
    name: "long_transaction",
    family: Family::Database,
    mechanism: "A forgotten transaction keeps old versions of a row that is updated all the time, and readers walk through them.",
    causes: &["old_snapshot"],
    parameters: &[Parameter::new("updates", 200.0, 4000.0)],
    fits: |topology| topology.engine == Engine::Postgresql,
    prepare: |setup, _| setup.load.ensure(Operation::Item, 0.5),
    start: |env, values| {
        let forgotten = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM item WHERE id < 100";
        let open = sessions::hold(env.database, forgotten, 60_000.0, "COMMIT", 60_000.0)?;
        // Several rows, so that the versions of one do not queue for its lock.
        let updates = values.get("updates") / 10.0;
        let update = format!(
            "DO $$ BEGIN FOR n IN 1..{updates:.0} LOOP UPDATE item SET stock = stock - 1 WHERE id % 40 = n % 40; \
             COMMIT; END LOOP; END $$"
        );
        Ok(open.and(sessions::repeat(env.database, 1.0, 300.0, &update)?))
    },
    ..Fault::BASE
};
