//! The load rises beyond what the machine carries.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "overload",
    family: Family::Load,
    mechanism: "The load rises beyond what the machine carries.",
    causes: &["workload_spike"],
    parameters: &[Parameter::new("factor", 10.0, 60.0)],
    prepare: |setup, values| {
        setup.load.at_least(150.0);
        setup.load_factor = Some(values.get("factor"));
    },
    ..Fault::BASE
};
