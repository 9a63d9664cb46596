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
    /// Its size, mean: it can be changed while clients wait.
    pub size: Option<f64>,
    /// Its size at the end.
    pub size_now: Option<f64>,
    /// Its size in the baseline window, if that was larger.
    pub larger_before: Option<f64>,
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
            busiest: BusiestPool::find(&view, case.calm().as_ref()),
            waiting,
            waited,
        })
    }
}

impl BusiestPool {
    fn find(view: &View<'_>, calm: Option<&View<'_>>) -> Self {
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
        let size = |view: &View<'_>| {
            let gauge = view.gauge(pgbouncer::POOL_SIZE.name, &pool[..1], ENABLE).ok()?;
            Some(gauge.mean).filter(|size| *size > 0.0)
        };
        let sizes = view.sources_of(pgbouncer::POOL_SIZE.name).into_iter();
        let last = |source| view.levels(source, pgbouncer::POOL_SIZE.name, &pool[..1]).into_values().next_back();
        let size_now = sizes.filter_map(last).next_back();
        let larger_before = calm.and_then(size).filter(|before| size_now.is_some_and(|now| now < *before));
        Self { active, size: size(view), size_now, larger_before, database }
    }
}

/// How long server connections are lent.
#[derive(Clone, Copy, Debug)]
pub struct Loan {
    /// Milliseconds for which a client has one each time.
    pub ms: f64,
    /// How many times one was lent.
    pub times: f64,
}

impl Loan {
    /// By transactions, for which a client keeps its connection also between their statements: in
    /// session mode it keeps one for longer, which no counter shows. By statements where
    /// transactions are not counted. None if PgBouncer was not recorded. Its times begin when the
    /// client asks, so its waits are taken off.
    pub fn measure(view: &View<'_>) -> Option<Self> {
        Self::of(view, pgbouncer::TRANSACTIONS.name, pgbouncer::TRANSACTION_TIME.name)
            .or_else(|| Self::of_statements(view))
    }

    /// By statements alone: while one runs.
    pub fn of_statements(view: &View<'_>) -> Option<Self> {
        Self::of(view, pgbouncer::QUERIES.name, pgbouncer::QUERY_TIME.name)
    }

    fn of(view: &View<'_>, count: &str, time: &str) -> Option<Self> {
        let delta = |metric: &str| view.counter(metric, &[], ENABLE).ok().map(|counter| counter.delta);
        let times = delta(count).filter(|count| *count > 0.0)?;
        let seconds = delta(time)? - delta(pgbouncer::WAIT_TIME.name)?;
        Some(Self { ms: seconds.max(0.0) / times * 1e3, times })
    }
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
            assert!((Loan::measure(&case.slow()).unwrap().ms - 20.0).abs() < 0.1);
        });
        // Half as many transactions of two statements, with 30 ms of the app's own in between.
        let loan = made(7.0)
            .counter(source, "pgbouncer_transactions_total", &pool[..1], 50.0)
            .counter(source, "pgbouncer_transaction_time_seconds_total", &pool[..1], 10.5)
            .with(|case| Loan::measure(&case.slow()).unwrap());
        assert!((loan.ms - 70.0).abs() < 0.1 && (loan.times - 600.0).abs() < 60.0, "{loan:?}");
        // Clients that never get a connection are in no total.
        let ms = made(0.0).with(|case| Pooler::for_case(case).unwrap().request_ms);
        assert!((ms - 140.0).abs() < 15.0, "{ms}");
        let missing = SyntheticRecording::new(12).requests(50, 400).with(|case| Pooler::for_case(case).map(drop));
        assert!(missing.is_err_and(|missing| missing.enable.contains("pgbouncer://")));
    }
}
