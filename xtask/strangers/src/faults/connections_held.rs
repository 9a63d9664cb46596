//! The app keeps its connection over other work, and its pool no longer suffices.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "connections_held",
    family: Family::App,
    mechanism: "The app keeps its connection over other work, and its pool no longer suffices.",
    // At a low rate the pool suffices, and the time is what the handler sleeps with its connection.
    causes: &["connection_pool_exhausted", "wait_in_app"],
    parameters: &[Parameter::new("hold_ms", 80.0, 500.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| setup.load.at_least(50.0),
    stage: |_, _| Ok(()),
    start: |env, values| env.app()?.set_until("hold_ms", values.get("hold_ms"), 0.0),
};
