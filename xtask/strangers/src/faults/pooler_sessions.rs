//! Other clients keep their sessions in PgBouncer, in session mode, and the app, which connects for
//! each request, waits for a server connection.

use std::time::Duration;

use super::{Family, Fault, Parameter};
use crate::topology::{App, Between};

/// Longer than a draw.
const HELD: Duration = Duration::from_secs(600);

pub const FAULT: Fault = Fault {
    name: "pooler_sessions",
    family: Family::Proxy,
    mechanism: "Other clients keep their sessions in PgBouncer, in session mode, and the app, which connects for each request, waits for a server connection.",
    causes: &["connection_pool_exhausted"],
    parameters: &[Parameter::new("left", 5.0, 1.0)],
    fits: |topology| topology.app == App::Python && topology.between == Between::PoolerSession,
    prepare: |setup, _| {
        setup.load.at_most(60.0);
        setup.load.at_least(30.0);
        setup.knobs.push(("reconnect", 1.0));
        setup.knobs.push(("hold_ms", 40.0));
    },
    start: |env, values| {
        let (pooler, left) = (env.pooler()?, values.get("left").round() as u32);
        pooler.hold(pooler.size - left, "SELECT 1", HELD, "SELECT 1")
    },
    ..Fault::BASE
};
