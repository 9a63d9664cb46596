//! A pool of connections between app and database (PgBouncer, ProxySQL): how many clients wait in
//! its queue, and what the wait costs a statement and a request. To the app it is part of the
//! database's time, and the database does not know of it.

use std::sync::Arc;

use holdup_recording::metrics::{pgbouncer, proxysql};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Gauge, Missing, View};

use crate::case::Case;

/// What to record for it.
pub const ENABLE: &str = "--watch pgbouncer://USER@HOST:6432/pgbouncer, or --watch proxysql://USER@HOST:6032";

/// The counter misses waits that have not ended. Below this share (0-1) of what the queue's length
/// says, the length counts.
const ENDED: f64 = 0.5;

/// A kind of pooler: its name, and what its figures are called.
#[derive(Debug)]
pub struct Kind {
    /// Its name in sentences.
    pub name: &'static str,
    waiting: &'static str,
    /// Seconds of statements, and of them those of waits; none if it counts clients only.
    seconds: Option<(&'static str, &'static str)>,
    statements: &'static str,
    /// Transactions, and their seconds with those of waits; none if not counted.
    transactions: Option<(&'static str, &'static str)>,
    /// Connections that have a client.
    pub active: &'static str,
    limit: &'static str,
    /// The labels of a pool. The limit has the first of them.
    pub pool: &'static [&'static str],
}

/// The kinds of poolers.
static KINDS: [Kind; 2] = [
    Kind {
        name: "PgBouncer",
        waiting: pgbouncer::WAITING_CLIENTS.name,
        seconds: Some((pgbouncer::QUERY_TIME.name, pgbouncer::WAIT_TIME.name)),
        statements: pgbouncer::QUERIES.name,
        transactions: Some((pgbouncer::TRANSACTIONS.name, pgbouncer::TRANSACTION_TIME.name)),
        active: pgbouncer::ACTIVE_SERVERS.name,
        limit: pgbouncer::POOL_SIZE.name,
        pool: &["database", "user"],
    },
    Kind {
        name: "ProxySQL",
        waiting: proxysql::WAITING_CLIENTS.name,
        seconds: None,
        statements: proxysql::SERVER_STATEMENTS.name,
        transactions: None,
        active: proxysql::CONNECTIONS_USED.name,
        limit: proxysql::CONNECTIONS_LIMIT.name,
        pool: &["hostgroup"],
    },
];

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

/// The pool with the longest queue.
#[derive(Debug)]
pub struct BusiestPool {
    /// Its database or hostgroup, as the pooler calls it.
    pub name: String,
    /// Its connections that have a client, mean.
    pub active: Option<f64>,
    /// Its size, all its servers together, mean: it can be changed while clients wait.
    pub size: Option<f64>,
    /// Its size at the end.
    pub size_now: Option<f64>,
    /// Its size in the baseline window, if that was larger.
    pub larger_before: Option<f64>,
    /// Servers among which it is divided.
    pub servers: usize,
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
        let all: Vec<Result<Self, Missing>> = KINDS.iter().map(|kind| kind.measure(case)).collect();
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
}

impl Kind {
    fn measure(&'static self, case: &Case<'_>) -> Result<Pooler, Missing> {
        let view = case.slow();
        let waiting = view.gauge(self.waiting, &[], ENABLE)?;
        let waited = self.seconds.map(|(_, waited)| view.counter(waited, &[], ENABLE)).transpose()?;
        let statements = view.counter(self.statements, &[], ENABLE)?.delta.max(1.0);
        let completed = case.completed_in(view.window)?.max(1.0);
        let by_length_s = waiting.mean * view.window.seconds();
        let counted_s = waited.as_ref().map(|waited| waited.delta);
        let waited_s = counted_s.filter(|counted_s| *counted_s >= ENDED * by_length_s).unwrap_or(by_length_s);
        Ok(Pooler {
            kind: self,
            statement_ms: waited_s / statements * 1e3,
            request_ms: waited_s / completed * 1e3,
            busiest: self.busiest(&view, case.calm().as_ref()),
            waiting,
            waited,
        })
    }

