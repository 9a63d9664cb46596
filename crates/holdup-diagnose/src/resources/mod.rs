//! What requests wait for, one file per resource, and what the wait costs a request. Facts that
//! were not recorded are `Missing`, with the option that records them. Costly facts are measured
//! once per case ([`Case::measured`]).
//!
//! Arrows point up: a resource uses the case and other resources, rules use resources, and no file
//! here knows a rule.

pub mod app_waits;
pub mod changes;
pub mod checkpoints;
pub mod commits;
pub mod connection_limits;
pub mod connections;
pub mod cpu;
pub mod cpu_quotas;
pub mod database_path;
pub mod disk;
pub mod full_disk;
pub mod index_builds;
pub mod indexes;
pub mod interfaces;
pub mod late_connects;
pub mod locks;
pub mod mounts;
pub mod neighbours;
pub mod network_limits;
pub mod new_connections;
pub mod newcomers;
pub mod other_users;
pub mod own_waits;
pub mod pooler;
pub mod probe;
pub mod reclaim;
pub mod rows_read;
pub mod runtime;
pub mod services;
pub mod sessions;
pub(crate) mod slow_service;
pub mod slowed_operations;
pub mod slower;
mod statement_owner;
pub mod statements;
pub mod stops;
pub mod tickets;
pub mod unowned;
pub mod volume;
pub mod workers;

use holdup_signals::Missing;
use holdup_signals::yardstick::MATTERS;

use crate::case::Case;

/// A component that takes this share (0-1) of the time for which a worker is held counts as the
/// reason it is, if no baseline window shows how much of that is usual.
const HOLDS: f64 = 0.5;

/// `ms` of a mean slow request as a share (0-1) of the excess within the service: while the service is
/// slow, the wait for a connection of the generator follows from what makes it slow. If requests wait
/// for a worker of the app server or for a connection of its pool because these are held longer, a
/// component that matters for the growth of hold time counts as [`MATTERS`] at least, however long they
/// wait: that wait is its consequence.
pub fn share(case: &Case<'_>, ms: f64) -> f64 {
    let of_all = share_of_all(case, ms);
    let ratio = case.excess_ms() / in_service_ms(case).max(f64::MIN_POSITIVE);
    if case.is_felt() && ratio > 1.0 { of_all.max((case.share(ms) * ratio).min(1.0)) } else { of_all }
}

/// The same share of all of the excess.
pub fn share_of_all(case: &Case<'_>, ms: f64) -> f64 {
    let share = case.share(ms);
    let holds_workers = || {
        workers::waits_for_workers(case).is_some_and(|held| {
            let least = if held.baseline_ms.is_some() { MATTERS } else { HOLDS };
            ms >= least * held.to_explain_ms()
        })
    };
    let holds_connections = || connections::waited_for(case).is_some_and(|held_ms| ms >= HOLDS * held_ms);
    if share < MATTERS && case.is_felt() && (holds_workers() || holds_connections()) { MATTERS } else { share }
}

/// Excess of a mean slow request without its wait for a connection of the generator, milliseconds, if
/// the service is slow; else all of it.
pub fn in_service_ms(case: &Case<'_>) -> f64 {
    struct InService(f64);
    let measured = case.measured(|case| Ok(InService(case.excess_in_service_ms())));
    measured.map_or_else(|_| case.excess_ms(), |measured| measured.0)
}

/// Whether `ms` of a mean slow request are too few to matter.
///
/// # Errors
/// If they may be why requests wait in front of the app's workers or for a connection, and whether
/// requests do was not recorded: then nothing is cleared by its size.
pub fn is_too_small(case: &Case<'_>, ms: f64) -> Result<bool, Missing> {
    if share(case, ms) >= MATTERS {
        return Ok(false);
    }
    let unseen = || workers::unseen(case, ms).or_else(|| connections::partly_reported(case));
    (ms > 0.0 && case.is_felt()).then(unseen).flatten().map_or(Ok(true), Err)
}

/// Whether `ms` of a mean slow request matter: as a share of what requests wait for inside the
/// service, or of what holds the app's workers.
///
/// # Errors
/// Those of [`is_too_small`].
pub fn is_felt(case: &Case<'_>, ms: f64) -> Result<bool, Missing> {
    Ok(case.share_inside(ms) >= MATTERS || !is_too_small(case, ms)?)
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
    fn a_part_is_not_cleared_by_its_size_while_a_queue_is_unseen() {
        // Each of 50 requests a second takes 400 ms and holds a connection for 20 ms; it waits for one for hardly any time.
        let app = "prometheus:http://app";
        let pool = SyntheticRecording::new(12)
            .requests(50, 400)
            .gauge(app, "hikaricp_connections_active", &[], 1.0)
            .gauge(app, "hikaricp_connections_max", &[], 10.0)
            .counter(app, "hikaricp_connections_acquire_seconds_sum", &[], 0.01)
            .counter(app, "hikaricp_connections_acquire_seconds_count", &[], 50.0)
            .counter(app, "hikaricp_connections_usage_seconds_sum", &[], 1.0)
            .counter(app, "hikaricp_connections_usage_seconds_count", &[], 50.0);
        let is_small = |made: &SyntheticRecording, ms: f64| made.clone().with(move |case| is_too_small(case, ms).ok());
        assert_eq!((is_small(&pool, 10.0), is_small(&pool, 300.0)), (Some(true), Some(false)));
        for gone in ["hikaricp_connections_max", "hikaricp_connections_acquire", "hikaricp_connections_usage"] {
            let less = pool.clone().tables(move |t| t.samples.rows.retain(|s| !s.metric.starts_with(gone)));
            assert_eq!((is_small(&less, 10.0), is_small(&less, 300.0)), (None, Some(false)), "{gone}");
        }
        let none = pool.tables(|t| t.samples.rows.clear());
        assert_eq!(is_small(&none, 10.0), Some(true), "no pool is known");
    }

    #[test]
    fn a_part_is_not_cleared_by_its_size_while_it_is_unknown_what_workers_wait_for() {
        // 20 requests are with the app, which has each for 400 ms.
        let app = SyntheticRecording::new(12)
            .requests(50, 400)
            .target("http://127.0.0.1:8080")
            .gauge("server:8080", "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .gauge("server:8080", "server_answering_connections", &[("pid", "7")], 20.0)
            .counter("prometheus:app", "http_server_request_duration_seconds_count", &[], 50.0)
            .counter("prometheus:app", "http_server_request_duration_seconds_sum", &[], 20.0);
        let is_small = |made: &SyntheticRecording, ms: f64| made.clone().with(move |case| is_too_small(case, ms).ok());
        assert_eq!((is_small(&app, 10.0), is_small(&app, 300.0)), (Some(true), Some(false)));
        for gone in ["tcp_accept_queue_length", "http_server_request_duration_seconds_sum"] {
            let less = app.clone().without(gone);
            let small = [10.0, 0.0, 300.0].map(|ms| is_small(&less, ms));
            assert_eq!(small, [None, Some(true), Some(false)], "{gone}");
        }
    }

    #[test]
    fn a_resource_that_is_new_is_not_measured_yet() {
        assert!(
            SyntheticRecording::new(3)
                .with(|case| stub::Measured::of(case).map(|measured| measured.waited_ms).is_err())
        );
    }
}
