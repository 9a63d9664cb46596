//! The statistics say that a column has one value only, and the planner reads along the primary key instead of using its index.

use super::{Family, Fault, Parameter};
use crate::load::Operation;
use crate::topology::Engine;

pub const FAULT: Fault = Fault {
    name: "stale_statistics",
    family: Family::Database,
    mechanism: "The statistics say that a column has one value only, and the planner reads along the primary key instead of using its index.",
    causes: &["plan_changed"],
    parameters: &[Parameter::new("share_ratio", 0.05, 0.5)],
    fits: |topology| topology.engine == Engine::Postgresql,
    prepare: |setup, values| {
        setup.load.at_most(80.0);
        setup.load.ensure(Operation::History, values.get("share_ratio"));
        setup.load.ensure(Operation::Report, values.get("share_ratio") * 0.3);
    },
    stage: |_, _| Ok(()),
    start: |env, _| {
        let lie = "ALTER TABLE orders ALTER customer SET (n_distinct = 1), ALTER customer SET STATISTICS 1; ANALYZE orders (customer)";
        let truth = "ALTER TABLE orders ALTER customer RESET (n_distinct), ALTER customer SET STATISTICS -1; \
                     ANALYZE orders";
        env.database.sql_until(lie, truth)
    },
};
