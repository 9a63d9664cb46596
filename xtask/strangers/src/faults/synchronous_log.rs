//! The app writes a line of its log for each request and waits until a slow disk has it.

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "synchronous_log",
    family: Family::App,
    mechanism: "The app writes a line of its log for each request and waits until a slow disk has it.",
    causes: &["disk_saturated", "iops_ceiling", "uninterruptible_pileup"],
    parameters: &[Parameter::new("operations_per_second", 400.0, 40.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| setup.load.at_least(40.0),
    stage: |_, _| Ok(()),
    start: |env, values| {
        let slow = Limits { megabytes: Some(20.0), operations: Some(values.get("operations_per_second")) };
        let disk = env.disk.limit_until(slow, env.disk_limits)?;
        Ok(disk.and(env.app()?.set_until("log_sync", 1.0, 0.0)?))
    },
};
