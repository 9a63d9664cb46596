//! The users send several times as many requests, more than the service carries.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "workload_spike",
    family: Family::Load,
    mechanism: "The users send several times as many requests, more than the service carries.",
    causes: &["workload_spike"],
    parameters: &[Parameter::new("factor", 4.0, 30.0)],
    prepare: |setup, values| setup.load_factor = Some(values.get("factor")),
    ..Fault::BASE
};
