//! The disk does fewer operations a second than the database asks for.

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::load::Operation;
use crate::topology::Data;

pub const FAULT: Fault = Fault {
    name: "disk_operations",
    family: Family::Host,
    mechanism: "The disk does fewer operations a second than the database asks for.",
    causes: &["iops_ceiling"],
    parameters: &[Parameter::new("operations_per_second", 80.0, 8.0)],
    fits: |topology| topology.data == Data::OutOfCache,
    prepare: |setup, _| {
        setup.load.at_least(120.0);
        setup.load.at_most(150.0);
        setup.load.ensure(Operation::Document, 0.4);
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let slow = Limits { megabytes: None, operations: Some(values.get("operations_per_second")) };
        env.disk.limit_until(slow, env.disk_limits)
    },
};
