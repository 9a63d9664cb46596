//! Indexes are added to a table, and each change of it maintains all of them.

use super::{Family, Fault, Parameter};
use crate::env::Running;
use crate::load::Operation;
use crate::topology::Storage;

pub const FAULT: Fault = Fault {
    name: "many_indexes",
    family: Family::Database,
    mechanism: "Indexes are added to a table, and each change of it maintains all of them.",
    causes: &["too_many_indexes"],
    parameters: &[Parameter::new("indexes", 3.0, 16.0)],
    fits: |topology| topology.storage == Storage::Throttled,
    prepare: |setup, _| {
        setup.load.at_least(100.0);
        setup.load.ensure(Operation::Order, 0.6);
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let count = values.get("indexes").round() as u32;
        let columns = ["note", "item", "quantity", "customer, item", "note, item", "item, quantity", "quantity, note", "customer, note"];
        let name = |n: u32| format!("added_{n}");
        let column = |n: u32| columns[n as usize % columns.len()];
        let create = (0..count).map(|n| format!("CREATE INDEX {} ON orders ({})", name(n), column(n)));
        let is_mysql = env.database.engine.is_mysql();
        let drop = (0..count).map(|n| format!("DROP INDEX {}{}", name(n), if is_mysql { " ON orders" } else { "" }));
        let create: Vec<String> = create.collect();
        let drop: Vec<String> = drop.collect();
        env.database.execute(&create)?;
        let database = env.database.clone();
        Ok(Running::until(move || database.execute(&drop).map(|_| ())))
    },
};
