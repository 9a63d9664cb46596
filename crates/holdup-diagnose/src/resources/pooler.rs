//! A pool of connections between app and database (PgBouncer, ProxySQL): how many clients wait in
//! its queue, and what the wait costs a statement and a request. To the app it is part of the
//! database's time, and the database does not know of it.

use std::sync::Arc;

use holdup_signals::database::pooler::{BusiestPool, ENABLE, KINDS, Kind, Loan};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Gauge, Missing, View};

use crate::case::Case;

/// The counter misses waits that have not ended. Below this share (0-1) of what the queue's length
/// says, the length counts.
const ENDED: f64 = 0.5;

/// The queue of an episode.
#[derive(Debug)]
pub struct Pooler {
    /// Whose it is.
    pub kind: &'static Kind,
    /// Clients that wait, over all pools.
    pub waiting: Gauge,
    /// Seconds that clients waited, counted when they get a connection; none if not counted.
    waited: Option<Counter>,
    /// Milliseconds that a statement waits.
    pub statement_ms: f64,
    /// Milliseconds that a request of the service waits, all its statements together.
    pub request_ms: f64,
    /// The pool with the longest queue.
    pub busiest: BusiestPool,
}

impl Pooler {
    /// Measured once for a case.
    ///
    /// # Errors
    /// If no pooler was recorded.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    /// The one with the longest queue.
    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let all: Vec<Result<Self, Missing>> = KINDS.iter().map(|kind| Self::of_kind(kind, case)).collect();
        let longer = |a: &Self, b: &Self| a.waiting.mean.total_cmp(&b.waiting.mean);
        all.into_iter()
            .reduce(|one, other| match (one, other) {
                (Ok(one), Ok(other)) => Ok(if longer(&one, &other).is_lt() { other } else { one }),
                (one, other) => one.or(other),
            })
            .unwrap_or_else(|| Err(Missing::new("a pooler", ENABLE)))
    }

    /// Evidence that points at the time that clients waited, or at the clients that wait.
    pub fn evidence(
        &self,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        match &self.waited {
            Some(waited) => waited.evidence(observed, expected, text),
            None => self.waiting.evidence(observed, expected, text),
        }
    }

    /// How long the pool with the longest queue lends a connection.
    pub fn loan(&self, view: &View<'_>) -> Option<Loan> {
        Loan::measure(self.kind, &self.busiest.name, view)
    }

    fn of_kind(kind: &'static Kind, case: &Case<'_>) -> Result<Self, Missing> {
        let view = case.slow();
        let waiting = view.gauge(kind.waiting, &[], ENABLE)?;
        let waited = kind.seconds.map(|(_, waited)| view.counter(waited, &[], ENABLE)).transpose()?;
        let statements = view.counter(kind.statements, &[], ENABLE)?.delta.max(1.0);
        let completed = case.completed_in(view.window)?.max(1.0);
        let by_length_s = waiting.mean * view.window.seconds();
        let counted_s = waited.as_ref().map(|waited| waited.delta);
        let waited_s = counted_s.filter(|counted_s| *counted_s >= ENDED * by_length_s).unwrap_or(by_length_s);
        Ok(Self {
            kind,
            statement_ms: waited_s / statements * 1e3,
            request_ms: waited_s / completed * 1e3,
            busiest: kind.busiest(&view, case.baseline().as_ref()),
            waiting,
            waited,
        })
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
            assert_eq!((busiest.name.as_str(), busiest.active, busiest.size), ("shop", Some(2.0), Some(2.0)));
            assert!((pooler.loan(&case.slow()).unwrap().ms - 20.0).abs() < 0.1);
        });
        // Half as many transactions of two statements, with 30 ms of the app's own in between.
        let loan = made(7.0)
            .counter(source, "pgbouncer_transactions_total", &pool[..1], 50.0)
            .counter(source, "pgbouncer_transaction_time_seconds_total", &pool[..1], 10.5)
            .with(|case| Pooler::for_case(case).unwrap().loan(&case.slow()).unwrap());
        assert!((loan.ms - 70.0).abs() < 0.1 && (loan.times - 600.0).abs() < 60.0, "{loan:?}");
        // Clients that never get a connection are in no total.
        let ms = made(0.0).with(|case| Pooler::for_case(case).unwrap().request_ms);
        assert!((ms - 140.0).abs() < 15.0, "{ms}");
        let missing = SyntheticRecording::new(12).requests(50, 400).with(|case| Pooler::for_case(case).map(drop));
        assert!(missing.is_err_and(|missing| missing.enable.contains("pgbouncer://")));
    }

    #[test]
    fn a_queue_by_its_length_alone() {
        let source = "proxysql://h:6032";
        let server = |name| [("hostgroup", "10"), ("server", name)];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .gauge(source, "proxysql_waiting_clients", &[("hostgroup", "10")], 6.0)
            .gauge(source, "proxysql_waiting_clients", &[("hostgroup", "20")], 0.0)
            .gauge(source, "proxysql_connections_used", &server("a:3306"), 1.0)
            .gauge(source, "proxysql_connections_used", &server("b:3306"), 1.0)
            .gauge(source, "proxysql_connections_limit", &server("a:3306"), 1.0)
            .gauge(source, "proxysql_connections_limit", &server("b:3306"), 1.0)
            .gauge(source, "proxysql_connections_limit", &[("hostgroup", "20"), ("server", "c:3306")], 90.0)
            .counter(source, "proxysql_server_statements_total", &server("a:3306"), 100.0)
            .gauge(source, "proxysql_connections_used", &[("hostgroup", "20"), ("server", "c:3306")], 30.0)
            .counter(source, "proxysql_server_statements_total", &[("hostgroup", "20"), ("server", "c:3306")], 500.0)
            .with(|case| {
                let pooler = Pooler::for_case(case).unwrap();
                assert!(
                    (pooler.statement_ms - 10.0).abs() < 1.0 && (pooler.request_ms - 120.0).abs() < 15.0,
                    "{pooler:?}"
                );
                let busiest = &pooler.busiest;
                assert_eq!(
                    (busiest.name.as_str(), busiest.active, busiest.size, busiest.servers),
                    ("10", Some(2.0), Some(2.0), 2)
                );
                // Two connections are always in use, by 100 statements a second.
                let loan = pooler.loan(&case.slow()).unwrap();
                assert!((loan.ms - 20.0).abs() < 2.0, "the other hostgroup's do not count: {loan:?}");
            });
    }
}
