//! A purge deletes orders by the thousand in one transaction each, with all that this means for log, undo and index.

use super::{Family, Fault, Parameter};
use crate::env::{Running, sessions};

pub const FAULT: Fault = Fault {
    name: "purge",
    family: Family::Database,
    mechanism: "A purge deletes orders by the thousand in one transaction each, with all that this means for log, undo and index.",
    causes: &["backup_or_bulk_load", "statement_mix_changed"],
    parameters: &[Parameter::new("rows", 1000.0, 20000.0)],
    start: |env, values| {
        let rows = values.get("rows");
        let purge = format!(
            "INSERT INTO orders (customer, item, quantity, note) SELECT 6000 + customer, item, 1, note FROM orders \
             WHERE id <= {rows:.0}; DELETE FROM orders WHERE customer > 6000"
        );
        let work = sessions::repeat(env.database, 1.0, 20.0, &purge)?;
        let database = env.database.clone();
        Ok(Running::until(move || database.sql("DELETE FROM orders WHERE customer > 5000").map(drop)).and(work))
    },
    ..Fault::BASE
};
