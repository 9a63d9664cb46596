//! The figures that outputs and the live view take from the histograms of one second. Nothing is
//! stored here.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use holdup_load::stats::{OperationSecond, Second, histogram};

/// Percentiles in outputs, with their names there.
pub const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// The value at `quantile` (0-1) in milliseconds, to a microsecond; none for an empty histogram.
pub fn quantile_ms(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| ms(histogram.value_at_quantile(quantile) as f64))
}

/// The mean in milliseconds, to a microsecond.
pub fn mean_ms(histogram: &Histogram<u64>) -> Option<f64> {
    (!histogram.is_empty()).then(|| ms(histogram.mean()))
}

/// The largest value in milliseconds, to a microsecond.
pub fn max_ms(histogram: &Histogram<u64>) -> Option<f64> {
    (!histogram.is_empty()).then(|| ms(histogram.max() as f64))
}

fn ms(ns: f64) -> f64 {
    (ns / 1e3).round() / 1e3
}

/// Response times of all operations together.
pub fn response_of_all(second: &Second) -> Histogram<u64> {
    let mut all = histogram();
    for operation in &second.operations {
        // Adding cannot fail, because the histogram resizes itself.
        let _ = all.add(&operation.latencies.response);
    }
    all
}

/// Requests that failed, of any kind.
pub fn failed(operation: &OperationSecond) -> u64 {
    operation.failures.values().sum()
}

/// Failures of all operations, by kind.
pub fn failures_of_all(second: &Second) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for (kind, count) in second.operations.iter().flat_map(|operation| &operation.failures) {
        *all.entry(*kind).or_default() += count;
    }
    all
}

/// Requests offered per second, to a millionth, because the rate is computed from intervals.
pub fn offered(second: &Second) -> f64 {
    (second.rate * 1e6).round() / 1e6
}

/// Requests achieved per second, to a thousandth.
pub fn achieved(second: &Second) -> f64 {
    let completed: u64 = second.operations.iter().map(|o| o.completed).sum();
    (completed as f64 / length_s(second).max(1e-3) * 1e3).round() / 1e3
}

/// Its length in seconds.
pub fn length_s(second: &Second) -> f64 {
    second.to.saturating_sub(second.from).as_secs_f64()
}

#[cfg(test)]
pub mod tests {
    use std::time::Duration;

    use holdup_load::stats::{Latencies, count};

    use super::*;

    /// The `n`th second: a search that took 10 ms a hundred times, and an order, which failed as `failures` says.
    pub fn second(n: u64, failures: &[(&'static str, u64)]) -> Second {
        let operation = |name: &str, completed: u64, ns: i64, failures: &[(&'static str, u64)]| {
            let mut latencies = Latencies::new();
            for _ in 0..completed {
                count(&mut latencies.response, ns);
                count(&mut latencies.service, ns / 2);
                count(&mut latencies.send_lag, 1_000);
            }
            OperationSecond {
                name: name.to_owned(),
                completed,
                failures: failures.iter().copied().collect(),
                latencies,
            }
        };
        Second {
            from: Duration::from_secs(n),
            to: Duration::from_secs(n + 1),
            started_at: 1_767_225_600_000_000_000 + n as i64 * 1_000_000_000,
            phase: "110/s, \"first\"".to_owned(),
            rate: 110.0,
            in_flight: 3,
            waiting: 1,
            operations: vec![operation("search", 100, 10_000_000, &[]), operation("order \"new\"", 0, 0, failures)],
        }
    }

    #[test]
    fn figures_of_a_second() {
        let second = second(0, &[("timeout", 2), ("http_status", 1)]);
        let all = response_of_all(&second);
        assert!((quantile_ms(&all, 0.5).unwrap() - 10.0).abs() < 0.02);
        assert!((mean_ms(&all).unwrap() - 10.0).abs() < 0.02 && (max_ms(&all).unwrap() - 10.0).abs() < 0.02);
        assert_eq!(quantile_ms(&second.operations[1].latencies.response, 0.5), None);
        assert_eq!((failed(&second.operations[1]), failures_of_all(&second)["timeout"]), (3, 2));
        assert!((length_s(&second) - 1.0).abs() < 1e-9);
        assert_eq!(
            (offered(&Second { rate: 100.000_000_000_000_01, ..second.clone() }), achieved(&second)),
            (100.0, 100.0)
        );
    }
}
