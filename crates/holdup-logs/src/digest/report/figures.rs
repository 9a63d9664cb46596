//! The figures of one attribute in a report.

use serde::Serialize;

use crate::digest::measure::Measure;

/// Figures of an attribute. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// `us` or `count`.
    pub unit: &'static str,
    /// Executions that had it.
    pub count: u64,
    /// Sum.
    pub sum: u128,
    /// Least. This and the following figures are `None` if the server does not keep them.
    pub min: Option<u64>,
    /// Mean.
    pub avg: f64,
    /// Median.
    pub p50: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Greatest.
    pub max: Option<u64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
}

impl Figures {
    pub(super) fn from_measure(measure: &Measure, unit: &'static str) -> Self {
        let [p50, p95, p99] = percentiles(measure);
        let bounds = measure.bounds();
        Self {
            unit,
            count: measure.count,
            sum: measure.sum,
            min: bounds.map(|(min, _)| min),
            avg: rounded(measure.mean()),
            p50,
            p95,
            p99,
            max: bounds.map(|(_, max)| max),
            stddev: measure.deviation().map(rounded),
        }
    }
}

/// Median, 95th and 99th percentile, if they are known.
pub(super) fn percentiles(measure: &Measure) -> [Option<u64>; 3] {
    measure.percentiles([0.5, 0.95, 0.99]).map_or([None; 3], |all| all.map(Some))
}

/// How often a flag was set.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct YesNo {
    /// Executions with `Yes`.
    pub yes: u64,
    /// Executions with `No`.
    pub no: u64,
}

/// Rounds to three digits behind the point, so that printed and measured figures agree.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
