//! Poolers between app and database, proxies in front of the app.

use std::time::Duration;

use super::{Family, Fault, Parameter};
use crate::topology::{Between, Front};

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Proxy, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "small_pooler",
        mechanism: "A new configuration leaves PgBouncer a few server connections, and transactions wait for one.",
        causes: &["connection_pool_exhausted"],
        parameters: &[Parameter::new("connections", 3.0, 1.0)],
        fits: |topology| topology.app.has_knobs() && topology.between == Between::PoolerTransaction,
        prepare: |setup, _| {
            setup.load.at_least(60.0);
            setup.knobs.push(("transaction_ms", 25.0));
        },
        start: |env, values| env.pooler()?.set_size_until(values.get("connections").round() as u32),
        ..BASE
    },
    Fault {
        name: "pooler_transactions",
        mechanism: "Other clients leave their transactions open and idle in PgBouncer, and transactions of requests wait for a server connection.",
        causes: &["connection_pool_exhausted"],
        parameters: &[Parameter::new("held_ms", 100.0, 3000.0)],
        fits: |topology| topology.between == Between::PoolerTransaction,
        start: |env, values| {
            let held = Duration::from_secs_f64(values.get("held_ms") * 1e-3);
            let pooler = env.pooler()?;
            pooler.hold(env.dir, pooler.size, "BEGIN; SELECT 1", held, "COMMIT")
        },
        ..BASE
    },
    Fault {
        name: "pooler_sessions",
        mechanism: "Other clients keep their sessions in PgBouncer, in session mode, and the app, which connects for each request, waits for a server connection.",
        causes: &["connection_pool_exhausted"],
        parameters: &[Parameter::new("left", 5.0, 1.0)],
        fits: |topology| topology.app.has_knobs() && topology.between == Between::PoolerSession,
        prepare: |setup, _| {
            setup.load.at_most(60.0);
            setup.load.at_least(30.0);
            setup.knobs.push(("reconnect", 1.0));
            setup.knobs.push(("hold_ms", 40.0));
        },
        start: |env, values| {
            let (pooler, left) = (env.pooler()?, values.get("left").round() as u32);
            pooler.hold(env.dir, pooler.size - left, "SELECT 1", HELD, "SELECT 1")
        },
        ..BASE
    },
    Fault {
        name: "few_slots",
        mechanism: "A new configuration lets HAProxy send the app a few requests at once, and the others wait in its queue.",
        causes: &["worker_pool_exhausted"],
        parameters: &[Parameter::new("slots", 3.0, 1.0)],
        fits: |topology| topology.app.has_knobs() && topology.front == Front::Haproxy,
        prepare: |setup, _| {
            setup.load.at_least(60.0);
            setup.knobs.push(("sleep_ms", 12.0));
        },
        start: |env, values| env.proxy()?.set_slots_until(values.get("slots").round() as u32),
        ..BASE
    },
    Fault {
        name: "few_proxy_connections",
        mechanism: "A new configuration leaves the worker of nginx a few connections, and it drops clients when they are taken.",
        causes: &["connection_limit"],
        parameters: &[Parameter::new("connections", 14.0, 8.0)],
        fits: |topology| topology.app.has_knobs() && topology.front == Front::Nginx,
        prepare: |setup, _| {
            setup.load.at_least(80.0);
            setup.knobs.push(("sleep_ms", 60.0));
        },
        start: |env, values| env.proxy()?.set_connections_until(values.get("connections").round() as u32),
        ..BASE
    },
];

/// Longer than a draw.
const HELD: Duration = Duration::from_secs(600);
