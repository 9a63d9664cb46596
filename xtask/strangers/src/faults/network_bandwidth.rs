//! The way to the database carries fewer bits a second than the answers need.

use super::{Family, Fault, Parameter};
use crate::env::link::Quality;
use crate::topology::Between;

pub const FAULT: Fault = Fault {
    name: "network_bandwidth",
    family: Family::Network,
    mechanism: "The way to the database carries fewer bits a second than the answers need.",
    causes: &["network_bandwidth"],
    parameters: &[Parameter::new("megabits", 1.2, 0.15)],
    fits: |topology| topology.between == Between::Link,
    prepare: |setup, _| setup.load.at_least(60.0),
    stage: |_, _| Ok(()),
    start: |env, values| Ok(env.link()?.set_until(Quality { megabits: values.get("megabits"), ..Quality::default() })),
};
