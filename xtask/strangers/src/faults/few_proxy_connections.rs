//! A new configuration leaves the worker of nginx a few connections, and it drops clients when they
//! are taken.

use super::{Family, Fault, Parameter};
use crate::topology::{App, Front};

pub const FAULT: Fault = Fault {
    name: "few_proxy_connections",
    family: Family::Proxy,
    mechanism: "A new configuration leaves the worker of nginx a few connections, and it drops clients when they are taken.",
    causes: &["connection_limit"],
    parameters: &[Parameter::new("connections", 14.0, 8.0)],
    fits: |topology| topology.app == App::Python && topology.front == Front::Nginx,
    prepare: |setup, _| {
        setup.load.at_least(80.0);
        setup.knobs.push(("sleep_ms", 60.0));
    },
    start: |env, values| env.proxy()?.set_connections_until(values.get("connections").round() as u32),
    ..Fault::BASE
};
