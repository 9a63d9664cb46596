//! Time inside and in front of the database, by the app's own metrics and by the server's.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use crate::{Distribution, Evidence, Mean, Missing, View};
use holdup_recording::words::ms;

/// Histogram of the app's database calls, as OpenTelemetry names it.
pub const OPERATION: &str = metrics::app::DB_CLIENT_OPERATION_DURATION.name;
/// Histogram of waits for a pooled connection.
pub const POOL_WAIT: &str = metrics::app::DB_CLIENT_CONNECTION_WAIT_TIME.name;
/// Histogram of how long a connection is held.
pub const POOL_USE: &str = metrics::app::DB_CLIENT_CONNECTION_USE_TIME.name;
/// Histogram of the app server's own request time.
pub const HTTP_SERVER: &str = metrics::app::HTTP_SERVER_REQUEST_DURATION.name;
/// Histogram of the app's calls to downstream services.
pub const HTTP_CLIENT: &str = metrics::app::HTTP_CLIENT_REQUEST_DURATION.name;

/// What to record for the app's own timing.
pub const APP_METRICS: &str = "--watch prometheus:http://APP/metrics, with OpenTelemetry's database client metrics on";

/// A statement belongs to the requests if it ran at least this often per completed request. A
/// report or a batch job beside them runs far less often.
const PER_REQUEST: f64 = 0.5;

/// The app's own timing of its database calls.
///
/// # Errors
/// If the app's metrics were not recorded.
pub fn app_operations(view: &View<'_>) -> Result<Mean, Missing> {
    view.mean(OPERATION, &[], APP_METRICS)
}

/// Share (0-1) of the time a pooled connection is held that is spent in database calls.
pub fn database_share_of_connection_use(view: &View<'_>) -> Option<f64> {
    let operation = view.mean(OPERATION, &[], APP_METRICS).ok()?;
    let held = view.mean(POOL_USE, &[], APP_METRICS).ok()?;
    (held.ms > 0.0 && held.count > 0.0).then(|| operation.ms * operation.count / (held.ms * held.count))
}

/// The server's own timing of the requests' statements.
#[derive(Clone, Debug)]
pub struct ServerTiming {
    /// Executions seen.
    pub count: usize,
    /// Mean, milliseconds.
    pub mean_ms: f64,
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
    evidence: Evidence,
}

impl ServerTiming {
    /// Evidence that points at the executions.
    pub fn evidence(&self, expected: impl Into<String>, text: impl Into<String>) -> Evidence {
        self.evidence.clone().saying(expected, text)
    }
}

/// End (nanoseconds since the Unix epoch) and duration (milliseconds) of every execution of the
/// requests' statements: those that ran at least once for every second completed request.
/// `completed` is the number of requests that succeeded in the window.
///
/// # Errors
/// If executions were not recorded, or none belongs to the requests.
pub fn executions_of_requests(view: &View<'_>, completed: f64) -> Result<Vec<(i64, f64)>, Missing> {
    let of_requests = digests_of_requests(view, completed)?;
    let executions = view.executions(TIMED)?.filter(|e| of_requests.contains_key(e.digest));
    Ok(executions.map(|e| (e.observed_at, e.duration_ns as f64 / 1e6)).collect())
}

const TIMED: &[&str] = &["observed_at", "kind", "digest", "duration_ns"];

/// Executions by digest of the requests' statements. They are counted, not gathered: there may be
/// millions.
fn digests_of_requests<'a>(view: &View<'a>, completed: f64) -> Result<BTreeMap<&'a str, usize>, Missing> {
    let mut by_digest = BTreeMap::new();
    for execution in view.executions(TIMED)? {
        *by_digest.entry(execution.digest).or_default() += 1;
    }
    by_digest.retain(|_, count| *count as f64 >= PER_REQUEST * completed);
    if by_digest.is_empty() {
        return Err(Missing::new(
            "executions of a statement that runs with every request",
            "a larger performance_schema_events_statements_history_long_size",
        ));
    }
    Ok(by_digest)
}

/// The server's own timing of the requests' statements; see [`executions_of_requests`].
///
/// # Errors
/// The same.
pub fn server_timing(view: &View<'_>, completed: f64) -> Result<ServerTiming, Missing> {
    let of_requests = digests_of_requests(view, completed)?;
    let digest = of_requests.iter().max_by_key(|(_, count)| **count).map_or("", |(digest, _)| *digest).to_owned();
    let executions = view.executions(TIMED)?.filter(|e| of_requests.contains_key(e.digest));
    let durations = Distribution::from_counts(executions.map(|e| (e.duration_ns as f64 / 1e6, 1)));
    let q = |q| durations.quantile(q).unwrap_or(0.0);
    let (p50_ms, p99_ms) = (q(0.5), q(0.99));
    let evidence = Evidence::new(
        "statements",
        "duration_ns",
        Labels::new([("kind", "execution"), ("digest", digest.as_str())]),
        view.window,
        format!("p50 {}, p99 {}", ms(p50_ms), ms(p99_ms)),
        String::new(),
        String::new(),
    );
    let mean_ms = durations.mean().unwrap_or(0.0);
    Ok(ServerTiming { count: durations.count() as usize, mean_ms, p50_ms, p99_ms, evidence })
}
