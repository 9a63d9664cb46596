//! A new configuration lets HAProxy send the app a few requests at once, and the others wait in its
//! queue.

use super::{Family, Fault, Parameter};
use crate::topology::{App, Front};

pub const FAULT: Fault = Fault {
    name: "few_slots",
    family: Family::Proxy,
    mechanism: "A new configuration lets HAProxy send the app a few requests at once, and the others wait in its queue.",
    causes: &["worker_pool_exhausted"],
    parameters: &[Parameter::new("slots", 3.0, 1.0)],
    fits: |topology| topology.app == App::Python && topology.front == Front::Haproxy,
    prepare: |setup, _| {
        setup.load.at_least(60.0);
        setup.knobs.push(("sleep_ms", 12.0));
    },
    start: |env, values| env.proxy()?.set_slots_until(values.get("slots").round() as u32),
    ..Fault::BASE
};
