//! The app forgets to give a connection back now and then, until its pool is empty.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "pool_leak",
    family: Family::App,
    mechanism: "The app forgets to give a connection back now and then, until its pool is empty.",
    causes: &["connection_pool_exhausted"],
    parameters: &[Parameter::new("leak_every", 80.0, 15.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| setup.load.at_least(60.0),
    stage: |_, _| Ok(()),
    start: |env, values| env.app()?.set_until("leak_every", values.get("leak_every").round(), 0.0),
};
