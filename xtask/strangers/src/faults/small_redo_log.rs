//! The redo log is so small that each page changed has to be written at once, and changes wait for that.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "small_redo_log",
    family: Family::Database,
    mechanism: "The redo log is so small that each page changed has to be written at once, and changes wait for that.",
    causes: &["flush_storm"],
    parameters: &[Parameter::new("writers", 1.0, 4.0), Parameter::new("rows", 200.0, 2000.0)],
    fits: |topology| topology.engine.is_mariadb(),
    prepare: |setup, _| {
        setup.load.ensure(Operation::Order, 0.3);
        setup.mysql.push(("innodb_log_file_size", "4194304".to_owned()));
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let rows = values.get("rows");
        let write = format!(
            "UPDATE article SET seen = seen + 1, body = CONCAT(seen, SUBSTRING(body, 8)) WHERE id % 4000 < {:.0}",
            rows / 20.0
        );
        sessions::repeat(env.database, values.get("writers"), 0.0, &write)
    },
};
