//! Which source measured response time. The client's own requests are best. Where holdup only
//! watched, an imported access log stands for them, or the app's HTTP metrics, or else a proxy in
//! front of it; beside the app's the requests that the kernel sees in front of the app's server and
//! in it. Without any of these, the time that the service's statements take does, by the server's
//! counters; and the time that they wait in the database, by Little's law (sessions waiting = rate x
//! wait), which also has what the server does not count as their time. Execution is left out there,
//! because a batch job's long statements would count as a delay of all others.
//!
//! MongoDB counts the time of its operations by kind, with all their waits in the server.
//!
//! For PostgreSQL these are the active client sessions that wait for a disk, a lock or another
//! process, and its transactions. If there are only a cloud's figures of a database, the response
//! time of its volume stands for it, but only when it is bad: a quick volume says nothing about
//! requests.

mod failed;
mod proxy;
mod server;
mod statements;
mod volume;

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::metrics;
use holdup_recording::rows::Request;

use crate::Window;
use crate::app::timing;
use crate::time::distribution::Distribution;
use crate::time::requests::{ClientView, Second};
use crate::view::Index;

pub use failed::{FailedKind, FailedRequests};

/// The source that measured response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The client, request by request.
    Client,
    /// An imported access log.
    AccessLog,
    /// The traces of single requests, from their roots.
    Traces,
    /// The same, where a service behind the one in front failed and the front answered all the same.
    InnerTraces,
    /// The app's HTTP server metrics: a histogram.
    AppMetrics,
    /// The same without buckets: a mean for each interval.
    AppMeans,
    /// The requests that the kernel sees with the app's server, and their rate, by Little's law.
    AppServer,
    /// A proxy's requests in flight and their rate, by Little's law.
    Proxy,
    /// The database's counters of the statements that it is sent all the time.
    DatabaseStatements,
    /// The database's sessions and statement rate, by Little's law.
    DatabaseSessions,
    /// CloudWatch's figures of a database's volume.
    Volume,
}

impl Origin {
    /// Whether it times each request, and not only the mean of some.
    pub fn times_each(self) -> bool {
        matches!(self, Self::Client | Self::AccessLog | Self::Traces | Self::InnerTraces | Self::AppMetrics)
    }

    /// Whether it counts requests, and not statements or operations of a volume.
    pub fn counts_requests(self) -> bool {
        matches!(
            self,
            Self::Client
                | Self::AppMetrics
                | Self::AccessLog
                | Self::Traces
                | Self::InnerTraces
                | Self::AppMeans
                | Self::AppServer
                | Self::Proxy
        )
    }

    /// The account that it is of: both of traces are one.
    #[must_use]
    pub fn account(self) -> Self {
        if self == Self::InnerTraces { Self::Traces } else { self }
    }

    /// Whether its account counts, for each interval, all that ended in it.
    pub fn counts_by_interval(self) -> bool {
        !matches!(self, Self::Client | Self::AppMetrics | Self::AppMeans | Self::DatabaseSessions)
    }
}

/// The measurements in `whole` that say how requests fared, best first: those of the outermost
/// boundary that any source measured. Several where each lacks a part: the app's own timing lacks
/// what waits in front of it, and each account of the database some of its waits. At least one,
/// which may be empty.
pub fn measured(requests: &[&Request], index: &Index, whole: Window) -> Vec<(ClientView, Origin)> {
    if !requests.is_empty() {
        return vec![(ClientView::from_requests(requests.iter().copied()), Origin::Client)];
    }
    let log = from_histogram(index, whole, is_access_log);
    if !log.seconds.is_empty() {
        return vec![(failed::counted(log, index, whole), Origin::AccessLog)];
    }
    let histogram = from_histogram(index, whole, |source| !is_access_log(source));
    let (app, origin) = match histogram.seconds.is_empty() {
        true => (from_means(index, whole), Origin::AppMeans),
        false => (histogram, Origin::AppMetrics),
    };
    let mut all = vec![(app, origin), (server::by_requests(index, whole), Origin::AppServer)];
    all.retain(|(view, _)| !view.seconds.is_empty());
    if all.first().is_some_and(|(_, origin)| *origin != Origin::AppServer) {
        return all;
    }
    let proxy = proxy::seconds(index, whole);
    if !proxy.seconds.is_empty() {
        return vec![(proxy, Origin::Proxy)];
    }
    if all.is_empty() {
        all.push((server::by_rounds(index, whole), Origin::AppServer));
        all.retain(|(view, _)| !view.seconds.is_empty());
    }
    let mysql = from_sessions(index, whole);
    let sessions = if mysql.seconds.is_empty() { from_processes(index, whole) } else { mysql };
    let of_statements = [statements::view(index, whole), statements::of_documents(index, whole)];
    all.extend(of_statements.map(|view| (view, Origin::DatabaseStatements)));
    all.push((sessions, Origin::DatabaseSessions));
    if all.iter().all(|(_, origin)| *origin != Origin::AppServer) {
        all.push((server::by_statements(index, whole), Origin::AppServer));
    }
    all.retain(|(view, _)| !view.seconds.is_empty());
    if all.is_empty() {
        let volume = volume::seconds(index, whole);
        let origin = if volume.seconds.is_empty() { Origin::DatabaseSessions } else { Origin::Volume };
        all.push((volume, origin));
    }
    all
}

