//! Poolers between app and database (PgBouncer, ProxySQL): their pools, and how long they lend a
//! connection.

use holdup_recording::metrics::{pgbouncer, proxysql};

use crate::View;

/// What to record for them.
pub const ENABLE: &str = "--watch pgbouncer://USER@HOST:6432/pgbouncer, or --watch proxysql://USER@HOST:6032";

/// Poolers that holdup knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// PgBouncer.
    PgBouncer,
    /// ProxySQL.
    ProxySql,
}

/// A kind of pooler: its name, and what its figures are called.
#[derive(Debug)]
pub struct Kind {
    /// Which it is.
    pub product: Product,
    /// Its name in sentences.
    pub name: &'static str,
    /// Clients that wait, by the labels of a pool.
    pub waiting: &'static str,
    /// Seconds of statements, and of them those of waits; none if it counts clients only.
    pub seconds: Option<(&'static str, &'static str)>,
    /// Statements.
    pub statements: &'static str,
    /// Transactions, and their seconds with those of waits; none if not counted.
    transactions: Option<(&'static str, &'static str)>,
    /// Connections that have a client.
    pub active: &'static str,
    limit: &'static str,
    /// The labels of a pool. The limit has the first of them.
    pub pool: &'static [&'static str],
}

/// The kinds of poolers.
pub static KINDS: [Kind; 2] = [
    Kind {
        product: Product::PgBouncer,
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
        product: Product::ProxySql,
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

impl Kind {
    /// The pool of this kind with the longest queue in `view`, beside the baseline window.
    pub fn busiest(&self, view: &View<'_>, baseline: Option<&View<'_>>) -> BusiestPool {
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
            larger_before: baseline.and_then(size).filter(|before| size_now.is_some_and(|now| now < *before)),
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
    /// Of the connections of pool `name` alone, by transactions, for which a client keeps its
    /// connection also between their statements: in session mode it keeps one for longer, which no
    /// counter shows. By statements where transactions are not counted; where those are not timed,
    /// by the connections in use. None if nothing was counted.
    pub fn measure(kind: &Kind, name: &str, view: &View<'_>) -> Option<Self> {
        let pool = [(kind.pool[0], name)];
        let by_transactions = || {
            let (count, seconds) = kind.transactions?;
            Self::timed(view, &pool, [count, seconds, kind.seconds?.1])
        };
        let in_use = || {
            let times = view.counter(kind.statements, &pool, ENABLE).ok()?.delta;
            let seconds = view.gauge(kind.active, &pool, ENABLE).ok()?.mean * view.window.seconds();
            (times > 0.0).then(|| Self { ms: seconds / times * 1e3, times })
        };
        by_transactions().or_else(|| Self::running(kind, name, view)).or_else(in_use)
    }

    /// By statements alone, while one runs; none if the pooler does not time them.
    pub fn running(kind: &Kind, name: &str, view: &View<'_>) -> Option<Self> {
        let (seconds, waited) = kind.seconds?;
        Self::timed(view, &[(kind.pool[0], name)], [kind.statements, seconds, waited])
    }

    /// By how many there were and their seconds, which begin when the client asks: its waits are taken off.
    fn timed(view: &View<'_>, pool: &[(&str, &str)], [count, seconds, waited]: [&str; 3]) -> Option<Self> {
        let delta = |metric: &str| view.counter(metric, pool, ENABLE).ok().map(|counter| counter.delta);
        let times = delta(count).filter(|count| *count > 0.0)?;
        let seconds = (delta(seconds)? - delta(waited)?).max(0.0);
        Some(Self { ms: seconds / times * 1e3, times })
    }
}
