//! The app's own code, and the service that it asks.

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::load::Operation;
use crate::topology::App;

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::App, fits: |topology| topology.app.has_knobs(), ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "downstream_slow",
        mechanism: "A service that the app asks for each order answers late.",
        causes: &["downstream_slow"],
        parameters: &[Parameter::new("delay_ms", 15.0, 600.0)],
        prepare: |setup, _| {
            setup.load.ensure(Operation::Order, 0.2);
            setup.load.ensure(Operation::History, 0.2);
        },
        start: |env, values| Ok(env.downstream.delay_until(values.get("delay_ms"))),
        ..BASE
    },
    Fault {
        name: "cpu_loop",
        mechanism: "A new release computes more for each request.",
        causes: &["cpu_saturated"],
        parameters: &[Parameter::new("cpu_ms", 3.0, 25.0)],
        prepare: |setup, _| setup.load.at_least(40.0),
        start: |env, values| env.app()?.set_until("cpu_ms", values.get("cpu_ms"), 0.0),
        ..BASE
    },
    Fault {
        name: "interpreter_busy",
        mechanism: "Background threads hold the interpreter's lock, and each request waits for its turn several times.",
        causes: &["cpu_saturated"],
        parameters: &[Parameter::new("threads", 1.0, 6.0)],
        fits: |topology| topology.app == App::Python,
        start: |env, values| env.app()?.set_until("busy_threads", values.get("threads").round(), 0.0),
        ..BASE
    },
    Fault {
        name: "collector_pauses",
        mechanism: "The garbage collector stops the app for as long as its many objects take.",
        causes: &["runtime_pause"],
        parameters: &[Parameter::new("objects", 200000.0, 2500000.0)],
        fits: |topology| topology.app == App::Python,
        start: |env, values| {
            let app = env.app()?;
            app.set(&[("collect_every_ms", 900.0)])?;
            app.set_until("collect_objects", values.get("objects").round(), 0.0)
        },
        ..BASE
    },
    Fault {
        name: "sleep_in_handler",
        mechanism: "A new release waits in its handler for something that no metric measures.",
        causes: &["wait_in_app"],
        parameters: &[Parameter::new("sleep_ms", 10.0, 300.0)],
        start: |env, values| env.app()?.set_until("sleep_ms", values.get("sleep_ms"), 0.0),
        ..BASE
    },
    Fault {
        name: "synchronous_log",
        mechanism: "The app writes a line of its log for each request and waits until a slow disk has it.",
        causes: &["disk_saturated", "iops_ceiling", "uninterruptible_pileup"],
        parameters: &[Parameter::new("operations_per_second", 400.0, 40.0)],
        fits: |topology| topology.app == App::Python,
        prepare: |setup, _| setup.load.at_least(40.0),
        start: |env, values| {
            let slow =
                Limits { megabytes: Some(20.0), operations: Some(values.get("operations_per_second")), ..Limits::NONE };
            let disk = env.disk.limit_until(slow, env.disk_limits)?;
            Ok(disk.and(env.app()?.set_until("log_sync", 1.0, 0.0)?))
        },
        ..BASE
    },
    Fault {
        name: "reconnecting",
        mechanism: "A new release connects to the database for each request instead of keeping connections.",
        causes: &["connection_per_request"],
        parameters: &[Parameter::new("share", 1.0, 1.0)],
        start: |env, values| env.app()?.set_until("reconnect", values.get("share"), 0.0),
        ..BASE
    },
    Fault {
        name: "app_lock",
        mechanism: "A new release takes one lock around a part of its handler.",
        causes: &["wait_in_app"],
        parameters: &[Parameter::new("held_ms", 4.0, 30.0)],
        prepare: |setup, _| setup.load.at_least(40.0),
        start: |env, values| env.app()?.set_until("lock_ms", values.get("held_ms"), 0.0),
        ..BASE
    },
    Fault {
        name: "statement_per_row",
        mechanism: "A new release reads each item of a category by a statement of its own.",
        causes: &["n_plus_one_queries"],
        parameters: &[Parameter::new("statements", 10.0, 100.0)],
        prepare: |setup, _| {
            setup.load.at_most(60.0);
            setup.load.ensure(Operation::Category, 0.3);
        },
        start: |env, values| env.app()?.set_until("n_plus_one", values.get("statements").round(), 0.0),
        ..BASE
    },
    Fault {
        name: "cache_lost",
        mechanism: "The app's cache is gone, and what it held is asked of the database.",
        causes: &["workload_spike", "statement_mix_changed"],
        parameters: &[Parameter::new("cached_ratio", 0.5, 0.97)],
        prepare: |setup, values| {
            setup.load.ensure(Operation::Item, 0.7);
            setup.load.at_least(100.0);
            setup.knobs.push(("cached_ratio", values.get("cached_ratio")));
        },
        start: |env, values| env.app()?.set_until("cached_ratio", 0.0, values.get("cached_ratio")),
        ..BASE
    },
];
