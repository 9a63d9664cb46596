//! Other programs on the machine compute, and the service's threads wait for a CPU.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "cpu_neighbor",
    family: Family::Host,
    mechanism: "Other programs on the machine compute, and the service's threads wait for a CPU.",
    causes: &["cpu_saturated"],
    parameters: &[Parameter::new("processes", 1.0, 16.0)],
    start: |env, values| env.processes(values.get("processes"), &["sh", "-c", "while :; do :; done"]),
    ..Fault::BASE
};
