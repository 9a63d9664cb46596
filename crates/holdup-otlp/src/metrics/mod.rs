//! Parses bodies of `/v1/metrics` into samples, under the names and labels of a Prometheus endpoint
//! of the same app: `db.client.operation.duration` in seconds becomes
//! `db_client_operation_duration_seconds_bucket`, `_sum` and `_count`. Points become samples
//! unchanged; increments (delta temporality) are summed in [`Totals`] by the receiver, because only
//! it knows which were accepted. [`MetricNames`] handles old and new names of metrics that rules read.
//! Exponential histograms yield `_sum` and `_count`: their buckets' bounds change over time.

mod metric_names;
pub mod naming;
mod points;

use std::borrow::Cow;
use std::collections::HashMap;

use holdup_recording::Labels;
use holdup_recording::rows::Sample;

use crate::bounds::{DELTA_SERIES_MAX, TEXT_BYTES_MAX, cut};
use crate::{Encoding, Malformed};

pub use metric_names::MetricNames;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A value that goes up and down.
    #[default]
    Gauge,
    /// A sum.
    Sum,
    /// A histogram with explicit bounds.
    Histogram,
    /// A histogram whose bounds follow from a scale.
    Exponential,
    /// Quantiles.
    Summary,
}

/// The properties shared by all points of a metric.
#[derive(Clone, Debug, Default)]
pub struct Metric<'a> {
    /// Its name, with dots.
    pub name: Cow<'a, str>,
    /// Its unit, in UCUM notation.
    pub unit: Cow<'a, str>,
    /// Its kind.
    pub kind: Kind,
    /// Whether points are increments since the previous point.
    pub is_delta: bool,
    /// Whether its sum never falls.
    pub is_monotonic: bool,
}

/// One point of a metric.
#[derive(Clone, Debug, Default)]
pub struct Point<'a> {
    /// Its attributes.
    pub attributes: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// When it was read, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Its value.
    pub value: f64,
    /// Number of observations.
    pub count: u64,
    /// Their sum, if sent.
    pub sum: Option<f64>,
    /// Observations per bucket, not cumulative.
    pub counts: Vec<u64>,
    /// Upper bounds of the buckets except the last, which has none.
    pub bounds: Vec<f64>,
    /// Quantiles and their values.
    pub quantiles: Vec<(f64, f64)>,
    /// Whether it is marked as having no value.
    pub is_empty: bool,
    /// Whether it has more attributes, buckets or quantiles than the limits allow.
    pub is_too_large: bool,
}

/// Receives each point, with the resource's labels and the metric.
pub type Listener<'l> = &'l mut dyn FnMut(&Labels, &Metric<'_>, &Point<'_>);

/// Calls `listener` for every point in `body`.
///
/// # Errors
/// If the body is malformed; the listener may have received part of it.
pub fn each_point(encoding: Encoding, body: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    points::each_point(encoding, body, listener)
}

/// The label for a resource attribute, if it is kept.
fn resource_label(key: &str) -> Option<&'static str> {
    match key {
        "service.name" => Some("service_name"),
        "service.instance.id" => Some("service_instance_id"),
        _ => None,
    }
}

/// Adds the samples of a point sent to `source` to `samples`.
///
/// # Errors
/// Why it is rejected; then no sample is added.
pub fn samples(
    source: &str,
    known: &mut MetricNames,
    resource: &Labels,
    metric: &Metric<'_>,
    point: &Point<'_>,
    samples: &mut Vec<Sample>,
) -> Result<(), &'static str> {
    let at = i64::try_from(point.time_ns).unwrap_or_default();
    if point.is_empty {
        return Ok(());
    }
    if metric.name.is_empty() || at == 0 {
        return Err("a data point has no name or no time");
    }
    if point.is_too_large {
        return Err("a data point has too many attributes or buckets");
    }
    if point.counts.len() != point.bounds.len() + usize::from(!point.counts.is_empty()) {
        return Err("a histogram's bounds do not match its buckets");
    }
    let (name, per_unit) = known.name(resource, metric);
    let mut labels = resource.clone();
    for (key, value) in &point.attributes {
        labels = labels.with(&naming::label(cut(key, TEXT_BYTES_MAX)), cut(value, TEXT_BYTES_MAX));
    }
    let mut put = |suffix: &str, labels: Labels, value: f64| {
        let metric = format!("{name}{suffix}");
        samples.push(Sample { observed_at: at, window_ns: 0, source: source.to_owned(), metric, labels, value });
    };
    if matches!(metric.kind, Kind::Gauge | Kind::Sum) {
        put("", labels, point.value / per_unit);
        return Ok(());
    }
    let mut cumulated = 0_u64;
    let bounds = point.bounds.iter().map(|bound| (bound / per_unit).to_string()).chain(["+Inf".to_owned()]);
    for (count, bound) in point.counts.iter().zip(bounds) {
        cumulated = cumulated.saturating_add(*count);
        put("_bucket", labels.clone().with("le", bound), cumulated as f64);
    }
    for (quantile, value) in &point.quantiles {
        put("", labels.clone().with("quantile", quantile.to_string()), *value / per_unit);
    }
    if let Some(sum) = point.sum {
        put("_sum", labels.clone(), sum / per_unit);
    }
    put("_count", labels, point.count as f64);
    Ok(())
}

/// Sums of increments, by series.
#[derive(Debug, Default)]
pub struct Totals(HashMap<(String, Labels), f64>);

impl Totals {
    /// Replaces the increment in `sample` by the total so far. False if there are too many series.
    pub fn add(&mut self, sample: &mut Sample) -> bool {
        let key = (sample.metric.clone(), sample.labels.clone());
        if self.0.len() >= DELTA_SERIES_MAX && !self.0.contains_key(&key) {
            return false;
        }
        let total = self.0.entry(key).or_default();
        *total += sample.value;
        sample.value = *total;
        true
    }
}

#[cfg(test)]
mod tests;
