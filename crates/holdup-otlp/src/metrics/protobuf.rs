//! `ExportMetricsServiceRequest` as protobuf. Field numbers are those of `opentelemetry/proto/metrics/v1/metrics.proto`.

use holdup_recording::Labels;

use super::{Kind, Listener, Metric, Point, resource_label};
use crate::Malformed;
use crate::bounds::{BUCKETS_MAX, LABELS_MAX, TEXT_BYTES_MAX, cut};
use crate::protobuf::{Fields, Wire};
use crate::traces::{into_text, key_value};

/// `AGGREGATION_TEMPORALITY_DELTA`.
const DELTA: u64 = 1;

pub(super) fn each_point(body: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    messages(body, 1, |resource_metrics| {
        let mut labels = Labels::none();
        messages(resource_metrics, 1, |resource| {
            messages(resource, 1, |attribute| {
                key_value(
                    attribute,
                    |key| resource_label(key).is_some(),
                    |key, value| {
                        if let Some(label) = resource_label(key) {
                            labels = std::mem::take(&mut labels).with(label, cut(&value.text(), TEXT_BYTES_MAX));
                        }
                    },
                )
            })
        })?;
        messages(resource_metrics, 2, |scope_metrics| {
            messages(scope_metrics, 2, |bytes| metric(bytes, &labels, listener))
        })
    })
}

/// Calls `each` with every message in field `wanted` of `bytes`.
fn messages<'a>(
    bytes: &'a [u8],
    wanted: u64,
    mut each: impl FnMut(&'a [u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    Fields(bytes).each(|number, value| match value {
        Wire::Bytes(message) if number == wanted => each(message),
        _ => Ok(()),
    })
}

fn metric(bytes: &[u8], labels: &Labels, listener: Listener<'_>) -> Result<(), Malformed> {
    let mut metric = Metric::default();
    let mut data = None;
    Fields(bytes).each(|number, value| {
        let kind = match number {
            1 => {
                metric.name = value.text();
                return Ok(());
            }
            3 => {
                metric.unit = value.text();
                return Ok(());
            }
            5 => Kind::Gauge,
            7 => Kind::Sum,
            9 => Kind::Histogram,
            10 => Kind::Exponential,
            11 => Kind::Summary,
            _ => return Ok(()),
        };
        metric.kind = kind;
        data = value.bytes();
        Ok(())
    })?;
    let Some(data) = data else { return Ok(()) };
    // The metric's properties may come after its points.
    Fields(data).each(|number, value| {
        match number {
            2 => metric.is_delta = value.number() == DELTA,
            3 => metric.is_monotonic = value.number() != 0,
            _ => {}
        }
        Ok(())
    })?;
    messages(data, 1, |bytes| {
        listener(labels, &metric, &point(bytes, metric.kind)?);
        Ok(())
    })
}

fn point(bytes: &[u8], kind: Kind) -> Result<Point<'_>, Malformed> {
    let mut point = Point::default();
    let (attributes, flags) = match kind {
        Kind::Gauge | Kind::Sum | Kind::Summary => (7, 8),
        Kind::Histogram => (9, 10),
        Kind::Exponential => (1, 10),
    };
    let is_number = matches!(kind, Kind::Gauge | Kind::Sum);
    Fields(bytes).each(|number, value| {
        match number {
            _ if number == attributes => attribute(value.bytes().unwrap_or_default(), &mut point)?,
            _ if number == flags => point.is_empty = value.number() & 1 != 0,
            3 => point.time_ns = value.number(),
            4 if is_number => point.value = value.double(),
            6 if is_number => point.value = value.number() as i64 as f64,
            4 => point.count = value.number(),
            5 if !is_number => point.sum = Some(value.double()),
            6 if kind == Kind::Histogram => {
                point.is_too_large |= numbers(value, &mut point.counts, |bits| bits);
            }
            7 if kind == Kind::Histogram => {
                point.is_too_large |= numbers(value, &mut point.bounds, f64::from_bits);
            }
            6 if kind == Kind::Summary => {
                let mut pair = (0.0, 0.0);
                Fields(value.bytes().unwrap_or_default()).each(|number, value| {
                    match number {
                        1 => pair.0 = value.double(),
                        2 => pair.1 = value.double(),
                        _ => {}
                    }
                    Ok(())
                })?;
                point.is_too_large |= point.quantiles.len() >= BUCKETS_MAX;
                if !point.is_too_large {
                    point.quantiles.push(pair);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(point)
}

fn attribute<'a>(bytes: &'a [u8], point: &mut Point<'a>) -> Result<(), Malformed> {
    if point.attributes.len() >= LABELS_MAX {
        point.is_too_large = true;
        return Ok(());
    }
    let attributes = &mut point.attributes;
    key_value(bytes, |_| true, |key, value| attributes.push((key.to_owned().into(), into_text(value))))
}

/// Appends 8-byte numbers, packed or single; returns whether there are too many.
fn numbers<N>(value: Wire<'_>, into: &mut Vec<N>, make: impl Fn(u64) -> N) -> bool {
    match value {
        Wire::Fixed64(bits) if into.len() < BUCKETS_MAX => into.push(make(bits)),
        Wire::Bytes(bytes) if into.len() + bytes.len() / 8 <= BUCKETS_MAX => {
            let numbers = bytes.as_chunks().0.iter();
            into.extend(numbers.map(|bytes| make(u64::from_le_bytes(*bytes))));
        }
        _ => return true,
    }
    false
}
