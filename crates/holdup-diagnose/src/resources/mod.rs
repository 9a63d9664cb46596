//! What requests wait for, one file for each resource, and what the wait costs a request. What was not recorded is `Missing`, with
//! the option that records it. Whatever is costly to find out is found out once for a case ([`Case::measured`]).
//!
//! Arrows point up: a resource looks at the case and at other resources, rules look at resources, and no file here knows a rule.

pub mod copies;
pub mod cpu;
pub mod disk;
pub mod locks;
pub mod probe;
pub mod statements;
pub mod volume;
mod whose;
pub mod workers;

use holdup_signals::yardstick::MATTERS;

use crate::case::Case;

/// A component that takes this share (0-1) of the time for which workers are held counts as the reason why they are busy.
const HOLDS_WORKERS: f64 = 0.5;

/// `ms` of a mean slow request as a share (0-1) of what there is to explain. Where requests wait for a worker of the app server, what
/// makes up half of that for which one is held is [`MATTERS`] at least, however long they wait for one: that wait is its consequence.
pub fn share(case: &Case<'_>, ms: f64) -> f64 {
    let share = case.share(ms);
    let holds_workers =
        || workers::waits_for_workers(case).is_some_and(|held| ms >= HOLDS_WORKERS * held.to_explain_ms(case));
    if share < MATTERS && case.is_felt() && holds_workers() { MATTERS } else { share }
}

/// What `cargo xtask new resource` writes.
#[cfg(test)]
#[path = "../../../../xtask/stubs/resource.rs"]
mod stub;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, Made};

    #[test]
    fn a_resource_that_is_new_is_not_measured_yet() {
        assert!(Made::new(3).with(|case| stub::Measured::of(case).map(|measured| measured.waited_ms).is_err()));
    }
}
