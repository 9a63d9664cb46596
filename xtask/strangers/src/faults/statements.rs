//! Statements of other clients, and of the app, that do more than before.

use super::{Family, Fault, Parameter};
use crate::env::{Running, sessions};
use crate::load::{Load, Operation, Share};
use crate::topology::{Engine, Storage};

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Database, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "bulk_insert",
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
        ..BASE
    },
    Fault {
        name: "dump",
        mechanism: "A logical backup reads every table at full speed.",
        causes: &["backup_or_bulk_load"],
        parameters: &[Parameter::new("dumps", 1.0, 4.0)],
        start: |env, values| {
            let port = env.database.side_port();
            let dump = if env.database.engine.is_mysql() {
                format!("mariadb-dump --no-defaults -h127.0.0.1 -P {port} -u batch --single-transaction shop")
            } else {
                format!("pg_dump -h 127.0.0.1 -p {port} -U batch shop")
            };
            env.processes(values.get("dumps"), &["sh", "-c", &format!("while :; do {dump} >/dev/null; done")])
        },
        ..BASE
    },
    Fault {
        name: "bad_query",
        mechanism: "Other clients run a statement that no index helps, and its scans take the CPU.",
        causes: &["missing_index", "statement_mix_changed"],
        parameters: &[Parameter::new("sessions", 1.0, 8.0)],
        start: |env, values| {
            let scan = "SELECT COUNT(*) FROM orders a JOIN item b ON b.id = a.item WHERE a.note LIKE '%0f0f%' AND b.name LIKE '%a%'";
            sessions::repeat(env.database, values.get("sessions"), 20.0, scan)
        },
        ..BASE
    },
    Fault {
        name: "mix_changed",
        mechanism: "Other clients of the same service ask for its most expensive operation.",
        causes: &["statement_mix_changed"],
        parameters: &[Parameter::new("rate_per_second", 10.0, 200.0)],
        start: |env, values| {
            let mix = vec![Share { operation: Operation::Report, weight: 1 }];
            env.other_clients(&Load { rate: values.get("rate_per_second"), mix, ..env.load.clone() })
        },
        ..BASE
    },
    Fault {
        name: "rows_grow",
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
        ..BASE
    },
    Fault {
        name: "many_indexes",
        mechanism: "Indexes are added to a table, and each change of it maintains all of them.",
        causes: &["too_many_indexes"],
        parameters: &[Parameter::new("indexes", 3.0, 16.0)],
        fits: |topology| topology.storage == Storage::Throttled,
        prepare: |setup, _| {
            setup.load.at_least(100.0);
            setup.load.ensure(Operation::Order, 0.6);
        },
        start: |env, values| {
            let count = values.get("indexes").round() as u32;
            let columns = [
                "note",
                "item",
                "quantity",
                "customer, item",
                "note, item",
                "item, quantity",
                "quantity, note",
                "customer, note",
            ];
            let name = |n: u32| format!("added_{n}");
            let column = |n: u32| columns[n as usize % columns.len()];
            let create = (0..count).map(|n| format!("CREATE INDEX {} ON orders ({})", name(n), column(n)));
            let is_mysql = env.database.engine.is_mysql();
            let drop =
                (0..count).map(|n| format!("DROP INDEX {}{}", name(n), if is_mysql { " ON orders" } else { "" }));
            let create: Vec<String> = create.collect();
            let drop: Vec<String> = drop.collect();
            env.database.execute(&create)?;
            let database = env.database.clone();
            Ok(Running::until(move || database.execute(&drop).map(|_| ())))
        },
        ..BASE
    },
    Fault {
        name: "large_values",
        mechanism: "Another service writes values of 10 kB again that have not changed, and the server stores each anew.",
        causes: &["toast_rewrite"],
        parameters: &[Parameter::new("sessions", 1.0, 6.0), Parameter::new("pause_ms", 60.0, 2.0)],
        fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
        prepare: |setup, _| setup.postgresql.push(("synchronous_commit", "on".to_owned())),
        start: |env, values| {
            let rewrite = "UPDATE article SET seen = seen + 1, body = body || '' WHERE id = 1 + (random() * 3999)::int";
            sessions::repeat(env.database, values.get("sessions"), values.get("pause_ms"), rewrite)
        },
        ..BASE
    },
    Fault {
        name: "purge",
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
        ..BASE
    },
    Fault {
        name: "table_rebuild",
        mechanism: "A table is rebuilt in the middle of the day, and the statements on it wait until that is done.",
        causes: &["lock_contention", "backup_or_bulk_load"],
        parameters: &[Parameter::new("pause_ms", 4000.0, 200.0)],
        prepare: |setup, _| setup.load.ensure(Operation::History, 0.25),
        start: |env, values| {
            let rebuild = if env.database.engine.is_mysql() {
                "ALTER TABLE orders FORCE, ALGORITHM=COPY, LOCK=SHARED"
            } else {
                "VACUUM FULL orders"
            };
            sessions::repeat(env.database, 1.0, values.get("pause_ms"), rebuild)
        },
        ..BASE
    },
    Fault {
        name: "long_sorts",
        mechanism: "Other clients sort more than their memory holds, and the server spills the sort to the disk.",
        causes: &["on_disk_temporary_tables"],
        parameters: &[Parameter::new("sessions", 1.0, 8.0)],
        fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
        prepare: |setup, _| {
            setup.load.ensure(Operation::Order, 0.3);
            setup.postgresql.push(("synchronous_commit", "on".to_owned()));
        },
        start: |env, values| {
            let sort = "SET work_mem = '64kB'; SELECT COUNT(*) FROM (SELECT note FROM orders ORDER BY note DESC) t";
            sessions::repeat(env.database, values.get("sessions"), 50.0, sort)
        },
        ..BASE
    },
];
