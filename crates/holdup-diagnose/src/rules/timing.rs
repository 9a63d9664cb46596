//! What several rules ask about time inside and in front of the database: the app's account of its
//! statements beside the server's own.

use std::collections::BTreeMap;

use holdup_recording::Labels;

use super::{MATTERS, Outcome};
use crate::accounts::{self, Account, SPEAKS};
use crate::case::Case;
use crate::signals::{Distribution, Mean, Missing, View};
use crate::verdict::Evidence;

/// Histogram of the app's database calls, as OpenTelemetry names it.
pub const OPERATION: &str = "db_client_operation_duration_seconds";
/// Histogram of waits for a pooled connection.
pub const POOL_WAIT: &str = "db_client_connection_wait_time_seconds";
/// Histogram of how long a connection is held.
pub const POOL_USE: &str = "db_client_connection_use_time_seconds";
/// Histogram of the app server's own request time.
pub const HTTP_SERVER: &str = "http_server_request_duration_seconds";
/// Histogram of the app's calls of neighbours.
pub const HTTP_CLIENT: &str = "http_client_request_duration_seconds";

/// What would bring the app's own account.
pub const APP_METRICS: &str = "--watch prometheus:http://APP/metrics, with OpenTelemetry's database client metrics on";

/// A statement counts as one that requests run if it ran at least this often per completed request. A
/// report or a batch job beside them runs far more rarely.
const PER_REQUEST: f64 = 0.5;

/// The app's account of its database calls.
///
/// # Errors
/// If the app's metrics were not recorded.
pub fn app_operations(view: &View<'_>) -> Result<Mean, Missing> {
    view.mean(OPERATION, &[], APP_METRICS)
}

/// Clears a cause that lies inside the database by the app's own timing of its statements, which bounds every wait in it; none if
/// that is not small, or not known. `what` says that it has the cause in it.
pub fn clear_by_bound(case: &Case<'_>, what: &str) -> Option<Outcome> {
    let (per_request, _, evidence) = database_of_app(case)?;
    (case.share_inside(per_request) < MATTERS).then(|| {
        let text = format!("a request spent {} in the database, {what}", super::ms(per_request));
        Outcome::Cleared(vec![evidence.saying("most of the delay", text)])
    })
}

/// The app's account of its database calls, by its metrics or else its spans: milliseconds of a mean request, calls, and where
/// that is said.
pub fn database_of_app(case: &Case<'_>) -> Option<(f64, f64, Evidence)> {
    let view = case.slow();
    let Ok(app) = app_operations(&view) else { return database_by_spans(case) };
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let per_request = app.ms * app.count / completed;
    Some((per_request, app.count / completed, app.evidence(super::ms(per_request), "", "")))
}

/// The same by its spans; none if they are of too few requests, or of no call of a database.
pub fn database_by_spans(case: &Case<'_>) -> Option<(f64, f64, Evidence)> {
    if !case.recording.tables.spans.rows.iter().any(|s| s.resource == "database") {
        return None;
    }
    let accounts = case.accounts();
    let told: Vec<&Account<'_>> = accounts.all.iter().filter(|a| a.has_app).collect();
    if accounts.kept.ratio < SPEAKS {
        return None;
    }
    let per_request = accounts::mean(told.iter().copied(), |a| a.database_ms());
    let calls = accounts::mean(told.iter().copied(), |a| a.calls as f64);
    let labels = Labels::of([("resource", "database")]);
    let evidence = Evidence::new("spans", "duration_ns", labels, case.slow().window, super::ms(per_request), "", "");
    (calls > 0.0).then_some((per_request, calls, evidence))
}

/// Database calls of a mean request, by the app's metrics or its spans.
pub fn calls_per_request(case: &Case<'_>, completed: f64) -> Option<f64> {
    let by_metrics = app_operations(&case.slow()).ok().map(|app| app.count / completed);
    by_metrics.or_else(|| database_by_spans(case).map(|(_, calls, _)| calls))
}

/// Which share (0-1) of the time for which a pooled connection is held is spent in database calls.
pub fn database_share_of_connection_use(view: &View<'_>) -> Option<f64> {
    let operation = view.mean(OPERATION, &[], APP_METRICS).ok()?;
    let held = view.mean(POOL_USE, &[], APP_METRICS).ok()?;
    (held.ms > 0.0 && held.count > 0.0).then(|| operation.ms * operation.count / (held.ms * held.count))
}

/// How long a request of the degraded stretch holds pooled connections, milliseconds, all its uses together.
pub fn connection_held_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let held = view.mean(POOL_USE, &[], APP_METRICS);
    let Ok(held) = held.or_else(|_| view.mean("hikaricp_connections_usage_seconds", &[], APP_METRICS)) else {
        // For its calls of the database at least it is held.
        return database_by_spans(case).map(|(ms, ..)| ms);
    };
    Some(held.ms * held.count / case.completed_in(view.window).ok()?.max(1.0))
}

/// The server's own timing of the statements that requests run.
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

/// End (nanoseconds since the Unix epoch) and duration (milliseconds) of every execution of the statements
/// that requests run: those that ran at least every second time a request completed. `completed` is the
/// number of requests that ended well in the window.
///
/// # Errors
/// If executions were not recorded, or none belongs to the requests.
pub fn executions_of_requests(view: &View<'_>, completed: f64) -> Result<Vec<(i64, f64)>, Missing> {
    let of_requests = digests_of_requests(view, completed)?;
    let executions = view.executions(TIMED)?.filter(|e| of_requests.contains_key(e.digest));
    Ok(executions.map(|e| (e.observed_at, e.duration_ns as f64 / 1e6)).collect())
}

const TIMED: &[&str] = &["observed_at", "kind", "digest", "duration_ns"];

/// Executions by digest of the statements that requests run. They are counted, not gathered: there may be millions.
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

/// The server's own timing of the statements that requests run; see [`executions_of_requests`].
///
/// # Errors
/// The same.
pub fn server_timing(view: &View<'_>, completed: f64) -> Result<ServerTiming, Missing> {
    let of_requests = digests_of_requests(view, completed)?;
    let digest = of_requests.iter().max_by_key(|(_, count)| **count).map_or("", |(digest, _)| *digest).to_owned();
    let executions = view.executions(TIMED)?.filter(|e| of_requests.contains_key(e.digest));
    let durations = Distribution::of(executions.map(|e| (e.duration_ns as f64 / 1e6, 1)));
    let q = |q| durations.quantile(q).unwrap_or(0.0);
    let (p50_ms, p99_ms) = (q(0.5), q(0.99));
    let evidence = Evidence::new(
        "statements",
        "duration_ns",
        Labels::of([("kind", "execution"), ("digest", digest.as_str())]),
        view.window,
        format!("p50 {}, p99 {}", super::ms(p50_ms), super::ms(p99_ms)),
        String::new(),
        String::new(),
    );
    let mean_ms = durations.mean().unwrap_or(0.0);
    Ok(ServerTiming { count: durations.count() as usize, mean_ms, p50_ms, p99_ms, evidence })
}
