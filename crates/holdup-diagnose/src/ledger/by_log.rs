//! The ledger of an imported access log, which has no rows of single requests: the mean response
//! time of the episode's requests, and those of its parts that the same log has.

use holdup_recording::metrics;
use holdup_recording::words::round;

use super::{LedgerRow, Part, WHOLE_BAND};
use crate::case::Case;

/// Beginning of the sources of imported access logs.
const SOURCE: &str = "access_log:";

/// The queue in which requests waited in the proxy whose log it is.
pub(super) const PROXYS_QUEUE: &str = "queue_in_proxy";

/// The row of all requests; none without an access log.
pub(super) fn rows(case: &Case<'_>) -> Vec<LedgerRow> {
    let view = case.slow();
    let growth = |name: &str| {
        view.counter_where(|source| source.starts_with(SOURCE), name, &[], "").ok().map(|counter| counter.delta)
    };
    let of = |metric: &str, what: &str| growth(&format!("{metric}_{what}"));
    let server = metrics::app::HTTP_SERVER_REQUEST_DURATION.name;
    let (Some(count), Some(seconds)) = (of(server, "count").filter(|n| *n >= 1.0), of(server, "sum")) else {
        return Vec::new();
    };
    let mean_ms = |seconds: f64| seconds / count * 1e3;
    let parts = [
        (PROXYS_QUEUE, metrics::access_log::QUEUE.name),
        ("downstream", metrics::app::HTTP_CLIENT_REQUEST_DURATION.name),
    ];
    let part = |(part, metric): (&str, &str)| {
        let ms = round(mean_ms(of(metric, "sum")?), 3);
        Some(Part { part: part.to_owned(), ms, error_ms: 0.0 })
    };
    let parts: Vec<Part> = parts.into_iter().filter_map(part).collect();
    // A log without parts has nothing to split.
    if parts.is_empty() {
        return Vec::new();
    }
    let response_ms = round(mean_ms(seconds), 3);
    let residual_ms = round(response_ms - parts.iter().map(|part| part.ms).sum::<f64>(), 3);
    let (operation, band) = (WHOLE_BAND.to_owned(), WHOLE_BAND.to_owned());
    vec![LedgerRow { operation, band, requests: count as u64, response_ms, parts, residual_ms }]
}

#[cfg(test)]
mod tests {
    use super::super::ledger;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_log_has_its_own_queue_and_the_server_behind_it() {
        const LOG: &str = "access_log:edge.log";
        let sum = |made: SyntheticRecording, name: &str, ms: f64| {
            made.counter(LOG, &format!("{name}_sum"), &[], 50.0 * ms / 1e3).counter(
                LOG,
                &format!("{name}_count"),
                &[],
                50.0,
            )
        };
        let made = sum(SyntheticRecording::new(12), "http_server_request_duration_seconds", 400.0);
        let all =
            sum(sum(made.clone(), "access_log_queue_seconds", 310.0), "http_client_request_duration_seconds", 80.0);
        let rows = all.with(ledger);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        let ms: Vec<(&str, f64)> = row.parts.iter().map(|part| (part.part.as_str(), part.ms.round())).collect();
        assert_eq!((ms, row.residual_ms.round()), (vec![("queue_in_proxy", 310.0), ("downstream", 80.0)], 10.0));
        assert!(made.with(ledger).is_empty());
    }
}
