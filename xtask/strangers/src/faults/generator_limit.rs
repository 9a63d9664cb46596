//! The load generator has fewer connections than the requests that are due, and they wait inside it.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "generator_limit",
    family: Family::Load,
    mechanism: "The load generator has fewer connections than the requests that are due, and they wait inside it.",
    causes: &["load_generator_limit"],
    parameters: &[Parameter::new("connections", 2.0, 1.0)],
    prepare: |setup, values| {
        setup.load.at_least(60.0);
        setup.load.connections = values.get("connections").round() as u32;
        setup.load_factor = Some(8.0);
        setup.knobs.push(("sleep_ms", 4.0));
    },
    ..Fault::BASE
};