/// Whether traces say more of requests than the best of the other accounts, that of `origin`: the
/// counters of an import of these traces hold less than they do, and nothing else timed a request.
pub fn traces_say_more(origin: Origin, index: &Index, is_of_traces: impl Fn(&str) -> bool) -> bool {
    match origin {
        Origin::AppMetrics | Origin::AppMeans => {
            let counter = format!("{}_count", timing::HTTP_SERVER);
            index.series(&counter, &[]).all(|((source, _), _)| is_of_traces(source))
        }
        _ => !origin.counts_requests(),
    }
}

/// Whether samples of `metric` may say how requests fared, or whether the generator was fit to
/// measure it: all that [`measured`] goes by.
pub fn is_measure(metric: &str) -> bool {
    let of_http = metric.strip_prefix(timing::HTTP_SERVER);
    let of_database = [metrics::mysql::SESSIONS, metrics::postgresql::ACTIVITY_SESSIONS].map(|of| of.name);
    of_http.is_some_and(|part| ["_bucket", "_sum", "_count"].contains(&part))
        || metric.starts_with(LOAD)
        || of_database.contains(&metric)
        || statements::counts(metric)
        || server::counts(metric)
        || proxy::counts(metric)
        || volume::counts(metric)
        || failed::counts(metric)
}

/// How the names of the generator's own metrics begin.
const LOAD: &str = "holdup_load_";

/// Intervals between scrapes of the app's HTTP histogram. A bucket's requests are put at the geometric middle
/// of its bounds, which is off by at most the square root of their ratio.
fn from_histogram(index: &Index, whole: Window, of: impl Fn(&str) -> bool) -> ClientView {
    let metric = format!("{}_bucket", timing::HTTP_SERVER);
    let mut totals: BTreeMap<i64, BTreeMap<u64, f64>> = BTreeMap::new();
    for ((source, labels), series) in index.series(&metric, &[]) {
        if !of(source) {
            continue;
        }
        let Some(bound) = labels.get("le").and_then(bound_ms) else { continue };
        for &(at, value) in series.iter().filter(|(at, _)| whole.contains(*at)) {
            *totals.entry(at).or_default().entry(bound.to_bits()).or_default() += value;
        }
    }
    let instants: Vec<(i64, BTreeMap<u64, f64>)> = totals.into_iter().collect();
    let seconds = instants.windows(2).filter_map(|pair| {
        let ((from, before), (to, after)) = (&pair[0], &pair[1]);
        let mut below = 0.0;
        let mut counts = Vec::new();
        let mut lower: f64 = 0.0;
        // Bounds are positive, so the order of their bits is their order.
        for (bits, total) in after {
            let upper = f64::from_bits(*bits);
            let cumulative = total - before.get(bits).copied().unwrap_or(0.0);
            let middle = if upper.is_infinite() { lower } else { (lower.max(upper / 2.0) * upper).sqrt() };
            counts.push((middle, (cumulative - below).max(0.0).round() as u64));
            below = cumulative.max(below);
            lower = upper;
        }
        let response_ms = Distribution::from_counts(counts);
        let (window, offered) = (Window { from: *from, to: *to }, response_ms.count());
        (offered > 0).then_some(Second { window, offered, errors: 0, response_ms, waiting_ms: None })
    });
    ClientView { seconds: seconds.collect() }
}

