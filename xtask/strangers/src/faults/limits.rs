//! Limits of the database's memory, connections and threads.

use std::sync::Arc;
use std::time::Duration;

use super::{Family, Fault, Parameter};
use crate::env::database::Database;
use crate::env::{Running, sessions};
use crate::load::Operation;
use crate::topology::{Engine, Storage};

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Database, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "temporary_tables",
        mechanism: "Other clients group by a text, which the server sorts in temporary tables on the disk that requests need.",
        causes: &["on_disk_temporary_tables"],
        parameters: &[Parameter::new("sessions", 1.0, 10.0)],
        fits: |topology| topology.storage == Storage::Throttled,
        prepare: |setup, _| {
            setup.load.ensure(Operation::Order, 0.3);
            setup.mysql.push(("innodb_flush_log_at_trx_commit", "1".to_owned()));
            setup.postgresql.push(("synchronous_commit", "on".to_owned()));
            setup.postgresql.push(("work_mem", "'64kB'".to_owned()));
        },
        start: |env, values| {
            let group = "SELECT COUNT(*) FROM (SELECT body, COUNT(*) c FROM document WHERE id < 6000 GROUP BY body \
                         ORDER BY body) t";
            sessions::repeat(env.database, values.get("sessions"), 100.0, group)
        },
        ..BASE
    },
    Fault {
        name: "small_buffer_pool",
        mechanism: "The server's cache shrinks below what requests read, and they read from the disk.",
        causes: &["working_set_exceeds_memory"],
        parameters: &[Parameter::new("document_ratio", 0.05, 0.5)],
        fits: |topology| topology.engine.is_mariadb() && topology.storage == Storage::Throttled,
        prepare: |setup, values| {
            setup.load.at_most(150.0);
            setup.load.ensure(Operation::Document, values.get("document_ratio"));
            setup.mysql.push(("innodb_buffer_pool_size", "268435456".to_owned()));
        },
        start: |env, _| env.database.set_global("innodb_buffer_pool_size", "8388608"),
        ..BASE
    },
    Fault {
        name: "connection_limit",
        mechanism: "Other clients take nearly all connections that the server admits, and the app, which connects for each request, is refused.",
        causes: &["connection_limit"],
        parameters: &[Parameter::new("left", 4.0, 1.0)],
        // Behind a pooler it is the pooler that is refused, and requests wait there.
        fits: |topology| {
            let is_direct = topology.engine != Engine::MariadbThreadPool && !topology.between.is_pooler();
            topology.app.has_knobs() && is_direct
        },
        prepare: |setup, _| {
            setup.load.at_most(40.0);
            setup.load.at_least(25.0);
            setup.knobs.push(("reconnect", 1.0));
            setup.knobs.push(("hold_ms", 60.0));
        },
        start: |env, values| {
            let left = values.get("left").round();
            let idle = sessions::repeat(env.database, 30.0, 1_000.0, "SELECT 1")?;
            let limit = if env.database.engine.is_mysql() {
                env.database.set_global("max_connections", &format!("{:.0}", 33.0 + left))?
            } else {
                // Those who watch have a database role of their own.
                let set = format!("ALTER ROLE app NOSUPERUSER CONNECTION LIMIT {left:.0}");
                env.database.sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO app; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app")?;
                env.database.sql_until(&set, "ALTER ROLE app SUPERUSER CONNECTION LIMIT -1")?
            };
            Ok(idle.and(limit))
        },
        ..BASE
    },
    Fault {
        name: "thread_pool_scans",
        mechanism: "Scans of other clients hold the threads of the server's pool, and short statements queue for a thread.",
        causes: &["thread_pool_queue"],
        parameters: &[Parameter::new("sessions", 4.0, 40.0)],
        fits: |topology| topology.engine == Engine::MariadbThreadPool,
        start: |env, values| {
            let scan = "SELECT COUNT(*) FROM orders WHERE MD5(note) LIKE '%abcdef%'";
            // Through the port of the app, where threads come from the pool.
            let shared = Database { extra_port: None, ..env.database.clone() };
            let scans = sessions::repeat(&shared, values.get("sessions"), 0.0, scan)?;
            let database = env.database.clone();
            Ok(Running::until(move || database.end_sessions(sessions::USER)).and(scans))
        },
        ..BASE
    },
    Fault {
        name: "small_table_cache",
        mechanism: "The cache of open tables is smaller than the tables in use, and statements close and open tables under one lock.",
        causes: &["table_cache_small"],
        parameters: &[Parameter::new("sessions", 4.0, 40.0)],
        fits: |topology| topology.engine.is_mariadb(),
        prepare: |setup, _| setup.load.at_least(150.0),
        start: |env, values| {
            let tables: Vec<String> =
                (0..300).map(|n| format!("CREATE TABLE IF NOT EXISTS small_{n} (id INT PRIMARY KEY)")).collect();
            env.database.execute(&tables)?;
            let cache = env.database.set_global("table_open_cache", "10")?;
            let open = |number: usize, round: u64| {
                let first = (number as u64 * 37 + round * 11) % 290;
                let names: Vec<String> =
                    (first..first + 8).map(|n| format!("SELECT COUNT(*) FROM small_{n};")).collect();
                names.join("\n")
            };
            let count = values.get("sessions").round() as usize;
            Ok(cache.and(sessions::start(env.database, count, Duration::from_millis(4), Arc::new(open))?))
        },
        ..BASE
    },
];
