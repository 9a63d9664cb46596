//! Other clients send the same requests at a multiple of the rate that is measured.

use super::{Family, Fault, Parameter};
use crate::load::Load;

pub const FAULT: Fault = Fault {
    name: "other_clients",
    family: Family::Load,
    mechanism: "Other clients send the same requests at a multiple of the rate that is measured.",
    causes: &["workload_spike"],
    parameters: &[Parameter::new("factor", 2.0, 12.0)],
    start: |env, values| env.other_clients(&Load { rate: env.load.rate * values.get("factor"), ..env.load.clone() }),
    ..Fault::BASE
};
