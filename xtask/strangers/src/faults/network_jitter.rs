//! The way to the database takes a different time for each packet.

use super::{Family, Fault, Parameter};
use crate::env::link::Quality;
use crate::topology::Between;

pub const FAULT: Fault = Fault {
    name: "network_jitter",
    family: Family::Network,
    mechanism: "The way to the database takes a different time for each packet.",
    causes: &["network_delay"],
    parameters: &[Parameter::new("jitter_ms", 5.0, 120.0)],
    fits: |topology| topology.between == Between::Link,
    start: |env, values| Ok(env.link()?.set_until(Quality { jitter_ms: values.get("jitter_ms"), ..Quality::default() })),
    ..Fault::BASE
};
