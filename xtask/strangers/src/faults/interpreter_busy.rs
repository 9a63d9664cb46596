//! Background threads hold the interpreter's lock, and each request waits for its turn several times.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "interpreter_busy",
    family: Family::App,
    mechanism: "Background threads hold the interpreter's lock, and each request waits for its turn several times.",
    causes: &["cpu_saturated"],
    parameters: &[Parameter::new("threads", 1.0, 6.0)],
    fits: |topology| topology.app == App::Python,
    start: |env, values| env.app()?.set_until("busy_threads", values.get("threads").round(), 0.0),
    ..Fault::BASE
};
