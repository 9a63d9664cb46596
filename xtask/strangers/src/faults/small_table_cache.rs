//! The cache of open tables is smaller than the tables in use, and statements close and open tables under one lock.

use std::sync::Arc;
use std::time::Duration;

use super::{Family, Fault, Parameter};
use crate::env::sessions;

pub const FAULT: Fault = Fault {
    name: "small_table_cache",
    family: Family::Database,
    mechanism: "The cache of open tables is smaller than the tables in use, and statements close and open tables under one lock.",
    causes: &["table_cache_small"],
    parameters: &[Parameter::new("sessions", 4.0, 40.0)],
    fits: |topology| topology.engine.is_mariadb(),
    prepare: |setup, _| setup.load.at_least(150.0),
    stage: |_, _| Ok(()),
    start: |env, values| {
        let tables: Vec<String> = (0..300).map(|n| format!("CREATE TABLE IF NOT EXISTS small_{n} (id INT PRIMARY KEY)")).collect();
        env.database.execute(&tables)?;
        let cache = env.database.set_global("table_open_cache", "10")?;
        let open = |number: usize, round: u64| {
            let first = (number as u64 * 37 + round * 11) % 290;
            let names: Vec<String> = (first..first + 8).map(|n| format!("SELECT COUNT(*) FROM small_{n};")).collect();
            names.join("\n")
        };
        let count = values.get("sessions").round() as usize;
        Ok(cache.and(sessions::start(env.database, count, Duration::from_millis(4), Arc::new(open))?))
    },
};
