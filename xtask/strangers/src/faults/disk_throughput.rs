//! The disk does fewer bytes a second than reads and writes of the database ask for.

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::load::Operation;
use crate::topology::Data;

pub const FAULT: Fault = Fault {
    name: "disk_throughput",
    family: Family::Host,
    mechanism: "The disk does fewer bytes a second than reads and writes of the database ask for.",
    causes: &["throughput_ceiling"],
    parameters: &[Parameter::new("megabytes_per_second", 2.0, 0.15)],
    fits: |topology| topology.data == Data::OutOfCache,
    prepare: |setup, _| {
        setup.load.at_least(200.0);
        setup.load.at_most(300.0);
        setup.load.ensure(Operation::Document, 0.5);
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let slow = Limits { megabytes: Some(values.get("megabytes_per_second")), operations: None };
        env.disk.limit_until(slow, env.disk_limits)
    },
};
