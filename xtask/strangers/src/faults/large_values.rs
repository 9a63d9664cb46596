//! Another service writes values of 10 kB again that have not changed, and the server stores each anew.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::topology::{Engine, Storage};

pub const FAULT: Fault = Fault {
    name: "large_values",
    family: Family::Database,
    mechanism: "Another service writes values of 10 kB again that have not changed, and the server stores each anew.",
    causes: &["toast_rewrite"],
    parameters: &[Parameter::new("sessions", 1.0, 6.0), Parameter::new("pause_ms", 60.0, 2.0)],
    fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
    prepare: |setup, _| setup.postgresql.push(("synchronous_commit", "on".to_owned())),
    stage: |_, _| Ok(()),
    start: |env, values| {
        let rewrite = "UPDATE article SET seen = seen + 1, body = body || '' WHERE id = 1 + (random() * 3999)::int";
        sessions::repeat(env.database, values.get("sessions"), values.get("pause_ms"), rewrite)
    },
};
