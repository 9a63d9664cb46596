//! Whether the machine let a test be judged. Where a hypervisor or a neighbour takes the CPUs away, holdup and the servers of
//! its tests stall as anything does, and what a test measured then says nothing about holdup. So a test that looks at times,
//! rates or verdicts is an attempt beside a [`Witness`]; an attempt that missed while the witness itself stalled is made
//! again. A miss on a quiet machine is a failure; where the machine allowed no judgement the test fails as `undecided`, of which
//! `cargo xtask ci` allows a few. For tests only; it deliberately excuses nothing on a machine that was quiet.

#[cfg(test)]
extern crate self as holdup_witness;

mod account;
mod machine;
mod patience;
mod skip;

pub use account::{Account, Limits, ON_THE_WHOLE, SECOND_BY_SECOND, STALLS, Second, TO_THE_MILLISECOND, VERDICTS};
pub use holdup_witness_attribute::judged;
pub use machine::{Witness, is_hopeless};
pub use patience::{Patience, certain, judge};
pub use skip::skip;
