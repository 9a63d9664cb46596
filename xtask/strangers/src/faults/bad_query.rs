//! Other clients run a statement that no index helps, and its scans take the CPU.

use super::{Family, Fault, Parameter};
use crate::env::sessions;

pub const FAULT: Fault = Fault {
    name: "bad_query",
    family: Family::Database,
    mechanism: "Other clients run a statement that no index helps, and its scans take the CPU.",
    causes: &["missing_index", "statement_mix_changed"],
    parameters: &[Parameter::new("sessions", 1.0, 8.0)],
    start: |env, values| {
        let scan = "SELECT COUNT(*) FROM orders a JOIN item b ON b.id = a.item WHERE a.note LIKE '%0f0f%' AND b.name LIKE '%a%'";
        sessions::repeat(env.database, values.get("sessions"), 20.0, scan)
    },
    ..Fault::BASE
};
