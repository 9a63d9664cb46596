//! An index is dropped, and the statements that used it read the whole table.

use super::{Family, Fault, Parameter};
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "index_dropped",
    family: Family::Database,
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
    ..Fault::BASE
};
