//! A new configuration leaves the app a few database connections, each held for a while, and requests wait for one.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "small_pool",
    family: Family::App,
    mechanism: "A new configuration leaves the app a few database connections, each held for a while, and requests wait for one.",
    causes: &["connection_pool_exhausted"],
    parameters: &[Parameter::new("connections", 4.0, 1.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| {
        setup.load.at_least(60.0);
        setup.knobs.push(("hold_ms", 25.0));
    },
    stage: |_, _| Ok(()),
    start: |env, values| env.app()?.set_until("pool", values.get("connections").round(), 16.0),
};
