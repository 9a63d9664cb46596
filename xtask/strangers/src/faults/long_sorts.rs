//! Other clients sort more than their memory holds, and the server spills the sort to the disk.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;
use crate::topology::{Engine, Storage};

pub const FAULT: Fault = Fault {
    name: "long_sorts",
    family: Family::Database,
    mechanism: "Other clients sort more than their memory holds, and the server spills the sort to the disk.",
    causes: &["on_disk_temporary_tables"],
    parameters: &[Parameter::new("sessions", 1.0, 8.0)],
    fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
    prepare: |setup, _| {
        setup.load.ensure(Operation::Order, 0.3);
        setup.postgresql.push(("synchronous_commit", "on".to_owned()));
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let sort = "SET work_mem = '64kB'; SELECT COUNT(*) FROM (SELECT note FROM orders ORDER BY note DESC) t";
        sessions::repeat(env.database, values.get("sessions"), 50.0, sort)
    },
};
