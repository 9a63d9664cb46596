//! What changed: settings of a role or a database, views, triggers, releases, limits, a device that got slow, the mix of
//! requests. And what comes and goes, or hits one request of a hundred.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::env::downstream::Downstream;
use crate::env::{Running, sessions};
use crate::load::{Operation, Share};
use crate::topology::{App, Data, Engine, Front};

/// What most of these faults have in common.
const BASE: Fault = Fault { family: Family::Database, ..Fault::BASE };

/// What comes and goes is there for some seconds of each period.
const PERIOD: Duration = Duration::from_secs(8);
const PART: Duration = Duration::from_secs(3);

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "role_setting",
        mechanism: "A setting of the app's role hides indexes from the planner, and new sessions read whole tables.",
        causes: &["plan_changed", "missing_index"],
        parameters: &[Parameter::new("share_ratio", 0.05, 0.6)],
        fits: |topology| {
            topology.engine == Engine::Postgresql && topology.app.has_knobs() && !topology.between.is_pooler()
        },
        prepare: |setup, values| {
            setup.load.at_most(30.0);
            setup.load.ensure(Operation::History, values.get("share_ratio"));
            setup.knobs.push(("reconnect", 1.0));
        },
        start: |env, _| {
            let set = "ALTER ROLE app SET enable_indexscan = off; ALTER ROLE app SET enable_bitmapscan = off";
            env.database.sql_until(set, "ALTER ROLE app RESET ALL")
        },
        ..BASE
    },
    Fault {
        name: "database_setting",
        mechanism: "A setting of the database leaves statements little memory, and new sessions sort and group on disk.",
        causes: &["on_disk_temporary_tables", "plan_changed"],
        parameters: &[Parameter::new("share_ratio", 0.1, 0.6)],
        fits: |topology| {
            topology.engine == Engine::Postgresql && topology.app.has_knobs() && !topology.between.is_pooler()
        },
        prepare: |setup, values| {
            setup.load.at_most(15.0);
            setup.load.ensure(Operation::Sales, values.get("share_ratio"));
            setup.knobs.push(("reconnect", 1.0));
        },
        start: |env, _| {
            env.database.sql_until("ALTER DATABASE shop SET work_mem = '64kB'", "ALTER DATABASE shop RESET work_mem")
        },
        ..BASE
    },
    Fault {
        name: "view_replaced",
        mechanism: "A release replaces a view by one that counts the orders of ten customers for each row.",
        causes: &["plan_changed", "statement_regression"],
        parameters: &[Parameter::new("share_ratio", 0.05, 0.6)],
        fits: |topology| topology.engine == Engine::Postgresql,
        prepare: |setup, values| {
            setup.load.at_most(40.0);
            setup.load.ensure(Operation::Report, values.get("share_ratio"));
        },
        stage: |env, _| {
            let view =
                "ALTER TABLE customer RENAME TO customer_rows; CREATE VIEW customer AS SELECT * FROM customer_rows";
            env.database.sql(&format!("BEGIN; {view}; COMMIT")).map(drop)
        },
        start: |env, _| {
            let count = "SELECT COUNT(*) FROM orders o JOIN customer_rows r ON r.id = o.customer \
                         WHERE r.region = c.region AND r.id % 500 = c.id % 500";
            let replace =
                format!("CREATE OR REPLACE VIEW customer AS SELECT c.* FROM customer_rows c WHERE ({count}) > 0");
            let table = "BEGIN; DROP VIEW customer; ALTER TABLE customer_rows RENAME TO customer; COMMIT";
            env.database.sql_until(&replace, table)
        },
        ..BASE
    },
    Fault {
        name: "trigger_added",
        mechanism: "A trigger is added that reads all orders of an item, which has no index, for each order.",
        causes: &["missing_index", "statement_regression"],
        parameters: &[Parameter::new("share_ratio", 0.1, 0.6)],
        fits: |topology| topology.engine == Engine::Postgresql,
        prepare: |setup, values| {
            setup.load.at_most(50.0);
            setup.load.ensure(Operation::Order, values.get("share_ratio"));
        },
        start: |env, _| {
            let function = "CREATE FUNCTION recount() RETURNS trigger LANGUAGE plpgsql AS \
                            $$ BEGIN PERFORM SUM(quantity) FROM orders WHERE item = NEW.item; RETURN NEW; END $$";
            let trigger = "CREATE TRIGGER recount AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION recount()";
            env.database.sql_until(&format!("{function}; {trigger}"), "DROP FUNCTION recount CASCADE")
        },
        ..BASE
    },
    Fault {
        name: "statement_replaced",
        mechanism: "A release replaces a statement by one that computes with the column of the index, and reads along the table.",
        causes: &["missing_index", "statement_mix_changed", "plan_changed"],
        parameters: &[Parameter::new("share_ratio", 0.05, 0.6)],
        fits: |topology| topology.app.has_knobs(),
        prepare: |setup, values| {
            setup.load.at_most(60.0);
            setup.load.ensure(Operation::History, values.get("share_ratio"));
        },
        start: |env, _| env.app()?.set_until("released", 1.0, 0.0),
        ..BASE
    },
    Fault {
        name: "slow_device",
        family: Family::Host,
        mechanism: "The disk takes longer for each read and write, however few there are.",
        causes: &["disk_saturated", "uninterruptible_pileup"],
        parameters: &[Parameter::new("latency_ms", 3.0, 60.0)],
        fits: |topology| topology.data == Data::OutOfCache,
        prepare: |setup, _| {
            setup.load.at_most(100.0);
            setup.load.ensure(Operation::Document, 0.4);
        },
        start: |env, values| slow_device(env, values.get("latency_ms")),
        ..BASE
    },
    Fault {
        name: "slow_flush",
        family: Family::Host,
        mechanism: "The disk takes longer for each write, and durable commits wait for their log.",
        causes: &["commit_log_bound", "disk_saturated"],
        parameters: &[Parameter::new("latency_ms", 3.0, 60.0)],
        prepare: |setup, _| {
            setup.load.at_most(80.0);
            setup.load.ensure(Operation::Order, 0.4);
            setup.mysql.push(("innodb_flush_log_at_trx_commit", "1".to_owned()));
            setup.postgresql.push(("synchronous_commit", "on".to_owned()));
        },
        start: |env, values| slow_device(env, values.get("latency_ms")),
        ..BASE
    },
    Fault {
        name: "quota_lowered",
        family: Family::Host,
        mechanism: "The limit on CPU time of the app's container is lowered below what it uses.",
        causes: &["cpu_throttled"],
        parameters: &[Parameter::new("cpus", 0.35, 0.06)],
        fits: |topology| topology.app != App::None,
        prepare: |setup, _| setup.load.at_least(60.0),
        stage: |env, _| group(env)?.set_cpus(Some(1.0)),
        start: |env, values| {
            let group = group(env)?;
            group.set_cpus(Some(values.get("cpus")))?;
            Ok(Running::until(move || group.set_cpus(None)))
        },
    },
    Fault {
        name: "small_backlog",
        family: Family::App,
        mechanism: "A new configuration leaves the app a short queue of connections to accept, and those that come together are dropped.",
        causes: &["accept_queue_overflow"],
        parameters: &[Parameter::new("backlog", 4.0, 1.0)],
        fits: |topology| topology.app == App::Python && topology.front == Front::Nothing,
        prepare: |setup, _| {
            setup.load.at_least(80.0);
            setup.load.at_most(120.0);
            setup.keep_alive = false;
            // The thread that accepts waits for the interpreter now and then.
            setup.knobs.push(("cpu_ms", 2.0));
        },
        start: |env, values| env.app()?.set_until("backlog", values.get("backlog").round(), 256.0),
        ..BASE
    },
    Fault {
        name: "dearer_mix",
        family: Family::Load,
        mechanism: "The users send as many requests as before, and more of them are for the dearest report.",
        causes: &["statement_mix_changed", "cpu_saturated"],
        parameters: &[Parameter::new("share_ratio", 0.1, 0.8)],
        prepare: |setup, values| {
            setup.load.at_least(30.0);
            setup.load.at_most(60.0);
            setup.load.ensure(Operation::Sales, 0.005);
            let mut after = setup.load.clone();
            after.ensure(Operation::Sales, values.get("share_ratio"));
            setup.mix = after.mix.into_iter().filter(|share: &Share| share.operation == Operation::Sales).collect();
        },
        ..BASE
    },
    Fault {
        name: "periodic_lock",
        mechanism: "A job locks the table of orders every eight seconds, for up to three of them.",
        causes: &["lock_contention"],
        parameters: &[Parameter::new("held_ms", 300.0, 3000.0)],
        prepare: |setup, _| setup.load.ensure(Operation::History, 0.25),
        start: |env, values| {
            let (begin, end) = if env.database.engine.is_mysql() {
                ("LOCK TABLES orders WRITE", "UNLOCK TABLES")
            } else {
                ("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE", "COMMIT")
            };
            sessions::hold(env.database, begin, values.get("held_ms"), end, PERIOD.as_secs_f64() * 1e3)
        },
        ..BASE
    },
    Fault {
        name: "periodic_third_party",
        family: Family::App,
        mechanism: "The service that the app asks for each order answers late for three seconds of every eight.",
        causes: &["downstream_slow"],
        parameters: &[Parameter::new("delay_ms", 30.0, 800.0)],
        fits: |topology| topology.app.has_knobs(),
        prepare: asks_the_third_party,
        start: |env, values| comes_and_goes(env.downstream, values.get("delay_ms")),
        ..BASE
    },
    Fault {
        name: "tail_third_party",
        family: Family::App,
        mechanism: "The service that the app asks for each order takes seconds for one request of a hundred.",
        causes: &["downstream_slow"],
        parameters: &[Parameter::new("delay_ms", 500.0, 4000.0)],
        fits: |topology| topology.app.has_knobs(),
        prepare: asks_the_third_party,
        start: |env, values| Ok(env.downstream.delay_some_until(values.get("delay_ms"), 100)),
        ..BASE
    },
    Fault {
        name: "tail_lock",
        mechanism: "Another client keeps one item of fifty locked, and one request of a hundred waits for that.",
        causes: &["lock_contention"],
        parameters: &[Parameter::new("held_ms", 500.0, 4000.0)],
        prepare: |setup, _| setup.load.ensure(Operation::Order, 0.5),
        start: |env, values| {
            let begin = "BEGIN; SELECT COUNT(*) FROM (SELECT id FROM item WHERE id <= 1200 FOR UPDATE) held";
            let held = values.get("held_ms");
            sessions::hold(env.database, begin, held, "COMMIT", held * 1.1)
        },
        ..BASE
    },
    Fault {
        name: "harmless_settings",
        family: Family::Control,
        mechanism: "A role that no request uses gets other settings, and a view that no request reads is replaced.",
        parameters: &[Parameter::new("views", 1.0, 4.0)],
        fits: |topology| topology.engine == Engine::Postgresql,
        start: |env, values| {
            let count = values.get("views").round() as u32;
            let views = (0..count).map(|n| format!("CREATE OR REPLACE VIEW unused_{n} AS SELECT id FROM item"));
            let set = "ALTER ROLE batch SET enable_indexscan = off; ALTER ROLE batch SET work_mem = '64kB'".to_owned();
            let undo = (0..count).map(|n| format!("DROP VIEW unused_{n}"));
            let now: Vec<String> = std::iter::once(set).chain(views).collect();
            let after: Vec<String> = std::iter::once("ALTER ROLE batch RESET ALL".to_owned()).chain(undo).collect();
            env.database.sql_until(&now.join("; "), &after.join("; "))
        },
        ..BASE
    },
    Fault {
        name: "harmless_job",
        family: Family::Control,
        mechanism: "A job reads a small table every eight seconds, which no request notices.",
        parameters: &[Parameter::new("sessions", 1.0, 3.0)],
        start: |env, values| {
            let read = "SELECT COUNT(*) FROM customer WHERE name LIKE '%a%'";
            sessions::repeat(env.database, values.get("sessions"), PERIOD.as_secs_f64() * 1e3, read)
        },
        ..BASE
    },
];

