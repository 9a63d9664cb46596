//! Another client holds the stock of some items in a transaction, and orders of these items wait for its commit.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;
use crate::statements;

pub const FAULT: Fault = Fault {
    name: "lock_holder",
    family: Family::Database,
    mechanism: "Another client holds the stock of some items in a transaction, and orders of these items wait for its commit.",
    causes: &["lock_contention"],
    parameters: &[Parameter::new("held_ms", 40.0, 1500.0), Parameter::new("items_ratio", 0.05, 0.8)],
    prepare: |setup, _| setup.load.ensure(Operation::Order, 0.25),
    start: |env, values| {
        let items = (values.get("items_ratio") * statements::ITEMS as f64).round();
        let begin = format!("BEGIN; SELECT COUNT(*) FROM (SELECT id FROM item WHERE id <= {items:.0} FOR UPDATE) held");
        sessions::hold(env.database, &begin, values.get("held_ms"), "COMMIT", values.get("held_ms") * 1.4 + 300.0)
    },
    ..Fault::BASE
};
