//! What the account of a request needs but no single request shows: when a queue was seen in front
//! of the database, how long a round trip takes, and how booked lock waits spread over the
//! executions.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::condensed::Execution;
use holdup_recording::metrics;
use holdup_recording::rows::Statement;

use crate::database::ports::database_ports;
use crate::{Distribution, View, Window};

/// Queues are sampled about once a second: one seen this long before or after a call may have
/// delayed it.
const SAMPLING_SLACK_NS: i64 = 1_000_000_000;

/// An execution that is as fast as the fastest tenth of its kind waited for no lock.
const UNLOCKED: f64 = 0.1;

/// Gauges that are above zero while statements queue in front of the database.
const QUEUES: [&str; 2] =
    [metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS.name];

/// Gauges of connections with an unread request, by the server's port.
const UNREAD: [(&str, &[(&str, &str)]); 2] = [
    (metrics::tcp::CONNECTIONS_UNREAD.name, &[("side", "server")]),
    (metrics::tcp::SERVER_UNREAD_CONNECTIONS.name, &[]),
];

/// What a stretch of the recording shows as a whole.
pub struct Context {
    /// Instants at which a queue was seen, in order.
    queued_at: Vec<i64>,
    /// Round trip between app and database, milliseconds; none if nothing measured it.
    pub round_trip_ms: Option<f64>,
    locks: Locks,
    /// Whether the target is the database itself: its client then takes the app's place.
    pub client_is_app: bool,
    /// Whether the app times its calls of databases at all.
    pub app_times_database: bool,
}

impl Context {
    /// Collects these facts from `view`.
    pub fn collect(view: &View<'_>) -> Self {
        let manifest = &view.recording.manifest;
        let ports = database_ports(view);
        let mut queued_at: Vec<i64> = QUEUES.iter().flat_map(|metric| positive(view, metric, &[], None)).collect();
        for (metric, labels) in UNREAD {
            // At a port that is not known to be the database's, the app may be the one that does
            // not read.
            queued_at.extend(positive(view, metric, labels, Some(&ports)));
        }
        let sessions = view.sessions(&["observed_at", "true_state"]).unwrap_or_default();
        queued_at.extend(sessions.iter().filter(|s| s.true_state == "queued").map(|s| s.observed_at));
        queued_at.sort_unstable();
        queued_at.dedup();
        let app_times_database = view.recording.tables.spans.rows.iter().any(|s| s.resource == "database");
        Self {
            app_times_database,
            queued_at,
            round_trip_ms: round_trip_ms(view, &ports),
            locks: Locks::collect(view),
            client_is_app: manifest
                .load
                .as_ref()
                .is_some_and(|l| !l.protocol.is_empty() && !l.protocol.starts_with("http")),
        }
    }

    /// Whether statements were seen queueing in front of the database between these instants or
    /// close to them.
    pub fn is_queued(&self, from: i64, to: i64) -> bool {
        let first = self.queued_at.partition_point(|at| *at < from - SAMPLING_SLACK_NS);
        self.queued_at.get(first).is_some_and(|at| *at <= to + SAMPLING_SLACK_NS)
    }

    /// Milliseconds that an execution waited for locks, and their error.
    pub fn locked_ms(&self, execution: &Statement) -> (f64, f64) {
        self.locks.of_execution(execution)
    }
}

/// Instants at which a gauge was above zero; with `ports` only for these ports.
fn positive(view: &View<'_>, metric: &str, labels: &[(&str, &str)], ports: Option<&BTreeSet<String>>) -> Vec<i64> {
    let series = view.index.series(metric, labels);
    let is_wanted = |port: Option<&str>| ports.is_none_or(|ports| port.is_some_and(|port| ports.contains(port)));
    let wanted = series.filter(|((_, labels), _)| is_wanted(labels.get("port")));
    wanted.flat_map(|(_, samples)| samples.iter().filter(|(_, value)| *value > 0.0).map(|(at, _)| *at)).collect()
}

