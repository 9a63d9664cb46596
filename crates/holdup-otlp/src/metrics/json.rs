//! `ExportMetricsServiceRequest` as JSON.

use holdup_recording::Labels;

use super::{Kind, Listener, Metric, Point, resource_label};
use crate::Malformed;
use crate::bounds::{BUCKETS_MAX, LABELS_MAX, TEXT_BYTES_MAX, cut};
use crate::json::Json;
use crate::traces::{into_text, key_value_json};

/// Temporalities by number.
const TEMPORALITIES: [&str; 3] =
    ["AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE"];

pub(super) fn each_point(body: &[u8], listener: Listener<'_>) -> Result<(), Malformed> {
    let text = std::str::from_utf8(body).map_err(|_| Malformed("the JSON is not UTF-8"))?;
    let mut json = Json::new(text);
    json.object(|json, key| match key {
        "resourceMetrics" => json.array(|json| read_resource(json, listener)),
        _ => json.skip(),
    })?;
    json.end()
}

fn read_resource(json: &mut Json<'_>, listener: Listener<'_>) -> Result<(), Malformed> {
    let mut labels = Labels::none();
    let mut scopes = None;
    json.object(|json, key| match key {
        "resource" => json.object(|json, key| match key {
            "attributes" => json.array(|json| {
                key_value_json(
                    json,
                    |key| resource_label(key).is_some(),
                    |key, value| {
                        if let Some(label) = resource_label(key) {
                            labels = std::mem::take(&mut labels).with(label, cut(&value.text(), TEXT_BYTES_MAX));
                        }
                    },
                )
            }),
            _ => json.skip(),
        }),
        "scopeMetrics" => {
            scopes = Some(json.raw()?);
            Ok(())
        }
        _ => json.skip(),
    })?;
    let Some(mut scopes) = scopes else { return Ok(()) };
    scopes.array(|json| {
        json.object(|json, key| match key {
            "metrics" => json.array(|json| metric(json, &labels, listener)),
            _ => json.skip(),
        })
    })
}

fn metric(json: &mut Json<'_>, labels: &Labels, listener: Listener<'_>) -> Result<(), Malformed> {
    let mut metric = Metric::default();
    let mut data = None;
    json.object(|json, key| {
        metric.kind = match key {
            "name" => {
                metric.name = json.string()?;
                return Ok(());
            }
            "unit" => {
                metric.unit = json.string()?;
                return Ok(());
            }
            "gauge" => Kind::Gauge,
            "sum" => Kind::Sum,
            "histogram" => Kind::Histogram,
            "exponentialHistogram" => Kind::Exponential,
            "summary" => Kind::Summary,
            _ => return json.skip(),
        };
        data = Some(json.raw()?);
        Ok(())
    })?;
    let mut points = None;
    let Some(mut data) = data else { return Ok(()) };
    data.object(|json, key| {
        match key {
            "dataPoints" => points = Some(json.raw()?),
            "aggregationTemporality" => metric.is_delta = json.constant(&TEMPORALITIES)? == 1,
            "isMonotonic" => metric.is_monotonic = json.boolean()?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    let Some(mut points) = points else { return Ok(()) };
    points.array(|json| {
        listener(labels, &metric, &point(json)?);
        Ok(())
    })
}

fn point<'a>(json: &mut Json<'a>) -> Result<Point<'a>, Malformed> {
    let mut point = Point::default();
    json.object(|json, key| {
        match key {
            "attributes" => json.array(|json| {
                if point.attributes.len() >= LABELS_MAX {
                    point.is_too_large = true;
                    return json.skip();
                }
                let attributes = &mut point.attributes;
                key_value_json(json, |_| true, |key, value| attributes.push((key.to_owned().into(), into_text(value))))
            })?,
            "timeUnixNano" => point.time_ns = json.whole()?,
            "asDouble" => point.value = json.double()?,
            "asInt" => point.value = json.whole::<i64>()? as f64,
            "count" => point.count = json.whole()?,
            "sum" => point.sum = Some(json.double()?),
            "flags" => point.is_empty = json.whole::<u64>()? & 1 != 0,
            "bucketCounts" => point.is_too_large |= numbers(json, &mut point.counts, Json::whole)?,
            "explicitBounds" => point.is_too_large |= numbers(json, &mut point.bounds, Json::double)?,
            "quantileValues" => {
                let quantiles = &mut point.quantiles;
                point.is_too_large |= numbers(json, quantiles, |json| {
                    let mut pair = (0.0, 0.0);
                    json.object(|json, key| {
                        match key {
                            "quantile" => pair.0 = json.double()?,
                            "value" => pair.1 = json.double()?,
                            _ => json.skip()?,
                        }
                        Ok(())
                    })?;
                    Ok(pair)
                })?;
            }
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(point)
}

/// Reads an array of numbers; returns whether there are too many.
fn numbers<'a, N>(
    json: &mut Json<'a>,
    into: &mut Vec<N>,
    read: impl Fn(&mut Json<'a>) -> Result<N, Malformed>,
) -> Result<bool, Malformed> {
    let mut is_too_large = false;
    json.array(|json| {
        if into.len() < BUCKETS_MAX {
            into.push(read(json)?);
            return Ok(());
        }
        is_too_large = true;
        json.skip()
    })?;
    Ok(is_too_large)
}
