//! The database's process is stopped for moments, as a snapshot of its machine does.

use super::parts::pauses;
use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "database_pauses",
    family: Family::Host,
    mechanism: "The database's process is stopped for moments, as a snapshot of its machine does.",
    causes: &["process_stopped"],
    parameters: &[Parameter::new("stopped_ms", 60.0, 900.0)],
    fits: |topology| topology.engine.is_mysql(),
    start: |env, values| pauses::start(env.database.pid, values.get("stopped_ms")),
    ..Fault::BASE
};
