//! Locks that other clients and backups of the database hold.

use std::sync::Arc;
use std::time::Duration;

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;
use crate::statements;

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Database, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "lock_holder",
        mechanism: "Another client holds the stock of some items in a transaction, and orders of these items wait for its commit.",
        causes: &["lock_contention"],
        parameters: &[Parameter::new("held_ms", 40.0, 1500.0), Parameter::new("items_ratio", 0.05, 0.8)],
        prepare: |setup, _| setup.load.ensure(Operation::Order, 0.25),
        start: |env, values| {
            let items = (values.get("items_ratio") * statements::ITEMS as f64).round();
            let begin =
                format!("BEGIN; SELECT COUNT(*) FROM (SELECT id FROM item WHERE id <= {items:.0} FOR UPDATE) held");
            sessions::hold(env.database, &begin, values.get("held_ms"), "COMMIT", values.get("held_ms") * 1.4 + 300.0)
        },
        ..BASE
    },
    Fault {
        name: "hot_row",
        mechanism: "Other clients change the prices of a third of the items, in transactions that think before they commit, and orders wait for the locks.",
        causes: &["lock_contention"],
        parameters: &[Parameter::new("sessions", 1.0, 8.0), Parameter::new("think_ms", 20.0, 250.0)],
        prepare: |setup, _| setup.load.ensure(Operation::Order, 0.25),
        start: |env, values| {
            let (sessions, think) = (values.get("sessions").round() as usize, values.get("think_ms"));
            let sleep = if env.database.engine.is_mysql() { "SELECT SLEEP" } else { "SELECT pg_sleep" };
            let range = "UPDATE item SET price = price + 0 WHERE id <= 20000";
            let round = format!("BEGIN; {range}; {sleep}({:.3}); COMMIT;", think * 1e-3);
            sessions::start(env.database, sessions, Duration::from_millis(200), Arc::new(move |_, _| round.clone()))
        },
        ..BASE
    },
    Fault {
        name: "table_lock",
        mechanism: "Another client locks the table of orders, as a migration does, and every statement on it waits.",
        causes: &["lock_contention"],
        parameters: &[Parameter::new("held_ms", 60.0, 2500.0)],
        prepare: |setup, _| setup.load.ensure(Operation::History, 0.25),
        start: |env, values| {
            let held = values.get("held_ms");
            let (begin, end) = if env.database.engine.is_mysql() {
                ("LOCK TABLES orders WRITE", "UNLOCK TABLES")
            } else {
                ("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE", "COMMIT")
            };
            sessions::hold(env.database, begin, held, end, held * 1.3 + 500.0)
        },
        ..BASE
    },
    Fault {
        name: "metadata_lock",
        mechanism: "A schema change waits behind a forgotten transaction, and every new statement on the table waits behind the change.",
        causes: &["lock_contention"],
        parameters: &[Parameter::new("held_ms", 300.0, 4000.0)],
        prepare: |setup, _| setup.load.ensure(Operation::History, 0.25),
        start: |env, values| {
            let held = values.get("held_ms");
            let forgotten = "BEGIN; SELECT COUNT(*) FROM orders WHERE customer = 1";
            let open = sessions::hold(env.database, forgotten, held, "COMMIT", held * 1.3 + 600.0)?;
            let change = sessions::repeat(env.database, 1.0, 900.0, "ALTER TABLE orders ALTER quantity SET DEFAULT 1")?;
            Ok(open.and(change))
        },
        ..BASE
    },
    Fault {
        name: "global_read_lock",
        mechanism: "A backup takes the lock that stops all writes of the server for a while.",
        causes: &["lock_contention", "backup_or_bulk_load"],
        parameters: &[Parameter::new("held_ms", 80.0, 2500.0)],
        fits: |topology| topology.engine.is_mysql(),
        prepare: |setup, _| setup.load.ensure(Operation::Order, 0.25),
        start: |env, values| {
            let held = values.get("held_ms");
            sessions::hold(env.database, "FLUSH TABLES WITH READ LOCK", held, "UNLOCK TABLES", held * 1.3 + 500.0)
        },
        ..BASE
    },
];