/// Intervals between scrapes of the app's HTTP metrics without buckets: the mean of the requests
/// that ended. Of several apps, which are read at different instants, the one with most requests.
fn from_means(index: &Index, whole: Window) -> ClientView {
    let counter = format!("{}_count", timing::HTTP_SERVER);
    let sources: BTreeSet<&str> = index.series(&counter, &[]).map(|((source, _), _)| source.as_str()).collect();
    let of_source = |source: &str| {
        let sums = index.sums(&format!("{}_sum", timing::HTTP_SERVER), |of, _| of == source);
        let counts = index.sums(&counter, |of, _| of == source).into_iter();
        let instants: Vec<(i64, f64)> = counts.filter(|(at, _)| whole.contains(*at)).collect();
        instants.windows(2).filter_map(|pair| mean_between(&sums, pair[0], pair[1])).collect::<Vec<Second>>()
    };
    let all = sources.into_iter().map(of_source);
    let seconds = all.max_by_key(|seconds| seconds.iter().map(|second| second.offered).sum::<u64>());
    ClientView { seconds: seconds.unwrap_or_default() }
}

/// The requests that ended between two scrapes, by the sums of their times and their counts.
fn mean_between(sums: &BTreeMap<i64, f64>, (from, before): (i64, f64), (to, after): (i64, f64)) -> Option<Second> {
    let (took_s, ended) = (sums.get(&to)? - sums.get(&from)?, after - before);
    let offered = ended.round() as u64;
    // A fall means a restart.
    let is_one = offered > 0 && took_s >= 0.0;
    is_one.then(|| Second::of_mean(Window { from, to }, took_s / ended * 1e3, offered))
}

/// Whether a source is an imported access log. Its server is in front of the app, so its account is
/// the outer one of the two.
fn is_access_log(source: &str) -> bool {
    source.starts_with("access_log:")
}

/// A bucket's upper bound in seconds as text, in milliseconds.
fn bound_ms(text: &str) -> Option<f64> {
    let seconds: f64 = if text == "+Inf" { f64::INFINITY } else { text.parse().ok()? };
    (seconds > 0.0).then_some(seconds * 1e3)
}

/// Intervals between reads of the database's status: mean time that a statement waited in it.
fn from_sessions(index: &Index, whole: Window) -> ClientView {
    let mut waiting: BTreeMap<i64, f64> = BTreeMap::new();
    for ((_, labels), series) in index.series(metrics::mysql::SESSIONS.name, &[]) {
        for &(at, value) in series {
            let waits = matches!(labels.get("true_state"), Some("queued" | "lock_wait"));
            *waiting.entry(at).or_default() += if waits { value } else { 0.0 };
        }
    }
    let mut seconds = Vec::new();
    for ((source, _), series) in index.series(metrics::mysql::GLOBAL_STATUS_QUESTIONS.name, &[]) {
        let booked = booked_lock_waits(index, source);
        let mut intervals = Vec::new();
        for pair in series.windows(2) {
            let ((from, before), (to, after)) = (pair[0], pair[1]);
            let statements = after - before;
            let seen: Vec<f64> = waiting.range(from..=to).map(|(_, n)| *n).collect();
            if !whole.contains(from) || statements < 1.0 || seen.is_empty() {
                continue;
            }
            let seen = seen.iter().sum::<f64>() / seen.len() as f64;
            let at = |instant: i64| booked.get(&instant).copied();
            let window = Window { from, to };
            let booked = at(from).zip(at(to)).map(|(before, after)| (after - before).max(0.0) / window.seconds());
            intervals.push(Interval { window, statements, seen, booked: booked.unwrap_or(0.0) });
        }
        seconds.extend(Second::bounded(waited(&intervals)));
    }
    ClientView { seconds }
}

/// Of an interval between two reads of a database's status.
struct Interval {
    window: Window,
    statements: f64,
    /// Mean number of sessions that were seen waiting.
    seen: f64,
    /// Mean number of sessions that waited for row locks by the server's own sum of these waits.
    booked: f64,
}

/// If the server booked this many times what was seen waiting, the sessions were read too rarely, or by
/// a list that does not show who waits for a row.
const UNSEEN: f64 = 2.0;

