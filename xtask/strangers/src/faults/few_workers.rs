//! A new configuration leaves the app a few threads, and requests queue before them.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "few_workers",
    family: Family::App,
    mechanism: "A new configuration leaves the app a few threads, and requests queue before them.",
    causes: &["worker_pool_exhausted"],
    parameters: &[Parameter::new("workers", 6.0, 1.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| {
        setup.load.at_least(60.0);
        setup.knobs.push(("sleep_ms", 12.0));
    },
    stage: |_, _| Ok(()),
    start: |env, values| env.app()?.set_until("workers", values.get("workers").round(), 24.0),
};
