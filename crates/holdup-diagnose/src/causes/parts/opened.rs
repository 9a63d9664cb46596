//! What connections to a database that were opened can cost a request.

use holdup_recording::metrics::app;
use holdup_recording::words::ms;
use holdup_signals::View;
use holdup_signals::app::timing::APP_METRICS;
use holdup_signals::time::requests::mean_over;

use crate::case::Case;
use crate::causes::bound::Bound;
use crate::resources::new_connections::NewConnections;

/// Opening a connection takes less of a server's CPU than this, milliseconds: a process, TLS, and a
/// password that is hashed 15,000 times.
const LOGIN_MS: f64 = 40.0;

/// Timings of opened connections by apps' pools.
const CREATED: [&str; 2] = [app::DB_CLIENT_CONNECTION_CREATE_TIME.name, app::HIKARICP_CONNECTIONS_CREATION.name];

/// A request waits at most for its own connection and for the work on all that came meanwhile.
pub(in crate::causes) fn bound(case: &Case<'_>) -> Option<Bound> {
    let opened = NewConnections::measure(case, &case.slow()).ok()?;
    let response_ms = case.degradation.as_ref()?.slow_mean_ms;
    let during = opened.counter.rate() * response_ms / 1e3 + opened.each;
    let (each_ms, told) = match measured_ms(case) {
        Some(each_ms) => (each_ms, format!("of {} each as in the baseline window", ms(each_ms))),
        None => (LOGIN_MS, format!("of under {} each", ms(LOGIN_MS))),
    };
    let text = format!("{during:.1} connections were opened during a request, {told}");
    let evidence = opened.counter.evidence(format!("{during:.1} a request"), "", text);
    Some(Bound { ms: during * each_ms, evidence })
}

/// What opening one took in the baseline window: by holdup's own connections, or by the app's pool. In the
/// episode each would wait for the others.
fn measured_ms(case: &Case<'_>) -> Option<f64> {
    let baseline = case.baseline()?;
    own_ms(case, &baseline).or_else(|| {
        let mean = CREATED.iter().find_map(|metric| baseline.mean(metric, &[], APP_METRICS).ok());
        mean.filter(|mean| mean.count > 0.0).map(|mean| mean.ms)
    })
}

/// By the requests that connected to the database themselves.
fn own_ms(case: &Case<'_>, baseline: &View<'_>) -> Option<f64> {
    let rows = case.asks_statements().then(|| case.requests_in(baseline.window).ok()).flatten()?;
    mean_over(rows, |row| (row.connect_ns > 0).then(|| row.connect_ns as f64 / 1e6))
}
