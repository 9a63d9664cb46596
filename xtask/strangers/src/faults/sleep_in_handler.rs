//! A new release waits in its handler for something that no metric measures.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "sleep_in_handler",
    family: Family::App,
    mechanism: "A new release waits in its handler for something that no metric measures.",
    causes: &["wait_in_app"],
    parameters: &[Parameter::new("sleep_ms", 10.0, 300.0)],
    fits: |topology| topology.app == App::Python,
    start: |env, values| env.app()?.set_until("sleep_ms", values.get("sleep_ms"), 0.0),
    ..Fault::BASE
};
