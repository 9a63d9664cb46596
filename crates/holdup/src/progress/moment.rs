//! One second of the load for the live view: the few numbers it draws, without the histograms.

use holdup_load::stats::{OperationSecond, Second};

use crate::figures::{failed, failures_of_all, length_s, offered, quantile_ms, response_of_all};

/// The live view's figures of one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Requests due per second; 0 in a closed model.
    pub offered: f64,
    /// Requests that succeeded per second.
    pub achieved: f64,
    /// Requests that failed per second.
    pub failing: f64,
    /// Response time, milliseconds; none if no request ended in time.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Failures by kind, the most frequent first.
    pub failures: Vec<(&'static str, u64)>,
    /// By operation, in the scenario's order.
    pub operations: Vec<OperationMoment>,
}

/// The figures of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationMoment {
    /// Its name.
    pub name: String,
    /// Requests that ended, successfully or not.
    pub ended: u64,
    /// The same per second.
    pub rate: f64,
    /// Response time, milliseconds; none if no request ended in time.
    pub p99_ms: Option<f64>,
    /// Failures by kind, the most frequent first.
    pub failures: Vec<(&'static str, u64)>,
}

impl Moment {
    /// The figures of `second`.
    pub fn from_second(second: &Second) -> Self {
        let per_second = |count: u64| count as f64 / length_s(second).max(1e-3);
        let response = response_of_all(second);
        let operation = |o: &OperationSecond| OperationMoment {
            name: o.name.clone(),
            ended: o.completed + failed(o),
            rate: per_second(o.completed + failed(o)),
            p99_ms: quantile_ms(&o.latencies.response, 0.99),
            failures: by_count(o.failures.iter()),
        };
        Self {
            offered: offered(second),
            achieved: per_second(second.operations.iter().map(|o| o.completed).sum()),
            failing: per_second(second.operations.iter().map(failed).sum()),
            p50_ms: quantile_ms(&response, 0.5),
            p95_ms: quantile_ms(&response, 0.95),
            p99_ms: quantile_ms(&response, 0.99),
            failures: by_count(failures_of_all(second).iter()),
            operations: second.operations.iter().map(operation).collect(),
        }
    }

    /// Share (0-1) of the ended requests that failed.
    pub fn failed_ratio(&self) -> f64 {
        let ended = self.achieved + self.failing;
        if ended > 0.0 { self.failing / ended } else { 0.0 }
    }
}

fn by_count<'a>(failures: impl Iterator<Item = (&'a &'static str, &'a u64)>) -> Vec<(&'static str, u64)> {
    let mut failures: Vec<_> = failures.map(|(kind, count)| (*kind, *count)).collect();
    failures.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::second;

    #[test]
    fn a_second_is_drawn_with_rates_and_failures() {
        let mut second = second(3, &[("http_status", 10), ("timeout", 15)]);
        second.to = second.from + std::time::Duration::from_millis(500);
        let moment = Moment::from_second(&second);
        assert_eq!((moment.offered, moment.achieved, moment.failing), (110.0, 200.0, 50.0));
        assert_eq!(moment.failed_ratio(), 0.2);
        assert_eq!(moment.failures, [("timeout", 15), ("http_status", 10)]);
        assert_eq!((moment.operations[1].ended, moment.operations[1].rate), (25, 50.0));
        assert_eq!(moment.operations[1].p99_ms, None);
    }
}
