//! The way to the database takes longer, and each statement waits for it.

use super::{Family, Fault, Parameter};
use crate::env::link::Quality;
use crate::topology::Between;

pub const FAULT: Fault = Fault {
    name: "network_delay",
    family: Family::Network,
    mechanism: "The way to the database takes longer, and each statement waits for it.",
    causes: &["network_delay"],
    parameters: &[Parameter::new("delay_ms", 2.0, 60.0)],
    fits: |topology| topology.between == Between::Link,
    start: |env, values| Ok(env.link()?.set_until(Quality { delay_ms: values.get("delay_ms"), ..Quality::default() })),
    ..Fault::BASE
};
