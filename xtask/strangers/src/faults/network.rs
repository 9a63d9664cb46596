//! The network between app and database.

use super::{Family, Fault, Parameter};
use crate::env::link::Quality;
use crate::topology::Between;

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Network, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "network_delay",
        mechanism: "The way to the database takes longer, and each statement waits for it.",
        causes: &["network_delay"],
        parameters: &[Parameter::new("delay_ms", 2.0, 60.0)],
        fits: |topology| topology.between == Between::Link,
        start: |env, values| {
            Ok(env.link()?.set_until(Quality { delay_ms: values.get("delay_ms"), ..Quality::default() }))
        },
        ..BASE
    },
    Fault {
        name: "network_jitter",
        mechanism: "The way to the database takes a different time for each packet.",
        causes: &["network_delay"],
        parameters: &[Parameter::new("jitter_ms", 5.0, 120.0)],
        fits: |topology| topology.between == Between::Link,
        start: |env, values| {
            Ok(env.link()?.set_until(Quality { jitter_ms: values.get("jitter_ms"), ..Quality::default() }))
        },
        ..BASE
    },
    Fault {
        name: "network_loss",
        mechanism: "Packets to and from the database get lost and are sent again after a timeout.",
        causes: &["network_loss"],
        parameters: &[Parameter::new("loss_ratio", 0.003, 0.12)],
        fits: |topology| topology.between == Between::Link,
        start: |env, values| {
            Ok(env.link()?.set_until(Quality { loss_ratio: values.get("loss_ratio"), ..Quality::default() }))
        },
        ..BASE
    },
    Fault {
        name: "network_bandwidth",
        mechanism: "The way to the database carries fewer bits a second than the answers need.",
        causes: &["network_bandwidth"],
        parameters: &[Parameter::new("megabits", 1.2, 0.15)],
        fits: |topology| topology.between == Between::Link,
        prepare: |setup, _| setup.load.at_least(60.0),
        start: |env, values| {
            Ok(env.link()?.set_until(Quality { megabits: values.get("megabits"), ..Quality::default() }))
        },
        ..BASE
    },
];
