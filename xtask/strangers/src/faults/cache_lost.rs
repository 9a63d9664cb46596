//! The app's cache is gone, and what it held is asked of the database.

use super::{Family, Fault, Parameter};
use crate::load::Operation;
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "cache_lost",
    family: Family::App,
    mechanism: "The app's cache is gone, and what it held is asked of the database.",
    causes: &["workload_spike", "statement_mix_changed"],
    parameters: &[Parameter::new("cached_ratio", 0.5, 0.97)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, values| {
        setup.load.ensure(Operation::Item, 0.7);
        setup.load.at_least(100.0);
        setup.knobs.push(("cached_ratio", values.get("cached_ratio")));
    },
    stage: |_, _| Ok(()),
    start: |env, values| env.app()?.set_until("cached_ratio", 0.0, values.get("cached_ratio")),
};
