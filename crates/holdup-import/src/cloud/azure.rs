//! `az monitor metrics list` of flexible servers, of SQL databases and of disks. A percentage of a
//! limit also tells the limit, where the figure itself is beside it.

use holdup_recording::clock;
use holdup_recording::metrics::aws;
use serde_json::Value;

use super::{Found, Point};

/// How the values of a metric are taken.
#[derive(Clone, Copy, PartialEq)]
enum Take {
    Plain,
    /// Percent, as a share.
    Percent,
    /// The sum of an interval, as a rate.
    PerSecond,
}

/// Azure's name, our name, and how to take it.
const KNOWN: [(&str, &str, Take); 36] = [
    ("cpu_percent", aws::CPU_UTILIZATION_RATIO.name, Take::Percent),
    ("Percentage CPU", aws::CPU_UTILIZATION_RATIO.name, Take::Percent),
    ("active_connections", aws::DATABASE_CONNECTIONS.name, Take::Plain),
    ("connections_active", aws::DATABASE_CONNECTIONS.name, Take::Plain),
    ("sessions_count", aws::DATABASE_CONNECTIONS.name, Take::Plain),
    ("read_iops", aws::READ_IOPS.name, Take::Plain),
    ("write_iops", aws::WRITE_IOPS.name, Take::Plain),
    ("read_throughput", aws::READ_THROUGHPUT_BYTES_PER_SECOND.name, Take::Plain),
    ("write_throughput", aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name, Take::Plain),
    ("disk_queue_depth", aws::DISK_QUEUE_DEPTH.name, Take::Plain),
    ("storage_free", aws::FREE_STORAGE_SPACE_BYTES.name, Take::Plain),
    ("network_bytes_ingress", aws::NETWORK_RECEIVE_THROUGHPUT_BYTES_PER_SECOND.name, Take::PerSecond),
    ("network_bytes_egress", aws::NETWORK_TRANSMIT_THROUGHPUT_BYTES_PER_SECOND.name, Take::PerSecond),
    ("physical_replication_delay_in_seconds", "aws_replica_lag_seconds", Take::Plain),
    ("replication_lag", "aws_replica_lag_seconds", Take::Plain),
    ("cpu_credits_remaining", "aws_cpu_credit_balance", Take::Plain),
    ("memory_percent", "aws_memory_utilization_ratio", Take::Percent),
    ("storage_percent", aws::STORAGE_UTILIZATION_RATIO.name, Take::Percent),
    ("io_consumption_percent", aws::DISK_IO_CONSUMED_RATIO.name, Take::Percent),
    ("disk_iops_consumed_percentage", aws::DISK_IOPS_CONSUMED_RATIO.name, Take::Percent),
    ("disk_bandwidth_consumed_percentage", aws::DISK_THROUGHPUT_CONSUMED_RATIO.name, Take::Percent),
    ("physical_data_read_percent", aws::DATA_IO_CONSUMED_RATIO.name, Take::Percent),
    ("log_write_percent", aws::LOG_WRITE_CONSUMED_RATIO.name, Take::Percent),
    ("dtu_consumption_percent", "aws_dtu_consumed_ratio", Take::Percent),
    ("workers_percent", "aws_workers_consumed_ratio", Take::Percent),
    ("sessions_percent", "aws_sessions_consumed_ratio", Take::Percent),
    ("Data Disk Read Bytes/sec", aws::READ_THROUGHPUT_BYTES_PER_SECOND.name, Take::Plain),
    ("Data Disk Write Bytes/sec", aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name, Take::Plain),
    ("Data Disk Read Operations/Sec", aws::READ_IOPS.name, Take::Plain),
    ("Data Disk Write Operations/Sec", aws::WRITE_IOPS.name, Take::Plain),
    ("Data Disk Queue Depth", aws::DISK_QUEUE_DEPTH.name, Take::Plain),
    ("Data Disk IOPS Consumed Percentage", aws::DISK_IOPS_CONSUMED_RATIO.name, Take::Percent),
    ("Data Disk Bandwidth Consumed Percentage", aws::DISK_THROUGHPUT_CONSUMED_RATIO.name, Take::Percent),
    ("Composite Disk Read Bytes/sec", aws::READ_THROUGHPUT_BYTES_PER_SECOND.name, Take::Plain),
    ("Composite Disk Write Bytes/sec", aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name, Take::Plain),
    ("Available Memory Bytes", aws::FREEABLE_MEMORY_BYTES.name, Take::Plain),
];

/// A share of a limit below this (0-1) is rounded too much to tell the limit.
const TELLING: f64 = 0.2;

/// The setting that says where the volume's limits come from.
const LIMITS_FROM: &str = "volume.limits_from";
const PERCENTAGES: &str = "percentages";

pub(super) fn is_one(head: &str) -> bool {
    head.contains("\"timeseries\"") && head.contains("\"localizedValue\"")
}

