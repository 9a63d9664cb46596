//! A new release reads each item of a category by a statement of its own.

use super::{Family, Fault, Parameter};
use crate::load::Operation;
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "statement_per_row",
    family: Family::App,
    mechanism: "A new release reads each item of a category by a statement of its own.",
    causes: &["n_plus_one_queries"],
    parameters: &[Parameter::new("statements", 10.0, 100.0)],
    fits: |topology| topology.app == App::Python,
    prepare: |setup, _| {
        setup.load.at_most(60.0);
        setup.load.ensure(Operation::Category, 0.3);
    },
    stage: |_, _| Ok(()),
    start: |env, values| env.app()?.set_until("n_plus_one", values.get("statements").round(), 0.0),
};
