//! A new release takes one lock around a part of its handler.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "app_lock",
    family: Family::App,
    mechanism: "A new release takes one lock around a part of its handler.",
    causes: &["wait_in_app"],
    parameters: &[Parameter::new("held_ms", 4.0, 30.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| setup.load.at_least(40.0),
    start: |env, values| env.app()?.set_until("lock_ms", values.get("held_ms"), 0.0),
    ..Fault::BASE
};
