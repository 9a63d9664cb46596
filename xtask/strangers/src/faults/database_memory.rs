//! The database's container gets less memory, and pages that it had in the kernel's cache are read again and again.

use anyhow::Context as _;

use super::{Family, Fault, Parameter};
use crate::env::Running;
use crate::load::Operation;
use crate::topology::{Engine, Storage};

pub const FAULT: Fault = Fault {
    name: "database_memory",
    family: Family::Host,
    mechanism: "The database's container gets less memory, and pages that it had in the kernel's cache are read again and again.",
    causes: &["memory_pressure", "working_set_exceeds_memory"],
    parameters: &[Parameter::new("megabytes", 40.0, 4.0)],
    fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
    prepare: |setup, _| {
        setup.load.at_most(150.0);
        setup.load.connections = setup.load.connections.min(20);
        setup.load.ensure(Operation::Document, 0.4);
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let group = env.database.group.clone().context("no cgroup holds the database here")?;
        group.squeeze((values.get("megabytes") * 1e6) as u64)?;
        Ok(Running::until(move || group.set_memory(None)))
    },
};
