//! Vacuum goes through a large table as fast as it can, and its reads and writes fill the disk that requests need.

use super::{Family, Fault, Parameter};
use crate::topology::{Data, Engine, Storage};

pub const FAULT: Fault = Fault {
    name: "vacuum",
    family: Family::Database,
    mechanism: "Vacuum goes through a large table as fast as it can, and its reads and writes fill the disk that requests need.",
    causes: &["autovacuum_pressure"],
    parameters: &[Parameter::new("workers", 1.0, 4.0)],
    fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled && topology.data == Data::OutOfCache,
    // Dead rows are there before it runs: to make them is a bulk change, which is another fault.
    stage: |env, values| {
        let workers = values.get("workers").round();
        env.database.sql(&format!("UPDATE document SET id = id WHERE id % 20 < {workers:.0}"))?;
        env.database.sql("CHECKPOINT").map(drop)
    },
    start: |env, _| {
        let settings = [
            ("autovacuum", "on".to_owned()),
            ("autovacuum_naptime", "1".to_owned()),
            ("autovacuum_vacuum_cost_delay", "0".to_owned()),
            ("autovacuum_vacuum_scale_factor", "0".to_owned()),
            ("autovacuum_vacuum_threshold", "50".to_owned()),
        ];
        env.database.alter_system(&settings)
    },
    ..Fault::BASE
};
