//! Packets to and from the database get lost and are sent again after a timeout.

use super::{Family, Fault, Parameter};
use crate::env::link::Quality;
use crate::topology::Between;

pub const FAULT: Fault = Fault {
    name: "network_loss",
    family: Family::Network,
    mechanism: "Packets to and from the database get lost and are sent again after a timeout.",
    causes: &["network_loss"],
    parameters: &[Parameter::new("loss_ratio", 0.003, 0.12)],
    fits: |topology| topology.between == Between::Link,
    start: |env, values| Ok(env.link()?.set_until(Quality { loss_ratio: values.get("loss_ratio"), ..Quality::default() })),
    ..Fault::BASE
};
