//! The app's workers are replaced a few at a time, and no request notices.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "deploy",
    family: Family::Control,
    mechanism: "The app's workers are replaced a few at a time, and no request notices.",
    parameters: &[Parameter::new("workers_left", 20.0, 12.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| setup.load.at_most(60.0),
    start: |env, values| env.app()?.set_until("workers", values.get("workers_left").round(), 24.0),
    ..Fault::BASE
};
