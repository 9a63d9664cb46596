//! A pool of connections between app and database (PgBouncer): how many clients wait in its queue,
//! and what the wait costs a statement and a request. To the app it is part of the database's time,
//! and the database does not know of it.

use std::sync::Arc;

use holdup_recording::metrics::pgbouncer;
use holdup_signals::{Counter, Gauge, Missing, View};

use crate::case::Case;

/// What to record for it.
pub const ENABLE: &str = "--watch pgbouncer://USER@HOST:6432/pgbouncer";

/// The counter misses waits that have not ended. Below this share (0-1) of what the queue's length
/// says, the length counts.
const ENDED: f64 = 0.5;

/// The queue of an episode.
#[derive(Debug)]
pub struct Pooler {
    /// Clients that wait, over all pools.
    pub waiting: Gauge,
    /// Seconds that clients waited, counted when they get a connection.
    pub waited: Counter,
    /// Milliseconds that a statement waits.
    pub statement_ms: f64,
    /// Milliseconds that a request of the service waits, all its statements together.
    pub request_ms: f64,
    /// Statements of a request.
    pub statements: f64,
    /// The pool with the longest queue.
    pub busiest: BusiestPool,
}

/// The pool with the longest queue.
#[derive(Debug)]
pub struct BusiestPool {
    /// Its database, as PgBouncer calls it.
    pub database: String,
    /// Its connections that have a client, mean.
    pub active: Option<f64>,
    /// Its size.
    pub size: Option<f64>,
}

impl Pooler {
    /// Measured once for a case.
    ///
    /// # Errors
    /// If PgBouncer was not recorded.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let view = case.slow();
        let waiting = view.gauge(pgbouncer::WAITING_CLIENTS.name, &[], ENABLE)?;
        let waited = view.counter(pgbouncer::WAIT_TIME.name, &[], ENABLE)?;
        let statements = view.counter(pgbouncer::QUERIES.name, &[], ENABLE)?.delta.max(1.0);
        let completed = case.completed_in(view.window)?.max(1.0);
        let by_length_s = waiting.mean * view.window.seconds();
        let waited_s = if waited.delta < ENDED * by_length_s { by_length_s } else { waited.delta };
        Ok(Self {
            statement_ms: waited_s / statements * 1e3,
            request_ms: waited_s / completed * 1e3,
            statements: statements / completed,
            busiest: BusiestPool::find(&view),
            waiting,
            waited,
        })
    }
}

impl BusiestPool {
    fn find(view: &View<'_>) -> Self {
        let waiting = |labels: &[(&str, &str)]| {
            view.gauge(pgbouncer::WAITING_CLIENTS.name, labels, ENABLE).map_or(-1.0, |gauge| gauge.mean)
        };
        let longest = |label: &str, waiting: &dyn Fn(&str) -> f64| {
            let values = view.label_values(pgbouncer::WAITING_CLIENTS.name, label);
            values.into_iter().max_by(|a, b| waiting(a).total_cmp(&waiting(b))).unwrap_or_default()
        };
        let database = longest("database", &|name| waiting(&[("database", name)]));
        let user = longest("user", &|name| waiting(&[("database", &database), ("user", name)]));
        let pool = [("database", database.as_str()), ("user", user.as_str())];
        let active = view.gauge(pgbouncer::ACTIVE_SERVERS.name, &pool, ENABLE).ok().map(|gauge| gauge.mean);
        let size = view.gauge(pgbouncer::POOL_SIZE.name, &pool[..1], ENABLE).ok().map(|gauge| gauge.max);
        Self { active, size: size.filter(|size| *size > 0.0), database }
    }
}

/// Milliseconds for which a statement holds a server connection while it runs there; none if
/// PgBouncer was not recorded. Its time of statements begins at their arrival.
pub fn held_ms(view: &View<'_>) -> Option<f64> {
    let delta = |metric: &str| view.counter(metric, &[], ENABLE).ok().map(|counter| counter.delta);
    let queries = delta(pgbouncer::QUERIES.name).filter(|count| *count > 0.0)?;
    let seconds = delta(pgbouncer::QUERY_TIME.name)? - delta(pgbouncer::WAIT_TIME.name)?;
    Some(seconds.max(0.0) / queries * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_queue_by_its_length_and_by_its_time() {
        let (source, pool) = ("pgbouncer://h:6432", [("database", "shop"), ("user", "app")]);
        let made = |waited_s: f64| {
            SyntheticRecording::new(12)
                .requests(50, 400)
                .gauge(source, "pgbouncer_waiting_clients", &pool, 6.0)
                .gauge(source, "pgbouncer_waiting_clients", &[("database", "mart"), ("user", "etl")], 1.0)
                .gauge(source, "pgbouncer_active_servers", &pool, 2.0)
                .gauge(source, "pgbouncer_pool_size", &pool[..1], 2.0)
                .counter(source, "pgbouncer_wait_time_seconds_total", &pool[..1], waited_s)
                .counter(source, "pgbouncer_query_time_seconds_total", &pool[..1], 9.0)
                .counter(source, "pgbouncer_queries_total", &pool[..1], 100.0)
        };
        made(7.0).with(|case| {
            let pooler = Pooler::for_case(case).unwrap();
            assert!((pooler.waiting.mean - 7.0).abs() < 0.01, "{pooler:?}");
            assert!((pooler.statement_ms - 70.0).abs() < 4.0 && (pooler.request_ms - 140.0).abs() < 15.0, "{pooler:?}");
            let busiest = &pooler.busiest;
            assert_eq!((busiest.database.as_str(), busiest.active, busiest.size), ("shop", Some(2.0), Some(2.0)));
            assert!((held_ms(&case.slow()).unwrap() - 20.0).abs() < 0.1);
        });
        // Clients that never get a connection are in no total.
        let ms = made(0.0).with(|case| Pooler::for_case(case).unwrap().request_ms);
        assert!((ms - 140.0).abs() < 15.0, "{ms}");
        let missing = SyntheticRecording::new(12).requests(50, 400).with(|case| Pooler::for_case(case).map(drop));
        assert!(missing.is_err_and(|missing| missing.enable.contains("pgbouncer://")));
    }
}
