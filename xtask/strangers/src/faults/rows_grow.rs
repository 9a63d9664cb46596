//! The table that requests read grows, and each of them reads and sorts more rows than before.

use super::{Family, Fault, Parameter};
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "rows_grow",
    family: Family::Database,
    mechanism: "The table that requests read grows, and each of them reads and sorts more rows than before.",
    causes: &["statement_regression"],
    parameters: &[Parameter::new("factor", 2.0, 6.0)],
    prepare: |setup, _| {
        setup.load.at_most(150.0);
        setup.load.ensure(Operation::Category, 0.4);
    },
    start: |env, values| {
        let copies = (values.get("factor") - 1.0).round();
        let cast = if env.database.engine.is_mysql() { "" } else { "::int" };
        let numbers: Vec<String> = (1..=copies as u64).map(|n| format!("SELECT {n}{cast} n")).collect();
        let grow = format!(
            "INSERT INTO item SELECT id + 60000 * t.n, category, name, stock, price FROM item, ({}) t WHERE id <= 60000",
            numbers.join(" UNION ALL ")
        );
        env.database.sql_until(&grow, "DELETE FROM item WHERE id > 60000")
    },
    ..Fault::BASE
};
