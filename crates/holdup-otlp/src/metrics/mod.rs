//! Bodies of `/v1/metrics` as samples, under the names and labels that a Prometheus endpoint of the same app would have:
//! `db.client.operation.duration` in seconds is `db_client_operation_duration_seconds_bucket`, `_sum` and `_count`. Points become
//! samples as they are; that increments (delta temporality) are summed up is the receiver's doing, in [`Totals`], because
//! only it knows which were taken. Names that rules read, old and new, are in [`Known`]. Exponential histograms give `_sum` and `_count`: their buckets' bounds change as they go.

mod json;
mod known;
pub mod naming;
mod protobuf;

use std::borrow::Cow;
use std::collections::HashMap;

use holdup_recording::Labels;
use holdup_recording::rows::Sample;

use crate::bounds::{DELTA_SERIES_MAX, TEXT_BYTES_MAX, cut};
use crate::{Encoding, Malformed};

pub use known::Known;

/// What kind of metric it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A value that goes up and down.
    #[default]
    Gauge,
    /// A sum.
    Sum,
    /// A histogram with bounds of its own.
    Histogram,
    /// A histogram whose bounds follow from a scale.
    Exponential,
    /// Quantiles.
    Summary,
}

/// What holds for all points of a metric.
#[derive(Clone, Debug, Default)]
pub struct Metric<'a> {
    /// Its name, with dots.
    pub name: Cow<'a, str>,
    /// Its unit, in UCUM's letters.
    pub unit: Cow<'a, str>,
    /// What kind it is.
    pub kind: Kind,
    /// Whether points are increments since the last.
    pub is_delta: bool,
    /// Whether a sum never falls.
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
    /// Observations.
    pub count: u64,
    /// Their sum, where it is told.
    pub sum: Option<f64>,
    /// Observations per bucket, not cumulated.
    pub counts: Vec<u64>,
    /// Upper bounds of the buckets but for the last, which has none.
    pub bounds: Vec<f64>,
    /// Quantiles and their values.
    pub quantiles: Vec<(f64, f64)>,
    /// Whether it says that there is no value.
    pub is_empty: bool,
    /// Whether it has more attributes, buckets or quantiles than are read.
    pub is_too_large: bool,
}

/// Whoever is told of a point: labels of the resource, its metric, and the point.
pub type Listener<'l> = &'l mut dyn FnMut(&Labels, &Metric<'_>, &Point<'_>);

/// Tells `listener` of every point in `body`.
///
/// # Errors
/// If the body is malformed; some of it may have been told.
pub fn each_point(encoding: Encoding, body: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    match encoding {
        Encoding::Protobuf => protobuf::each_point(body, listener),
        Encoding::Json => json::each_point(body, listener),
    }
}

/// The label of a resource's attribute, of those that are kept.
fn resource_label(key: &str) -> Option<&'static str> {
    match key {
        "service.name" => Some("service_name"),
        "service.instance.id" => Some("service_instance_id"),
        _ => None,
    }
}

/// Puts the samples of a point that came to `source` into `samples`.
///
/// # Errors
/// Why it is rejected, in words; then none is put.
pub fn samples(
    source: &str,
    known: &mut Known,
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
        return Err("a data point without a name or a time");
    }
    if point.is_too_large {
        return Err("a data point with too many attributes or buckets");
    }
    if point.counts.len() != point.bounds.len() + usize::from(!point.counts.is_empty()) {
        return Err("a histogram whose bounds do not fit its buckets");
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

/// What increments add up to, series by series.
#[derive(Debug, Default)]
pub struct Totals(HashMap<(String, Labels), f64>);

impl Totals {
    /// Replaces the increment in `sample` by the total up to it. False if there are too many series to do so.
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
