//! Nothing happens.

use super::{Family, Fault};

pub const FAULT: Fault = Fault {
    name: "healthy",
    family: Family::Control,
    mechanism: "Nothing happens.",
    ..Fault::BASE
};
