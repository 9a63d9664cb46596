//! Other clients leave their transactions open and idle in PgBouncer, and transactions of requests
//! wait for a server connection.

use std::time::Duration;

use super::{Family, Fault, Parameter};
use crate::topology::Between;

pub const FAULT: Fault = Fault {
    name: "pooler_transactions",
    family: Family::Proxy,
    mechanism: "Other clients leave their transactions open and idle in PgBouncer, and transactions of requests wait for a server connection.",
    causes: &["connection_pool_exhausted"],
    parameters: &[Parameter::new("held_ms", 100.0, 3000.0)],
    fits: |topology| topology.between == Between::PoolerTransaction,
    start: |env, values| {
        let held = Duration::from_secs_f64(values.get("held_ms") * 1e-3);
        let pooler = env.pooler()?;
        pooler.hold(pooler.size, "BEGIN; SELECT 1", held, "COMMIT")
    },
    ..Fault::BASE
};
