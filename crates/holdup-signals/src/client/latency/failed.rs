//! Failed requests of an access log: in which of its seconds, how many, and of which kind. They count
//! against the service although a refusal takes hardly any time.

use std::collections::BTreeMap;

use holdup_recording::metrics::access_log::{FAILED_REQUESTS, REQUESTS};

use super::{ClientView, Index, Window};

/// The label of a failure's kind.
const KIND: &str = "error_type";

/// Requests that failed in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedKind {
    /// OpenTelemetry's `error_type`, e.g. `gateway_timeout`.
    pub kind: String,
    /// How many.
    pub count: f64,
    /// Start of the first interval with one, nanoseconds since the Unix epoch.
    pub first_at: i64,
}

/// What access logs say of failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailedRequests {
    /// By kind, the most frequent first.
    pub kinds: Vec<FailedKind>,
    /// All requests of the logs.
    pub requests: f64,
}

impl FailedRequests {
    /// The failures in `whole`; none without access logs.
    #[must_use]
    pub fn read(index: &Index, whole: Window) -> Self {
        let mut kinds: BTreeMap<String, FailedKind> = BTreeMap::new();
        for ((_, labels), series) in index.series(FAILED_REQUESTS.name, &[]) {
            let kind = labels.get(KIND).unwrap_or("other");
            for (at, count) in rises(series, whole) {
                let new = || FailedKind { kind: kind.to_owned(), count: 0.0, first_at: at };
                let of = kinds.entry(kind.to_owned()).or_insert_with(new);
                of.count += count;
                of.first_at = of.first_at.min(at);
            }
        }
        let mut kinds: Vec<FailedKind> = kinds.into_values().collect();
        kinds.sort_by(|a, b| b.count.total_cmp(&a.count));
        Self { kinds, requests: by_interval(index, whole, REQUESTS.name).values().sum() }
    }

    /// Failures of all kinds.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.count).sum::<f64>() + 0.0
    }
}

/// Whether this account goes by samples of `metric`.
pub(super) fn counts(metric: &str) -> bool {
    [FAILED_REQUESTS.name, REQUESTS.name].contains(&metric)
}

/// The seconds of an access log with the failures of each, and with the requests that have no time.
pub(super) fn counted(mut log: ClientView, index: &Index, whole: Window) -> ClientView {
    let (failed, all) = (by_interval(index, whole, FAILED_REQUESTS.name), by_interval(index, whole, REQUESTS.name));
    for second in &mut log.seconds {
        let Window { from, to } = second.window;
        let within = |of: &BTreeMap<i64, f64>| of.range(from..to).map(|(_, count)| count).sum::<f64>().round() as u64;
        second.errors = within(&failed);
        second.offered = second.offered.max(within(&all)).max(second.errors);
    }
    log
}

/// How much a counter grew, over all its series, by the start of the interval.
fn by_interval(index: &Index, whole: Window, metric: &str) -> BTreeMap<i64, f64> {
    let mut all: BTreeMap<i64, f64> = BTreeMap::new();
    for (_, series) in index.series(metric, &[]) {
        rises(series, whole).for_each(|(at, count)| *all.entry(at).or_default() += count);
    }
    all
}

fn rises(series: &[(i64, f64)], whole: Window) -> impl Iterator<Item = (i64, f64)> + '_ {
    let pairs = series.windows(2).map(|pair| (pair[0].0, pair[1].1 - pair[0].1));
    pairs.filter(move |(at, count)| *count > 0.0 && whole.contains(*at))
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, measured};
    use super::*;
    use crate::Degradation;
    use crate::testing::SyntheticRecording;

    const WHOLE: Window = Window { from: 0, to: i64::MAX };

    #[test]
    fn a_log_s_failures_count_in_their_seconds_and_by_kind() {
        let log = "access_log:web.log";
        let refused = |second: i64| if second > 6 { 30.0 * (second - 6) as f64 } else { 0.0 };
        let made = SyntheticRecording::new(10)
            .counter(log, "http_server_request_duration_seconds_bucket", &[("le", "0.1")], 50.0)
            .counter(log, "http_server_request_duration_seconds_bucket", &[("le", "+Inf")], 50.0)
            .counter(log, "access_log_requests_total", &[("http_response_status_code", "200")], 60.0)
            .counted(log, "access_log_failed_requests_total", &[("error_type", "unavailable")], refused)
            .counter(log, "access_log_failed_requests_total", &[("error_type", "server_error")], 1.0);
        let (view, origin) = made.seen(|view| measured(&[], view.index, WHOLE)).remove(0);
        assert_eq!(origin, Origin::AccessLog);
        let errors: Vec<u64> = view.seconds.iter().map(|second| second.errors).collect();
        assert_eq!(errors, [1, 1, 1, 1, 1, 1, 31, 31, 31, 31]);
        assert!(view.seconds.iter().all(|second| second.offered == 60), "those without a time count, too");
        let failed = made.seen(|view| FailedRequests::read(view.index, WHOLE));
        assert_eq!((failed.count(), failed.requests), (130.0, 600.0));
        assert_eq!((failed.kinds[0].kind.as_str(), failed.kinds[0].count), ("unavailable", 120.0));
        assert_eq!(failed.kinds[0].first_at - failed.kinds[1].first_at, 6_000_000_000);
        assert!(Degradation::find(&view, &[], &[], None).is_some_and(|found| {
            !found.is_slow && found.text.starts_with("130 of 600 requests failed") && found.slow.seconds() == 4.0
        }));
    }
}
