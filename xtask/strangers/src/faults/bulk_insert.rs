//! An import inserts rows by the thousand, and its log and pages fill the disk.

use super::{Family, Fault, Parameter};
use crate::env::{Running, sessions};

pub const FAULT: Fault = Fault {
    name: "bulk_insert",
    family: Family::Database,
    mechanism: "An import inserts rows by the thousand, and its log and pages fill the disk.",
    causes: &["backup_or_bulk_load"],
    parameters: &[Parameter::new("sessions", 1.0, 5.0), Parameter::new("rows", 300.0, 2500.0)],
    start: |env, values| {
        let rows = values.get("rows");
        let insert = format!(
            "INSERT INTO orders (customer, item, quantity, note) SELECT 5001 + customer, item, 1, REPEAT('import ', 20) \
             FROM orders WHERE id <= {rows:.0}"
        );
        let load = sessions::repeat(env.database, values.get("sessions"), 10.0, &insert)?;
        let database = env.database.clone();
        Ok(Running::until(move || database.sql("DELETE FROM orders WHERE customer > 5000").map(drop)).and(load))
    },
    ..Fault::BASE
};
