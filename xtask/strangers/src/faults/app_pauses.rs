//! The app's process is stopped for moments, as a debugger, a snapshot or a paused container does.

use super::parts::pauses;
use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "app_pauses",
    family: Family::Host,
    mechanism: "The app's process is stopped for moments, as a debugger, a snapshot or a paused container does.",
    causes: &["process_stopped"],
    parameters: &[Parameter::new("stopped_ms", 60.0, 900.0)],
    fits: |topology| topology.app != App::None,
    start: |env, values| pauses::start(env.app()?.pid, values.get("stopped_ms")),
    ..Fault::BASE
};
