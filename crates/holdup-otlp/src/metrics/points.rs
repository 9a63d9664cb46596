//! The points in `ExportMetricsServiceRequest`. Field numbers are those of
//! `opentelemetry/proto/metrics/v1/metrics.proto`.

use holdup_recording::Labels;

use super::{Kind, Listener, Metric, Point, resource_label};
use crate::bounds::{BUCKETS_MAX, LABELS_MAX, TEXT_BYTES_MAX, cut};
use crate::json::Json;
use crate::message::{Field, Node, into_text, read};
use crate::{Encoding, Malformed};

/// Temporalities by number.
const TEMPORALITIES: [&str; 3] =
    ["AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE"];
const DELTA: u64 = 1;

/// A metric's fields: one of the kinds has its points.
const METRIC: [Field; 7] = [
    (1, "name"),
    (3, "unit"),
    (5, "gauge"),
    (7, "sum"),
    (9, "histogram"),
    (10, "exponentialHistogram"),
    (11, "summary"),
];

/// Fields of a point, by kind of metric.
const NUMBER: [Field; 5] = [(3, "timeUnixNano"), (4, "asDouble"), (6, "asInt"), (7, "attributes"), (8, "flags")];
const HISTOGRAM: [Field; 7] = [
    (3, "timeUnixNano"),
    (4, "count"),
    (5, "sum"),
    (6, "bucketCounts"),
    (7, "explicitBounds"),
    (9, "attributes"),
    (10, "flags"),
];
const EXPONENTIAL: [Field; 5] = [(1, "attributes"), (3, "timeUnixNano"), (4, "count"), (5, "sum"), (10, "flags")];
const SUMMARY: [Field; 6] =
    [(3, "timeUnixNano"), (4, "count"), (5, "sum"), (6, "quantileValues"), (7, "attributes"), (8, "flags")];

pub(super) fn each_point(encoding: Encoding, body: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    read(encoding, body, |node| {
        node.each_at(&[(1, "resourceMetrics")], &mut |mut node| {
            let mut labels = Labels::none();
            node.ahead(|node| {
                node.resource(|key, value| {
                    if let Some(label) = resource_label(key) {
                        labels = std::mem::take(&mut labels).with(label, cut(&value.text(), TEXT_BYTES_MAX));
                    }
                })
            })?;
            node.each_at(&[(2, "scopeMetrics"), (2, "metrics")], &mut |node| metric(node, &labels, listener))
        })
    })
}

fn metric(mut node: Node<'_, '_>, labels: &Labels, listener: Listener<'_>) -> Result<(), Malformed> {
    let mut metric = Metric::default();
    // A metric's properties may come after its points.
    node.ahead(|node| {
        node.message(&METRIC, |name, node| {
            metric.kind = match name {
                "name" => return node.text().map(|text| metric.name = text),
                "unit" => return node.text().map(|text| metric.unit = text),
                "gauge" => Kind::Gauge,
                "sum" => Kind::Sum,
                "histogram" => Kind::Histogram,
                "exponentialHistogram" => Kind::Exponential,
                _ => Kind::Summary,
            };
            node.message(&[(2, "aggregationTemporality"), (3, "isMonotonic")], |name, node| {
                match name {
                    "isMonotonic" => metric.is_monotonic = node.flag()?,
                    _ => metric.is_delta = node.constant(&TEMPORALITIES)? == DELTA,
                }
                Ok(())
            })
        })
    })?;
    let (field, fields): (Field, &[Field]) = match metric.kind {
        Kind::Gauge => ((5, "gauge"), &NUMBER),
        Kind::Sum => ((7, "sum"), &NUMBER),
        Kind::Histogram => ((9, "histogram"), &HISTOGRAM),
        Kind::Exponential => ((10, "exponentialHistogram"), &EXPONENTIAL),
        Kind::Summary => ((11, "summary"), &SUMMARY),
    };
    node.message(&[field], |_, node| {
        node.each_at(&[(1, "dataPoints")], &mut |node| {
            listener(labels, &metric, &point(node, fields)?);
            Ok(())
        })
    })
}

fn point<'a>(node: Node<'_, 'a>, fields: &[Field]) -> Result<Point<'a>, Malformed> {
    let mut point = Point::default();
    node.message(fields, |name, node| {
        match name {
            "attributes" => node.items(|node| {
                let has_room = point.attributes.len() < LABELS_MAX;
                point.is_too_large |= !has_room;
                node.key_value(|key, value| {
                    if has_room {
                        point.attributes.push((key.to_owned().into(), into_text(value)));
                    }
                })
            })?,
            "timeUnixNano" => point.time_ns = node.number()?,
            "asDouble" => point.value = node.double()?,
            "asInt" => point.value = node.signed()? as f64,
            "count" => point.count = node.number()?,
            "sum" => point.sum = Some(node.double()?),
            "flags" => point.is_empty = node.number()? & 1 != 0,
            "bucketCounts" => {
                point.is_too_large |= node.numbers(&mut point.counts, BUCKETS_MAX, |bits| bits, Json::whole)?;
            }
            "explicitBounds" => {
                point.is_too_large |= node.numbers(&mut point.bounds, BUCKETS_MAX, f64::from_bits, Json::double)?;
            }
            _ => node.items(|node| {
                let mut pair = (0.0, 0.0);
                node.message(&[(1, "quantile"), (2, "value")], |name, node| {
                    *(if name == "value" { &mut pair.1 } else { &mut pair.0 }) = node.double()?;
                    Ok(())
                })?;
                point.is_too_large |= point.quantiles.len() >= BUCKETS_MAX;
                if !point.is_too_large {
                    point.quantiles.push(pair);
                }
                Ok(())
            })?,
        }
        Ok(())
    })?;
    Ok(point)
}
