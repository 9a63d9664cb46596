//! What happens and harms no request.

use super::{Family, Fault, Parameter};
use crate::env::{Running, sessions};
use crate::topology::{App, Data};

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Control, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault { name: "healthy", mechanism: "Nothing happens.", ..BASE },
    Fault {
        name: "more_load_carried",
        mechanism: "The users send more requests, and the service carries them as before.",
        parameters: &[Parameter::new("factor", 1.2, 1.7)],
        prepare: |setup, values| {
            setup.load.at_most(150.0);
            setup.load_factor = Some(values.get("factor"));
        },
        ..BASE
    },
    Fault {
        name: "harmless_backup",
        mechanism: "A backup runs at its leisure and takes nothing that requests need.",
        parameters: &[Parameter::new("pause_ms", 800.0, 200.0)],
        fits: |topology| topology.data == Data::InCache,
        prepare: |setup, _| setup.load.at_most(200.0),
        start: |env, values| {
            let port = env.database.side_port();
            let dump = if env.database.engine.is_mysql() {
                format!("mariadb-dump --no-defaults -h127.0.0.1 -P {port} -u batch --single-transaction shop customer")
            } else {
                format!("pg_dump -h 127.0.0.1 -p {port} -U batch -t customer shop")
            };
            let pause = values.get("pause_ms") * 1e-3;
            let work = format!("while :; do nice -n 19 {dump} >/dev/null; sleep {pause:.2}; done");
            env.processes(1.0, &["sh", "-c", &work])
        },
        ..BASE
    },
    Fault {
        name: "harmless_index",
        mechanism: "A migration adds an empty table and an index on a small one.",
        parameters: &[Parameter::new("tables", 1.0, 4.0)],
        prepare: |setup, _| setup.load.at_most(200.0),
        start: |env, values| {
            let count = values.get("tables").round() as u32;
            for number in 0..count {
                env.database.sql(&format!("CREATE TABLE added_{number} (id INT PRIMARY KEY, name VARCHAR(20))"))?;
            }
            let database = env.database.clone();
            Ok(Running::until(move || {
                (0..count).try_for_each(|number| database.sql(&format!("DROP TABLE added_{number}")).map(drop))
            }))
        },
        ..BASE
    },
    Fault {
        name: "harmless_analyze",
        mechanism: "The server gathers statistics of a small table, as it does by itself now and then.",
        parameters: &[Parameter::new("pause_ms", 4000.0, 1000.0)],
        start: |env, values| {
            let analyze = if env.database.engine.is_mysql() { "ANALYZE TABLE customer" } else { "ANALYZE customer" };
            sessions::repeat(env.database, 1.0, values.get("pause_ms"), analyze)
        },
        ..BASE
    },
    Fault {
        name: "harmless_neighbor",
        mechanism: "Another program computes at the lowest priority, on CPU time that is otherwise idle.",
        parameters: &[Parameter::new("processes", 1.0, 2.0)],
        prepare: |setup, _| setup.load.at_most(150.0),
        start: |env, values| {
            env.processes(values.get("processes"), &["nice", "-n", "19", "sh", "-c", "while :; do :; done"])
        },
        ..BASE
    },
    Fault {
        name: "deploy",
        mechanism: "The app's workers are replaced a few at a time, and no request notices.",
        parameters: &[Parameter::new("workers_left", 20.0, 12.0)],
        // gunicorn starts new workers for it, which requests notice.
        fits: |topology| topology.app.has_threads() && topology.app != App::Flask,
        prepare: |setup, _| setup.load.at_most(60.0),
        start: |env, values| env.app()?.set_until("workers", values.get("workers_left").round(), 24.0),
        ..BASE
    },
];
