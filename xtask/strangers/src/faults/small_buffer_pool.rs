//! The server's cache shrinks below what requests read, and they read from the disk.

use super::{Family, Fault, Parameter};
use crate::load::Operation;
use crate::topology::Storage;

pub const FAULT: Fault = Fault {
    name: "small_buffer_pool",
    family: Family::Database,
    mechanism: "The server's cache shrinks below what requests read, and they read from the disk.",
    causes: &["working_set_exceeds_memory"],
    parameters: &[Parameter::new("document_ratio", 0.05, 0.5)],
    fits: |topology| topology.engine.is_mariadb() && topology.storage == Storage::Throttled,
    prepare: |setup, values| {
        setup.load.at_most(150.0);
        setup.load.ensure(Operation::Document, values.get("document_ratio"));
        setup.mysql.push(("innodb_buffer_pool_size", "268435456".to_owned()));
    },
    stage: |_, _| Ok(()),
    start: |env, _| env.database.set_global("innodb_buffer_pool_size", "8388608"),
};
