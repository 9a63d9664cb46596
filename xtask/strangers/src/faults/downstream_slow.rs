//! A service that the app asks for each order answers late.

use super::{Family, Fault, Parameter};
use crate::load::Operation;
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "downstream_slow",
    family: Family::App,
    mechanism: "A service that the app asks for each order answers late.",
    causes: &["downstream_slow"],
    parameters: &[Parameter::new("delay_ms", 15.0, 600.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| {
        setup.load.ensure(Operation::Order, 0.2);
        setup.load.ensure(Operation::History, 0.2);
    },
    stage: |_, _| Ok(()),
    start: |env, values| Ok(env.downstream.delay_until(values.get("delay_ms"))),
};