fn asks_the_third_party(setup: &mut super::Setup, _: &super::Values) {
    setup.load.at_least(40.0);
    setup.load.ensure(Operation::Order, 0.2);
    setup.load.ensure(Operation::History, 0.3);
}

/// Lets each request of the disk take so long until the fault ends.
fn slow_device(env: &super::Env<'_>, latency_ms: f64) -> Result<Running> {
    env.disk.limit_until(Limits { latency_ms: Some(latency_ms), ..env.disk_limits }, env.disk_limits)
}

fn group(env: &super::Env<'_>) -> Result<Arc<crate::env::groups::Group>> {
    env.app()?.group.clone().context("no cgroup with a CPU controller can be made here; run as root")
}

/// Lets the third party take so long for a part of each period, until the fault ends.
fn comes_and_goes(downstream: &Downstream, delay_ms: f64) -> Result<Running> {
    let stop = Arc::new(AtomicBool::new(false));
    let (asked, downstream) = (Arc::clone(&stop), downstream.clone());
    let wait = move |time: Duration, stop: &AtomicBool| {
        for _ in 0..time.as_millis() / 50 {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    };
    let work = move || {
        while !asked.load(Ordering::Relaxed) {
            let late = downstream.delay_until(delay_ms);
            wait(PART, &asked);
            drop(late);
            wait(PERIOD - PART, &asked);
        }
    };
    let thread = thread::Builder::new().name("periods".to_owned()).spawn(work).context("could not start a thread")?;
    Ok(Running::until(move || {
        stop.store(true, Ordering::Relaxed);
        let _ = thread.join();
        Ok(())
    }))
}