pub(super) fn read(document: &Value, found: &mut Found) {
    found.source = "azure_monitor";
    let answers = document.as_array().map_or_else(|| vec![document], |all| all.iter().collect());
    let mut all_used: Vec<(String, &str, Vec<Point>)> = Vec::new();
    for answer in answers {
        let period_ns = period_ns(answer.get("interval").and_then(Value::as_str).unwrap_or_default());
        for metric in answer.get("value").and_then(Value::as_array).into_iter().flatten() {
            let name = metric.pointer("/name/value").and_then(Value::as_str).unwrap_or_default();
            let instance = metric.get("id").and_then(Value::as_str).map_or("unnamed", resource).to_owned();
            let known = KNOWN.iter().find(|(theirs, ..)| theirs.eq_ignore_ascii_case(name));
            let take = known.map_or(Take::Plain, |(.., take)| *take);
            let lists = metric.get("timeseries").and_then(Value::as_array).into_iter().flatten();
            let points = lists.filter_map(|one| one.get("data")?.as_array()).flatten();
            let points: Vec<Point> = points.filter_map(|value| point(value, period_ns, take)).collect();
            match (known, name) {
                (Some((_, ours, _)), _) => found.put(ours, &instance, points),
                (None, "storage_used" | "storage_limit") => {
                    all_used.push((instance, if name == "storage_used" { "used" } else { "limit" }, points));
                }
                (None, "max_connections" | "storage") => {}
                (None, other) => found.unknown(other),
            }
        }
    }
    for (instance, _, limit) in all_used.iter().filter(|(_, what, _)| *what == "limit") {
        if let Some(last) = limit.iter().max_by_key(|point| point.to) {
            found.settings.insert("volume.size_bytes".to_owned(), last.value.to_string());
        }
        if let Some((.., used)) = all_used.iter().find(|(of, what, _)| of == instance && *what == "used") {
            found.put_rest(aws::FREE_STORAGE_SPACE_BYTES.name, instance, limit, used);
        }
    }
    limits(found);
}

/// The limits that percentages tell: the figure at the highest share, divided by that share.
fn limits(found: &mut Found) {
    let instances: Vec<String> =
        found.series.keys().filter_map(|(_, labels)| labels.get("db_instance").cloned()).collect();
    for instance in instances {
        for (share, reads, writes, setting) in [
            (aws::DISK_IOPS_CONSUMED_RATIO.name, aws::READ_IOPS.name, aws::WRITE_IOPS.name, "volume.iops"),
            (
                aws::DISK_THROUGHPUT_CONSUMED_RATIO.name,
                aws::READ_THROUGHPUT_BYTES_PER_SECOND.name,
                aws::WRITE_THROUGHPUT_BYTES_PER_SECOND.name,
                "volume.throughput_bytes_per_second",
            ),
        ] {
            let at = |metric: &str, to: i64| {
                Some(found.points(metric, &instance)?.iter().find(|point| point.to == to)?.value)
            };
            let limit = found.points(share, &instance).and_then(|shares| {
                let top = shares.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
                let sum = at(reads, top.to)? + at(writes, top.to)?;
                (top.value >= TELLING).then_some(sum / top.value).filter(|limit| limit.is_finite())
            });
            if let Some(limit) = limit {
                found.settings.insert(setting.to_owned(), limit.round().to_string());
                found.settings.insert(LIMITS_FROM.to_owned(), PERCENTAGES.to_owned());
            }
        }
    }
}

/// The resource in `/subscriptions/…/flexibleServers/orders-db/providers/Microsoft.Insights/…`.
fn resource(id: &str) -> &str {
    let own = id.split("/providers/Microsoft.Insights/").next().unwrap_or(id);
    own.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("unnamed")
}

/// Nanoseconds of `PT1M`, `PT5M`, `PT1H`, `P1D`.
fn period_ns(text: &str) -> i64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let unit = match text.chars().last() {
        Some('S') => 1,
        Some('H') => 3_600,
        Some('D') => 86_400,
        _ => 60,
    };
    digits.parse::<i64>().unwrap_or(1).clamp(1, 86_400) * unit * 1_000_000_000
}

/// A point of an interval that begins at its stamp.
fn point(value: &Value, period_ns: i64, take: Take) -> Option<Point> {
    let from = clock::parse_rfc3339(value.get("timeStamp")?.as_str()?)?;
    let of = |name: &str| value.get(name).and_then(Value::as_f64);
    let seconds = period_ns as f64 / 1e9;
    let value = match take {
        Take::PerSecond => of("total")? / seconds,
        Take::Percent => of("average").or_else(|| of("maximum"))? / 100.0,
        Take::Plain => of("average").or_else(|| of("maximum")).or_else(|| of("total"))?,
    };
    Some(Point { from, to: from.checked_add(period_ns)?, value })
}
