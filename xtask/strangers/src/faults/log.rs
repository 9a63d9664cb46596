//! What the database keeps for transactions: old versions of rows, its log, its checkpoints.

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::env::sessions;
use crate::load::Operation;
use crate::topology::{Data, Engine, Storage};

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Database, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "long_transaction",
        mechanism: "A forgotten transaction keeps old versions of a row that is updated all the time, and readers walk through them.",
        causes: &["old_snapshot"],
        parameters: &[Parameter::new("updates", 200.0, 4000.0)],
        fits: |topology| topology.engine == Engine::Postgresql,
        prepare: |setup, _| setup.load.ensure(Operation::Item, 0.5),
        start: |env, values| {
            let forgotten = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM item WHERE id < 100";
            let open = sessions::hold(env.database, forgotten, 60_000.0, "COMMIT", 60_000.0)?;
            // Several rows, so that the versions of one do not queue for its lock.
            let updates = values.get("updates") / 10.0;
            let update = format!(
                "DO $$ BEGIN FOR n IN 1..{updates:.0} LOOP UPDATE item SET stock = stock - 1 WHERE id % 40 = n % 40; \
                 COMMIT; END LOOP; END $$"
            );
            Ok(open.and(sessions::repeat(env.database, 1.0, 300.0, &update)?))
        },
        ..BASE
    },
    Fault {
        name: "vacuum",
        mechanism: "Vacuum goes through a large table as fast as it can, and its reads and writes fill the disk that requests need.",
        causes: &["autovacuum_pressure"],
        parameters: &[Parameter::new("workers", 1.0, 4.0)],
        fits: |topology| {
            topology.engine == Engine::Postgresql
                && topology.storage == Storage::Throttled
                && topology.data == Data::OutOfCache
        },
        // Dead rows are there before it runs: to make them is a bulk change, which is another fault.
        stage: |env, values| {
            let workers = values.get("workers").round();
            env.database.sql(&format!("UPDATE document SET id = id WHERE id % 20 < {workers:.0}"))?;
            env.database.sql("CHECKPOINT").map(drop)
        },
        start: |env, _| {
            let settings = [
                ("autovacuum", "on".to_owned()),
                ("autovacuum_naptime", "1".to_owned()),
                ("autovacuum_vacuum_cost_delay", "0".to_owned()),
                ("autovacuum_vacuum_scale_factor", "0".to_owned()),
                ("autovacuum_vacuum_threshold", "50".to_owned()),
            ];
            env.database.alter_system(&settings)
        },
        ..BASE
    },
    Fault {
        name: "small_redo_log",
        mechanism: "The redo log is so small that each page changed has to be written at once, and changes wait for that.",
        causes: &["flush_storm"],
        parameters: &[Parameter::new("writers", 1.0, 4.0), Parameter::new("rows", 200.0, 2000.0)],
        fits: |topology| topology.engine.is_mariadb(),
        prepare: |setup, _| {
            setup.load.ensure(Operation::Order, 0.3);
            setup.mysql.push(("innodb_log_file_size", "4194304".to_owned()));
        },
        start: |env, values| {
            let rows = values.get("rows");
            let write = format!(
                "UPDATE article SET seen = seen + 1, body = CONCAT(seen, SUBSTRING(body, 8)) WHERE id % 4000 < {:.0}",
                rows / 20.0
            );
            sessions::repeat(env.database, values.get("writers"), 0.0, &write)
        },
        ..BASE
    },
    Fault {
        name: "checkpoint",
        mechanism: "Checkpoints follow each other closely, each writes all changed pages, and every first change of a page is logged whole.",
        causes: &["flush_storm", "commit_log_bound"],
        parameters: &[Parameter::new("pause_ms", 3000.0, 200.0), Parameter::new("writers", 1.0, 3.0)],
        fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
        prepare: |setup, _| {
            setup.load.ensure(Operation::Order, 0.3);
            setup.postgresql.push(("synchronous_commit", "on".to_owned()));
        },
        start: |env, values| {
            let checkpoints = sessions::repeat(env.database, 1.0, values.get("pause_ms"), "CHECKPOINT")?;
            let write = "UPDATE item SET stock = stock - 1 WHERE id % 50 = 7";
            Ok(checkpoints.and(sessions::repeat(env.database, values.get("writers"), 50.0, write)?))
        },
        ..BASE
    },
    Fault {
        name: "durable_commits",
        mechanism: "Each commit waits until a slow disk has the log.",
        causes: &["commit_log_bound"],
        parameters: &[Parameter::new("operations_per_second", 400.0, 25.0)],
        prepare: |setup, _| {
            setup.load.at_most(300.0);
            setup.load.ensure(Operation::Order, 0.4);
        },
        start: |env, values| {
            let slow =
                Limits { megabytes: Some(20.0), operations: Some(values.get("operations_per_second")), ..Limits::NONE };
            let disk = env.disk.limit_until(slow, env.disk_limits)?;
            let durable = if env.database.engine.is_mysql() {
                env.database.set_global("innodb_flush_log_at_trx_commit", "1")?
            } else {
                env.database.alter_system(&[("synchronous_commit", "on".to_owned())])?
            };
            Ok(disk.and(durable))
        },
        ..BASE
    },
];