/// Mean round trip to the database over the window, from packets, else from the kernel.
fn round_trip_ms(view: &View<'_>, ports: &BTreeSet<String>) -> Option<f64> {
    let mean = |metric: &str, labels: &[(&str, &str)], is_mine: &dyn Fn(&holdup_recording::Labels) -> bool| {
        let series = view.index.series(metric, labels).filter(|((_, labels), _)| is_mine(labels));
        let within = series.flat_map(|(_, samples)| samples).filter(|(at, _)| view.window.contains(*at));
        let (sum, count) = within.fold((0.0, 0.0), |(sum, count), (_, value)| (sum + value, count + 1.0));
        (count > 0.0).then(|| sum / count * 1e3)
    };
    let at_port = |labels: &holdup_recording::Labels| labels.get("port").is_some_and(|port| ports.contains(port));
    mean(metrics::wire::ROUND_TRIP.name, &[], &|_| true)
        .or_else(|| mean(metrics::tcp::ROUND_TRIP.name, &[("stat", "mean"), ("side", "client")], &at_port))
        .or_else(|| mean(metrics::tcp::ROUND_TRIP.name, &[("stat", "mean")], &at_port))
}

/// Spreads lock waits over executions. The server books them as one total. An execution can wait
/// only for the time by which it exceeds its kind's unhindered time, and locks get the same share
/// of that time in each execution as in all of them together.
struct Locks {
    /// Milliseconds of an unhindered execution, by digest; only for statements that may wait.
    unhindered_ms: BTreeMap<String, f64>,
    /// Share (0-1) of lock waits in the time above that.
    ratio: f64,
}

impl Locks {
    fn collect(view: &View<'_>) -> Self {
        let none = Self { unhindered_ms: BTreeMap::new(), ratio: 0.0 };
        let Ok(executions) = view.executions(&["observed_at", "kind", "digest", "duration_ns"]) else { return none };
        let booked_ms =
            view.counter(metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME.name, &[], "").map_or(0.0, |c| c.delta);
        let sessions = view.sessions(&["observed_at", "true_state", "digest"]).unwrap_or_default();
        let waiting: Vec<_> = sessions.iter().filter(|s| s.true_state == "lock_wait").collect();
        let instants = view.session_instants().max(1) as f64;
        // A wait is booked when it ends. Samples show those that outlast the window (Little's law).
        let sampled_ms = waiting.len() as f64 / instants * bounded_seconds(view.window, executions.clone()) * 1e3;
        let locked_ms = booked_ms.max(sampled_ms);
        if locked_ms <= 0.0 {
            return none;
        }
        let seen: BTreeSet<&str> = waiting.iter().filter_map(|s| s.digest.as_deref()).collect();
        let mut by_digest: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for execution in executions {
            by_digest.entry(execution.digest).or_default().push(execution.duration_ns as f64 / 1e6);
        }
        // If the waiting statements are known by name, no others can wait.
        if by_digest.keys().any(|digest| seen.contains(digest)) {
            by_digest.retain(|digest, _| seen.contains(digest));
        }
        let always = View { window: Window { from: i64::MIN, to: i64::MAX }, ..*view };
        let mut at_any_time: BTreeMap<&str, Vec<(f64, u64)>> = BTreeMap::new();
        for execution in always.executions(&[]).into_iter().flatten() {
            at_any_time.entry(execution.digest).or_default().push((execution.duration_ns as f64 / 1e6, 1));
        }
        let mut unhindered_ms = BTreeMap::new();
        let mut above_ms = 0.0;
        for (digest, times) in by_digest {
            let all = Distribution::from_counts(at_any_time.remove(digest).unwrap_or_default());
            let least = all.quantile(UNLOCKED).unwrap_or(0.0);
            above_ms += times.iter().map(|ms| (ms - least).max(0.0)).sum::<f64>();
            unhindered_ms.insert(digest.to_owned(), least);
        }
        Self { unhindered_ms, ratio: (locked_ms / f64::max(above_ms, 1e-9)).clamp(0.0, 1.0) }
    }

    fn of_execution(&self, execution: &Statement) -> (f64, f64) {
        let took_ms = execution.duration_ns as f64 / 1e6;
        let told_ms = (execution.lock_ns as f64 / 1e6).clamp(0.0, took_ms);
        let above_ms = self.unhindered_ms.get(&execution.digest).map_or(0.0, |least| (took_ms - least).max(0.0));
        let shared_ms = above_ms * self.ratio;
        if told_ms >= shared_ms { (told_ms, 0.0) } else { (shared_ms, shared_ms * (1.0 - self.ratio)) }
    }
}

/// The window's length, or for one without an end, the span of its executions.
fn bounded_seconds<'e>(window: Window, executions: impl Iterator<Item = Execution<'e>> + Clone) -> f64 {
    let times = || executions.clone().map(|s| s.observed_at);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    Window { from: window.from.max(first), to: window.to.min(last) }.seconds().max(0.0)
}
