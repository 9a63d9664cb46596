//! Each commit waits until a slow disk has the log.

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "durable_commits",
    family: Family::Database,
    mechanism: "Each commit waits until a slow disk has the log.",
    causes: &["commit_log_bound"],
    parameters: &[Parameter::new("operations_per_second", 400.0, 25.0)],
    prepare: |setup, _| {
        setup.load.at_most(300.0);
        setup.load.ensure(Operation::Order, 0.4);
    },
    start: |env, values| {
        let slow = Limits { megabytes: Some(20.0), operations: Some(values.get("operations_per_second")) };
        let disk = env.disk.limit_until(slow, env.disk_limits)?;
        let durable = if env.database.engine.is_mysql() {
            env.database.set_global("innodb_flush_log_at_trx_commit", "1")?
        } else {
            env.database.alter_system(&[("synchronous_commit", "on".to_owned())])?
        };
        Ok(disk.and(durable))
    },
    ..Fault::BASE
};
