//! Other clients of the same service ask for its most expensive operation.

use super::{Family, Fault, Parameter};
use crate::load::{Load, Operation, Share};

pub const FAULT: Fault = Fault {
    name: "mix_changed",
    family: Family::Database,
    mechanism: "Other clients of the same service ask for its most expensive operation.",
    causes: &["statement_mix_changed"],
    parameters: &[Parameter::new("rate_per_second", 10.0, 200.0)],
    start: |env, values| {
        let mix = vec![Share { operation: Operation::Report, weight: 1 }];
        env.other_clients(&Load { rate: values.get("rate_per_second"), mix, ..env.load.clone() })
    },
    ..Fault::BASE
};
