//! A migration adds an empty table and an index on a small one.

use super::{Family, Fault, Parameter};
use crate::env::Running;

pub const FAULT: Fault = Fault {
    name: "harmless_index",
    family: Family::Control,
    mechanism: "A migration adds an empty table and an index on a small one.",
    parameters: &[Parameter::new("tables", 1.0, 4.0)],
    prepare: |setup, _| setup.load.at_most(200.0),
    start: |env, values| {
        let count = values.get("tables").round() as u32;
        for number in 0..count {
            env.database.sql(&format!("CREATE TABLE added_{number} (id INT PRIMARY KEY, name VARCHAR(20))"))?;
        }
        let database = env.database.clone();
        Ok(Running::until(move || {
            (0..count).try_for_each(|number| database.sql(&format!("DROP TABLE added_{number}")).map(drop))
        }))
    },
    ..Fault::BASE
};