/// Mean time that a statement waited, interval by interval, by Little's law. What was seen counts,
/// because a wait is booked only at its end; what was booked does if most waits were not seen.
fn waited(intervals: &[Interval]) -> Vec<Second> {
    let total = |of: fn(&Interval) -> f64| intervals.iter().map(|i| of(i) * i.window.seconds()).sum::<f64>();
    let is_unseen = total(|i| i.booked) > UNSEEN * total(|i| i.seen);
    let second = |interval: &Interval| {
        let waiting = if is_unseen { interval.booked } else { interval.seen };
        // The value stands for as many statements, so that a mean over intervals is Little's law over all of them.
        Second::by_littles_law(interval.window, waiting, interval.statements)
    };
    intervals.iter().map(second).collect()
}

/// Seconds that statements waited for row locks so far, by instant: InnoDB's own sum (MySQL Reference
/// Manual, "Innodb_row_lock_time", milliseconds).
fn booked_lock_waits(index: &Index, source: &str) -> BTreeMap<i64, f64> {
    let all = index.series(metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME.name, &[]);
    let own = all.filter(|((of, _), _)| of == source);
    own.flat_map(|(_, series)| series.iter().map(|&(at, ms)| (at, ms / 1e3))).collect()
}

/// What PostgreSQL's sessions wait for, apart from the client: locks, the disk, another process.
const WAITS: &[&str] = &["IO", "LWLock", "Lock", "BufferPin", "IPC"];

/// Counter of PostgreSQL's transactions.
pub const TRANSACTIONS: &str = metrics::postgresql::STAT_DATABASE_XACT_COMMIT.name;

/// Intervals between reads of a PostgreSQL's processes: mean time that a transaction waited in it.
fn from_processes(index: &Index, whole: Window) -> ClientView {
    let mut waiting: BTreeMap<i64, f64> = BTreeMap::new();
    for ((_, labels), series) in index.series(metrics::postgresql::ACTIVITY_SESSIONS.name, &[]) {
        let waits = labels.get("backend_type") == Some("client backend")
            && labels.get("state") == Some("active")
            && labels.get("wait_event_type").is_some_and(|kind| WAITS.contains(&kind));
        for &(at, value) in series {
            *waiting.entry(at).or_default() += if waits { value } else { 0.0 };
        }
    }
    let instants: Vec<(i64, f64)> = index.sums(TRANSACTIONS, |_, _| true).into_iter().collect();
    let second = |pair: &[(i64, f64)]| {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        let transactions = after - before;
        let seen: Vec<f64> = waiting.range(from..=to).map(|(_, n)| *n).collect();
        if !whole.contains(from) || transactions < 1.0 || seen.is_empty() {
            return None;
        }
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        Some(Second::by_littles_law(Window { from, to }, mean, transactions))
    };
    ClientView { seconds: Second::bounded(instants.windows(2).filter_map(second).collect()) }
}

#[cfg(test)]
mod tests {
    use holdup_recording::Labels;
    use holdup_recording::rows::Sample;

    use super::*;

    fn sample(at_s: i64, metric: &str, labels: &[(&str, &str)], value: f64) -> Sample {
        Sample {
            observed_at: at_s * 1_000_000_000,
            source: "s".into(),
            metric: metric.into(),
            labels: Labels::new(labels.iter().copied()),
            value,
            ..Sample::default()
        }
    }

    #[test]
    fn row_locks_that_no_list_shows_are_booked() {
        let sessions = metrics::mysql::SESSIONS.name;
        let rows = |locked: f64| -> Vec<Sample> {
            let at = |s: i64| {
                let n = s as f64;
                [
                    sample(s, metrics::mysql::GLOBAL_STATUS_QUESTIONS.name, &[], 100.0 * n),
                    // 20 sessions wait all the time.
                    sample(s, metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME.name, &[], 20_000.0 * n),
                    sample(s, sessions, &[("true_state", "executing")], 20.0 - locked),
                    sample(s, sessions, &[("true_state", "lock_wait")], locked),
                ]
            };
            (0..4).flat_map(at).collect()
        };
        let mean = |rows: &[Sample]| {
            let (view, origin) = measured(&[], &Index::from_samples(rows), Window { from: 0, to: i64::MAX }).remove(0);
            assert_eq!((view.seconds.len(), origin), (3, Origin::DatabaseSessions));
            view.seconds[1].response_ms.mean().unwrap()
        };
        assert!((mean(&rows(0.0)) - 200.0).abs() < 10.0, "{}", mean(&rows(0.0)));
        // What is seen is more exact than a sum that grows when waits end.
        assert!((mean(&rows(15.0)) - 150.0).abs() < 10.0, "{}", mean(&rows(15.0)));
    }

