//! The app's workers and its pool of database connections.

use super::{Family, Fault, Parameter};

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::App, fits: |topology| topology.app.has_knobs(), ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "few_workers",
        mechanism: "A new configuration leaves the app a few threads, and requests queue before them.",
        causes: &["worker_pool_exhausted"],
        parameters: &[Parameter::new("workers", 6.0, 1.0)],
        fits: |topology| topology.app.has_threads(),
        prepare: |setup, _| {
            setup.load.at_least(60.0);
            setup.knobs.push(("sleep_ms", 12.0));
        },
        start: |env, values| env.app()?.set_until("workers", values.get("workers").round(), 24.0),
        ..BASE
    },
    Fault {
        name: "small_pool",
        mechanism: "A new configuration leaves the app a few database connections, each held for a while, and requests wait for one.",
        causes: &["connection_pool_exhausted"],
        parameters: &[Parameter::new("connections", 4.0, 1.0)],
        prepare: |setup, _| {
            setup.load.at_least(60.0);
            setup.knobs.push(("hold_ms", 25.0));
        },
        start: |env, values| env.app()?.set_until("pool", values.get("connections").round(), 16.0),
        ..BASE
    },
    Fault {
        name: "pool_leak",
        mechanism: "The app forgets to give a connection back now and then, until its pool is empty.",
        causes: &["connection_pool_exhausted"],
        parameters: &[Parameter::new("leak_every", 80.0, 15.0)],
        prepare: |setup, _| setup.load.at_least(60.0),
        start: |env, values| env.app()?.set_until("leak_every", values.get("leak_every").round(), 0.0),
        ..BASE
    },
    Fault {
        name: "connections_held",
        mechanism: "The app keeps its connection over other work, and its pool no longer suffices.",
        // At a low rate the pool suffices, and the time is what the handler sleeps with its connection.
        causes: &["connection_pool_exhausted", "wait_in_app"],
        parameters: &[Parameter::new("hold_ms", 80.0, 500.0)],
        prepare: |setup, _| setup.load.at_least(50.0),
        start: |env, values| env.app()?.set_until("hold_ms", values.get("hold_ms"), 0.0),
        ..BASE
    },
];
