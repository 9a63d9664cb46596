//! A new configuration leaves PgBouncer a few server connections, and transactions wait for one.

use super::{Family, Fault, Parameter};
use crate::topology::{App, Between};

pub const FAULT: Fault = Fault {
    name: "small_pooler",
    family: Family::Proxy,
    mechanism: "A new configuration leaves PgBouncer a few server connections, and transactions wait for one.",
    causes: &["connection_pool_exhausted"],
    parameters: &[Parameter::new("connections", 3.0, 1.0)],
    fits: |topology| topology.app == App::Python && topology.between == Between::PoolerTransaction,
    prepare: |setup, _| {
        setup.load.at_least(60.0);
        setup.knobs.push(("transaction_ms", 25.0));
    },
    start: |env, values| env.pooler()?.set_size_until(values.get("connections").round() as u32),
    ..Fault::BASE
};
