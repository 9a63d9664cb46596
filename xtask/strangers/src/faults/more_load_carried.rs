//! The users send more requests, and the service carries them as before.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "more_load_carried",
    family: Family::Control,
    mechanism: "The users send more requests, and the service carries them as before.",
    parameters: &[Parameter::new("factor", 1.2, 1.7)],
    prepare: |setup, values| {
        setup.load.at_most(150.0);
        setup.load_factor = Some(values.get("factor"));
    },
    ..Fault::BASE
};
