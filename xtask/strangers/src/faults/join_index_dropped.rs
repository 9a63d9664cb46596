//! The index of a join is dropped, and the join reads the larger table instead.

use super::{Family, Fault, Parameter};
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "join_index_dropped",
    family: Family::Database,
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
    ..Fault::BASE
};
