//! The server gathers statistics of a small table, as it does by itself now and then.

use super::{Family, Fault, Parameter};
use crate::env::sessions;

pub const FAULT: Fault = Fault {
    name: "harmless_analyze",
    family: Family::Control,
    mechanism: "The server gathers statistics of a small table, as it does by itself now and then.",
    parameters: &[Parameter::new("pause_ms", 4000.0, 1000.0)],
    start: |env, values| {
        let analyze = if env.database.engine.is_mysql() { "ANALYZE TABLE customer" } else { "ANALYZE customer" };
        sessions::repeat(env.database, 1.0, values.get("pause_ms"), analyze)
    },
    ..Fault::BASE
};
