//! Other clients change the prices of a third of the items, in transactions that think before they commit, and orders wait for the locks.

use std::sync::Arc;
use std::time::Duration;

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;

pub const FAULT: Fault = Fault {
    name: "hot_row",
    family: Family::Database,
    mechanism: "Other clients change the prices of a third of the items, in transactions that think before they commit, and orders wait for the locks.",
    causes: &["lock_contention"],
    parameters: &[Parameter::new("sessions", 1.0, 8.0), Parameter::new("think_ms", 20.0, 250.0)],
    prepare: |setup, _| setup.load.ensure(Operation::Order, 0.25),
    start: |env, values| {
        let (sessions, think) = (values.get("sessions").round() as usize, values.get("think_ms"));
        let sleep = if env.database.engine.is_mysql() { "SELECT SLEEP" } else { "SELECT pg_sleep" };
        let range = "UPDATE item SET price = price + 0 WHERE id <= 20000";
        let round = format!("BEGIN; {range}; {sleep}({:.3}); COMMIT;", think * 1e-3);
        sessions::start(env.database, sessions, Duration::from_millis(200), Arc::new(move |_, _| round.clone()))
    },
    ..Fault::BASE
};
