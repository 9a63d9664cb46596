//! Another program computes at the lowest priority, on CPU time that is otherwise idle.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "harmless_neighbor",
    family: Family::Control,
    mechanism: "Another program computes at the lowest priority, on CPU time that is otherwise idle.",
    parameters: &[Parameter::new("processes", 1.0, 2.0)],
    prepare: |setup, _| setup.load.at_most(150.0),
    start: |env, values| env.processes(values.get("processes"), &["nice", "-n", "19", "sh", "-c", "while :; do :; done"]),
    ..Fault::BASE
};
