//! A new release computes more for each request.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "cpu_loop",
    family: Family::App,
    mechanism: "A new release computes more for each request.",
    causes: &["cpu_saturated"],
    parameters: &[Parameter::new("cpu_ms", 3.0, 25.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| setup.load.at_least(40.0),
    stage: |_, _| Ok(()),
    start: |env, values| env.app()?.set_until("cpu_ms", values.get("cpu_ms"), 0.0),
};
