//! What requests wait for, one file per resource, and what the wait costs a request. Facts that
//! were not recorded are `Missing`, with the option that records them. Costly facts are measured
//! once per case ([`Case::measured`]).
//!
//! Arrows point up: a resource uses the case and other resources, rules use resources, and no file
//! here knows a rule.

pub mod checkpoints;
pub mod connections;
pub mod copies;
pub mod cpu;
pub mod database_path;
pub mod disk;
pub mod indexes;
pub mod locks;
pub mod newcomers;
pub mod pooler;
pub mod probe;
pub mod runtime;
mod statement_owner;
pub mod statements;
pub mod volume;
pub mod workers;

use holdup_signals::yardstick::MATTERS;

use crate::case::Case;

/// A component that takes this share (0-1) of the time for which a worker is held counts as the
/// reason it is, if no baseline window shows how much of that is usual.
const HOLDS: f64 = 0.5;

/// `ms` of a mean slow request as a share (0-1) of the excess. If requests wait for a worker of the
/// app server or for a connection of its pool because these are held longer, a component that
/// matters for the growth of hold time counts as [`MATTERS`] at least, however long they wait: that
/// wait is its consequence.
pub fn share(case: &Case<'_>, ms: f64) -> f64 {
    let share = case.share(ms);
    let holds_workers = || {
        workers::waits_for_workers(case).is_some_and(|held| {
            let least = if held.calm_ms.is_some() { MATTERS } else { HOLDS };
            ms >= least * held.to_explain_ms()
        })
    };
    let holds_connections = || connections::waited_for(case).is_some_and(|held_ms| ms >= HOLDS * held_ms);
    if share < MATTERS && case.is_felt() && (holds_workers() || holds_connections()) { MATTERS } else { share }
}

/// Whether `ms` of a mean slow request matter: as a share of what requests wait for inside the
/// service, or of what holds the app's workers.
pub fn is_felt(case: &Case<'_>, ms: f64) -> bool {
    case.share_inside(ms) >= MATTERS || share(case, ms) >= MATTERS
}

/// Output of `cargo xtask new resource`.
#[cfg(test)]
#[path = "../../../../xtask/stubs/resource.rs"]
mod stub;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_resource_that_is_new_is_not_measured_yet() {
        assert!(
            SyntheticRecording::new(3)
                .with(|case| stub::Measured::of(case).map(|measured| measured.waited_ms).is_err())
        );
    }
}
