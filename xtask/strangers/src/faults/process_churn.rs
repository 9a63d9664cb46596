//! Something on the machine starts programs all the time, which takes the CPUs in pieces that no process shows.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "process_churn",
    family: Family::Host,
    mechanism: "Something on the machine starts programs all the time, which takes the CPUs in pieces that no process shows.",
    causes: &["cpu_saturated"],
    parameters: &[Parameter::new("loops", 1.0, 10.0)],
    start: |env, values| env.processes(values.get("loops"), &["sh", "-c", "while :; do /bin/true; done"]),
    ..Fault::BASE
};
