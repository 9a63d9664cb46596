//! The app's container gets less CPU than it uses, and is stopped for the rest of each period.

use super::parts::quota;
use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "app_cpu_quota",
    family: Family::Host,
    mechanism: "The app's container gets less CPU than it uses, and is stopped for the rest of each period.",
    causes: &["cpu_throttled"],
    parameters: &[Parameter::new("cpus", 0.35, 0.06)],
    fits: |topology| topology.app != App::None,
    prepare: |setup, _| setup.load.at_least(60.0),
    stage: |_, _| Ok(()),
    start: |env, values| quota::until(env.app()?.group.as_ref(), values.get("cpus")),
};
