//! What several faults do in the same way.

pub mod pauses;
pub mod quota;