    #[test]
    fn a_histogram_stands_for_requests() {
        let metric = "http_server_request_duration_seconds_bucket";
        let mut rows = Vec::new();
        for (at, fast, slow) in [(0, 0.0, 0.0), (1, 90.0, 100.0), (2, 180.0, 200.0)] {
            rows.push(sample(at, metric, &[("le", "0.1")], fast));
            rows.push(sample(at, metric, &[("le", "1")], slow));
            rows.push(sample(at, metric, &[("le", "+Inf")], slow));
        }
        let (view, origin) = measured(&[], &Index::from_samples(&rows), Window { from: 0, to: i64::MAX }).remove(0);
        assert_eq!((view.seconds.len(), view.seconds[0].offered, origin), (2, 100, Origin::AppMetrics));
        let (p50, p99) = (view.seconds[1].quantile(0.5).unwrap(), view.seconds[1].quantile(0.99).unwrap());
        assert!(p50 < 100.0 && p99 > 300.0 && p99 <= 1_000.0, "{p50} {p99}");
    }

    #[test]
    fn an_access_log_goes_before_the_metrics_of_the_app_behind_it() {
        let metric = "http_server_request_duration_seconds_bucket";
        let mut rows = Vec::new();
        for at in 0..3 {
            let all = 10.0 * at as f64;
            // The app was read between the seconds of the log.
            for (shift, source, bound, count) in
                [(0, "access_log:web.log", "0.4", all), (500_000_000, "prometheus:app", "0.1", 7.0 * all)]
            {
                for le in [bound, "+Inf"] {
                    let row = sample(at, metric, &[("le", le)], count);
                    rows.push(Sample { source: source.into(), observed_at: row.observed_at + shift, ..row });
                }
            }
        }
        let (view, origin) = measured(&[], &Index::from_samples(&rows), Window { from: 0, to: i64::MAX }).remove(0);
        assert_eq!((view.seconds.len(), view.seconds[0].offered, origin), (2, 10, Origin::AccessLog));
        assert!(view.seconds[0].quantile(0.5).unwrap() > 250.0);
    }

    #[test]
    fn sessions_stand_for_an_app_that_says_nothing() {
        let mut rows = Vec::new();
        for at in 0..4 {
            rows.push(sample(at, "mysql_global_status_questions", &[], 100.0 * at as f64));
            rows.push(sample(at, "mysql_sessions", &[("true_state", "queued")], 50.0));
            rows.push(sample(at, "mysql_sessions", &[("true_state", "executing")], 900.0));
        }
        let (view, origin) = measured(&[], &Index::from_samples(&rows), Window { from: 0, to: i64::MAX }).remove(0);
        assert_eq!((view.seconds.len(), origin), (3, Origin::DatabaseSessions));
        assert_eq!(view.seconds[0].response_ms, Distribution::from_counts([(500.0, 100)]));
    }

    #[test]
    fn a_postgresql_is_slow_by_itself_and_several_times() {
        let labels =
            |kind: &'static str| [("backend_type", "client backend"), ("state", "active"), ("wait_event_type", kind)];
        let slow = |at: i64| (40..80).contains(&at) || (120..170).contains(&at);
        let mut rows = Vec::new();
        for at in 0..200 {
            rows.push(sample(at, TRANSACTIONS, &[("database", "app")], 100.0 * at as f64));
            rows.push(sample(at, "postgresql_activity_sessions", &labels("IO"), if slow(at) { 20.0 } else { 0.2 }));
            rows.push(sample(at, "postgresql_activity_sessions", &labels("Client"), 900.0));
        }
        let (view, origin) = measured(&[], &Index::from_samples(&rows), Window { from: 0, to: i64::MAX }).remove(0);
        assert_eq!((view.seconds.len(), origin), (199, Origin::DatabaseSessions));
        assert_eq!(view.seconds[60].response_ms, Distribution::from_counts([(200.0, 100)]));
        let found = crate::time::episodes::find(&view.seconds);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0].level_ms - 200.0).abs() < 5.0 && (found[0].baseline_ms - 2.0).abs() < 0.1, "{found:?}");
    }
}
