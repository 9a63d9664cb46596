//! Checkpoints follow each other closely, each writes all changed pages, and every first change of a page is logged whole.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;
use crate::topology::{Engine, Storage};

pub const FAULT: Fault = Fault {
    name: "checkpoint",
    family: Family::Database,
    mechanism: "Checkpoints follow each other closely, each writes all changed pages, and every first change of a page is logged whole.",
    causes: &["flush_storm", "commit_log_bound"],
    parameters: &[Parameter::new("pause_ms", 3000.0, 200.0), Parameter::new("writers", 1.0, 3.0)],
    fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
    prepare: |setup, _| {
        setup.load.ensure(Operation::Order, 0.3);
        setup.postgresql.push(("synchronous_commit", "on".to_owned()));
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let checkpoints = sessions::repeat(env.database, 1.0, values.get("pause_ms"), "CHECKPOINT")?;
        let write = "UPDATE item SET stock = stock - 1 WHERE id % 50 = 7";
        Ok(checkpoints.and(sessions::repeat(env.database, values.get("writers"), 50.0, write)?))
    },
};
