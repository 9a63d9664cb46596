//! The database's container gets less CPU than it uses, and is stopped for the rest of each period.

use super::parts::quota;
use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "database_cpu_quota",
    family: Family::Host,
    mechanism: "The database's container gets less CPU than it uses, and is stopped for the rest of each period.",
    causes: &["cpu_throttled"],
    parameters: &[Parameter::new("cpus", 0.35, 0.05)],
    prepare: |setup, _| setup.load.at_least(100.0),
    start: |env, values| quota::until(env.database.group.as_ref(), values.get("cpus")),
    ..Fault::BASE
};
