//! Time series of Google's Cloud Monitoring, as its API lists them (`projects.timeSeries.list`) and
//! as `gcloud monitoring time-series list --format=json` prints them. A point that counts an
//! interval (`DELTA`) becomes a rate.

use holdup_recording::clock;
use holdup_recording::metrics::aws;
use serde_json::Value;

use super::{Found, Point};

const PREFIX: &str = "cloudsql.googleapis.com/database/";

/// How the values of a metric are taken.
#[derive(Clone, Copy)]
enum Take {
    /// As they are.
    Plain,
    /// Counts of their interval, as a rate.
    PerSecond,
}

/// Google's name behind the prefix, our name, and how to take it.
const KNOWN: [(&str, &str, Take); 13] = [
    ("cpu/utilization", aws::CPU_UTILIZATION_RATIO.name, Take::Plain),
    ("disk/read_ops_count", aws::READ_IOPS.name, Take::PerSecond),
    ("disk/write_ops_count", aws::WRITE_IOPS.name, Take::PerSecond),
    ("disk/read_bytes_count", aws::READ_THROUGHPUT_BYTES_PER_SECOND.name, Take::PerSecond),
    ("disk/write_bytes_count", aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name, Take::PerSecond),
    ("network/connections", aws::DATABASE_CONNECTIONS.name, Take::Plain),
    ("postgresql/num_backends", aws::DATABASE_CONNECTIONS.name, Take::Plain),
    ("network/received_bytes_count", aws::NETWORK_RECEIVE_THROUGHPUT_BYTES_PER_SECOND.name, Take::PerSecond),
    ("network/sent_bytes_count", aws::NETWORK_TRANSMIT_THROUGHPUT_BYTES_PER_SECOND.name, Take::PerSecond),
    ("disk/utilization", aws::STORAGE_UTILIZATION_RATIO.name, Take::Plain),
    ("swap/bytes_used", aws::SWAP_USAGE_BYTES.name, Take::Plain),
    ("replication/replica_lag", "aws_replica_lag_seconds", Take::Plain),
    ("mysql/replication/seconds_behind_master", "aws_replica_lag_seconds", Take::Plain),
];

/// Figures that become settings: the last value.
const SETTINGS: [(&str, &str); 5] = [
    ("cpu/reserved_cores", "instance.cpus"),
    ("memory/quota", "instance.memory_bytes"),
    ("disk/quota", "volume.size_bytes"),
    ("disk/provisioning/iops", "volume.iops"),
    ("disk/provisioning/throughput", "volume.throughput_bytes_per_second"),
];

pub(super) fn is_one(head: &str) -> bool {
    head.contains("cloudsql.googleapis.com/") && head.contains("\"points\"")
}

pub(super) fn read(document: &Value, found: &mut Found) {
    found.source = "cloud_sql";
    let list = document.as_array().or_else(|| document.get("timeSeries")?.as_array());
    let mut parts: Vec<(String, String, Vec<Point>)> = Vec::new();
    for series in list.into_iter().flatten() {
        let kind = series.pointer("/metric/type").and_then(Value::as_str).unwrap_or_default();
        let name = kind.strip_prefix(PREFIX).unwrap_or(kind);
        let id = series.pointer("/resource/labels/database_id").and_then(Value::as_str).unwrap_or("unnamed");
        // `project:instance`
        let instance = id.rsplit(':').next().unwrap_or(id).to_owned();
        let points: Vec<Point> =
            series.get("points").and_then(Value::as_array).into_iter().flatten().filter_map(point).collect();
        if let Some((_, setting)) = SETTINGS.iter().find(|(theirs, _)| *theirs == name)
            && let Some(last) = points.iter().max_by_key(|point| point.to)
        {
            // Throughput is provisioned in MiB/s.
            let factor = if name.ends_with("throughput") { 1_048_576.0 } else { 1.0 };
            let value = (last.value * factor).min(f64::MAX);
            found.settings.insert((*setting).to_owned(), value.to_string());
        }
        match KNOWN.iter().find(|(theirs, ..)| *theirs == name) {
            Some((_, ours, take)) => {
                let rate = |point: Point| {
                    let seconds = point.to.saturating_sub(point.from) as f64 / 1e9;
                    (seconds > 0.0).then(|| Point { value: point.value / seconds, ..point })
                };
                let points: Vec<Point> = match take {
                    Take::Plain => points,
                    Take::PerSecond => points.into_iter().filter_map(rate).collect(),
                };
                found.put(ours, &instance, points);
            }
            None if matches!(
                name,
                "memory/quota" | "memory/total_usage" | "memory/usage" | "disk/quota" | "disk/bytes_used"
            ) =>
            {
                parts.push((name.to_owned(), instance, points));
            }
            None if SETTINGS.iter().any(|(theirs, _)| *theirs == name) => {}
            None => found.unknown(name),
        }
    }
    rest(&parts, found);
}

/// Memory and disk space that are free: what is allowed less what is used.
fn rest(parts: &[(String, String, Vec<Point>)], found: &mut Found) {
    for (all, used, ours) in [
        ("memory/quota", ["memory/total_usage", "memory/usage"], aws::FREEABLE_MEMORY_BYTES.name),
        ("disk/quota", ["disk/bytes_used", "disk/bytes_used"], aws::FREE_STORAGE_SPACE_BYTES.name),
    ] {
        for (_, instance, all) in parts.iter().filter(|(name, ..)| name == all) {
            let of = |name: &str| parts.iter().find(|(known, of, _)| known == name && of == instance);
            if let Some((.., used)) = of(used[0]).or_else(|| of(used[1])) {
                found.put_rest(ours, instance, all, used);
            }
        }
    }
}

fn point(value: &Value) -> Option<Point> {
    let at = |key: &str| clock::parse_rfc3339(value.pointer(&format!("/interval/{key}"))?.as_str()?);
    let to = at("endTime")?;
    let number = value.get("value")?.as_object()?.values().next()?;
    // Whole numbers are texts.
    let value = number.as_f64().or_else(|| number.as_str()?.parse().ok()).filter(|value| value.is_finite())?;
    Some(Point { from: at("startTime").unwrap_or(to).min(to), to, value })
}
