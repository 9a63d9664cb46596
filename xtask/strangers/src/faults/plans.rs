//! Statements that read more than before, because an index or a statistic is gone.

use super::{Family, Fault, Parameter};
use crate::load::Operation;
use crate::topology::Engine;

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Database, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "index_dropped",
        mechanism: "An index is dropped, and the statements that used it read the whole table.",
        causes: &["missing_index", "plan_changed"],
        parameters: &[Parameter::new("share_ratio", 0.03, 0.5)],
        prepare: |setup, values| {
            setup.load.at_most(120.0);
            setup.load.ensure(Operation::Category, values.get("share_ratio"));
        },
        start: |env, _| {
            let drop = if env.database.engine.is_mysql() {
                "DROP INDEX item_category ON item"
            } else {
                "DROP INDEX item_category"
            };
            env.database.sql_until(drop, "CREATE INDEX item_category ON item (category)")
        },
        ..BASE
    },
    Fault {
        name: "join_index_dropped",
        mechanism: "The index of a join is dropped, and the join reads the larger table instead.",
        causes: &["missing_index", "plan_changed"],
        parameters: &[Parameter::new("share_ratio", 0.02, 0.2)],
        prepare: |setup, values| {
            setup.load.at_most(60.0);
            setup.load.ensure(Operation::Report, values.get("share_ratio"));
        },
        start: |env, _| {
            let drop = if env.database.engine.is_mysql() {
                "DROP INDEX orders_customer ON orders"
            } else {
                "DROP INDEX orders_customer"
            };
            env.database.sql_until(drop, "CREATE INDEX orders_customer ON orders (customer)")
        },
        ..BASE
    },
    Fault {
        name: "stale_statistics",
        mechanism: "The statistics say that a column has one value only, and the planner reads along the primary key instead of using its index.",
        causes: &["plan_changed"],
        parameters: &[Parameter::new("share_ratio", 0.05, 0.5)],
        fits: |topology| topology.engine == Engine::Postgresql,
        prepare: |setup, values| {
            setup.load.at_most(80.0);
            setup.load.ensure(Operation::History, values.get("share_ratio"));
            setup.load.ensure(Operation::Report, values.get("share_ratio") * 0.3);
        },
        start: |env, _| {
            let lie = "ALTER TABLE orders ALTER customer SET (n_distinct = 1), ALTER customer SET STATISTICS 1; ANALYZE orders (customer)";
            let truth = "ALTER TABLE orders ALTER customer RESET (n_distinct), ALTER customer SET STATISTICS -1; \
                         ANALYZE orders";
            env.database.sql_until(lie, truth)
        },
        ..BASE
    },
];
