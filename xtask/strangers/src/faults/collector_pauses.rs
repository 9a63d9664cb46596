//! The garbage collector stops the app for as long as its many objects take.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "collector_pauses",
    family: Family::App,
    mechanism: "The garbage collector stops the app for as long as its many objects take.",
    causes: &["runtime_pause"],
    parameters: &[Parameter::new("objects", 200000.0, 2500000.0)],
    fits: |topology| topology.app == App::Python,
    start: |env, values| {
        let app = env.app()?;
        app.set(&[("collect_every_ms", 900.0)])?;
        app.set_until("collect_objects", values.get("objects").round(), 0.0)
    },
    ..Fault::BASE
};