    fn busiest(&self, view: &View<'_>, calm: Option<&View<'_>>) -> BusiestPool {
        let mut pool: Vec<(&str, String)> = Vec::new();
        for label in self.pool {
            let waiting = |value: &str| {
                let labels: Vec<(&str, &str)> =
                    pool.iter().map(|(of, name)| (*of, name.as_str())).chain([(*label, value)]).collect();
                view.gauge(self.waiting, &labels, ENABLE).map_or(-1.0, |gauge| gauge.mean)
            };
            let values = view.label_values(self.waiting, label).into_iter();
            let longest = values.max_by(|a, b| waiting(a).total_cmp(&waiting(b))).unwrap_or_default();
            pool.push((label, longest));
        }
        let pool: Vec<(&str, &str)> = pool.iter().map(|(label, name)| (*label, name.as_str())).collect();
        let active = view.gauge(self.active, &pool, ENABLE).ok().map(|gauge| gauge.mean);
        let size = |view: &View<'_>| {
            let gauge = view.gauge(self.limit, &pool[..1], ENABLE).ok()?;
            Some(gauge.mean).filter(|size| *size > 0.0)
        };
        let last = |source| view.levels(source, self.limit, &pool[..1]).into_values().next_back();
        let size_now = view.sources_of(self.limit).into_iter().filter_map(last).next_back();
        let is_in = |server: &String| view.gauge(self.limit, &[pool[0], ("server", server)], ENABLE).is_ok();
        let servers = view.label_values(self.limit, "server").iter().filter(|server| is_in(server)).count();
        BusiestPool {
            active,
            size: size(view),
            size_now,
            larger_before: calm.and_then(size).filter(|before| size_now.is_some_and(|now| now < *before)),
            servers: servers.max(1),
            name: pool[0].1.to_owned(),
        }
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
    /// transactions are not counted. None if no pooler was recorded.
    pub fn measure(view: &View<'_>) -> Option<Self> {
        let by_transactions = |kind: &Kind| {
            let (count, seconds) = kind.transactions?;
            Self::timed(view, count, seconds, kind.seconds?.1)
        };
        KINDS.iter().find_map(by_transactions).or_else(|| KINDS.iter().find_map(|kind| Self::of_statements(kind, view)))
    }

    /// By statements alone, while one runs; none if the pooler does not time them.
    pub fn running(kind: &Kind, view: &View<'_>) -> Option<Self> {
        let (seconds, waited) = kind.seconds?;
        Self::timed(view, kind.statements, seconds, waited)
    }

    /// The same, or where statements are not timed, by the connections in use.
    fn of_statements(kind: &Kind, view: &View<'_>) -> Option<Self> {
        let in_use = || {
            let times = view.counter(kind.statements, &[], ENABLE).ok()?.delta;
            let seconds = view.gauge(kind.active, &[], ENABLE).ok()?.mean * view.window.seconds();
            (times > 0.0).then(|| Self { ms: seconds / times * 1e3, times })
        };
        Self::running(kind, view).or_else(in_use)
    }

    /// Of so many, with so many seconds that begin when the client asks: its waits are taken off.
    fn timed(view: &View<'_>, count: &str, seconds: &str, waited: &str) -> Option<Self> {
        let delta = |metric: &str| view.counter(metric, &[], ENABLE).ok().map(|counter| counter.delta);
        let times = delta(count).filter(|count| *count > 0.0)?;
        let seconds = (delta(seconds)? - delta(waited)?).max(0.0);
        Some(Self { ms: seconds / times * 1e3, times })
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
            .with(|case| {
                let pooler = Pooler::for_case(case).unwrap();
                assert!(
                    (pooler.statement_ms - 60.0).abs() < 4.0 && (pooler.request_ms - 120.0).abs() < 15.0,
                    "{pooler:?}"
                );
                let busiest = &pooler.busiest;
                assert_eq!(
                    (busiest.name.as_str(), busiest.active, busiest.size, busiest.servers),
                    ("10", Some(2.0), Some(2.0), 2)
                );
                // Two connections are always in use, by 100 statements a second.
                assert!((Loan::measure(&case.slow()).unwrap().ms - 20.0).abs() < 2.0);
            });
    }
}
