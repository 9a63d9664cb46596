//! The load itself.

use super::{Family, Fault, Parameter};
use crate::load::Load;

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Load, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "workload_spike",
        mechanism: "The users send several times as many requests, more than the service carries.",
        causes: &["workload_spike"],
        parameters: &[Parameter::new("factor", 4.0, 30.0)],
        prepare: |setup, values| setup.load_factor = Some(values.get("factor")),
        ..BASE
    },
    Fault {
        name: "other_clients",
        mechanism: "Other clients send the same requests at a multiple of the rate that is measured.",
        causes: &["workload_spike"],
        parameters: &[Parameter::new("factor", 2.0, 12.0)],
        start: |env, values| {
            env.other_clients(&Load { rate: env.load.rate * values.get("factor"), ..env.load.clone() })
        },
        ..BASE
    },
    Fault {
        name: "generator_limit",
        mechanism: "The load generator has fewer connections than the requests that are due, and they wait inside it.",
        causes: &["load_generator_limit"],
        parameters: &[Parameter::new("connections", 2.0, 1.0)],
        prepare: |setup, values| {
            setup.load.at_least(60.0);
            setup.load.connections = values.get("connections").round() as u32;
            setup.load_factor = Some(8.0);
            setup.knobs.push(("sleep_ms", 4.0));
        },
        ..BASE
    },
    Fault {
        name: "overload",
        mechanism: "The load rises beyond what the machine carries.",
        causes: &["workload_spike"],
        parameters: &[Parameter::new("factor", 10.0, 60.0)],
        prepare: |setup, values| {
            setup.load.at_least(150.0);
            setup.load_factor = Some(values.get("factor"));
        },
        ..BASE
    },
];
