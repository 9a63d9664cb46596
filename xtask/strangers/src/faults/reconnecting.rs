//! A new release connects to the database for each request instead of keeping connections.

use super::{Family, Fault, Parameter};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "reconnecting",
    family: Family::App,
    mechanism: "A new release connects to the database for each request instead of keeping connections.",
    causes: &["connection_per_request"],
    parameters: &[Parameter::new("share", 1.0, 1.0)],
    fits: |topology| topology.app == App::Python,
    start: |env, values| env.app()?.set_until("reconnect", values.get("share"), 0.0),
    ..Fault::BASE
};
