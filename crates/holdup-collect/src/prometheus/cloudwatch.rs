//! Renames database metrics from CloudWatch exporters to the names that an import of CloudWatch's
//! own metrics uses, so that both are read alike. Two exporters are recognized by their names and
//! labels: Prometheus' own (`cloudwatch_exporter`) and YACE (`yet-another-cloudwatch-exporter`).
//! Both write `aws_rds_READ_IOPS_STATISTIC` in snake case; only averages are used.
//!
//! A CloudWatch value covers a period, usually a minute, and is exported repeatedly until the next.
//! The repetitions would look like a plateau, so each value is recorded once.

use std::collections::HashMap;

use holdup_recording::exposition::Series;
use holdup_recording::metrics::Metric;
use holdup_recording::{Labels, metrics};

/// Prefix of the names.
const PREFIX: &str = "aws_rds_";

/// Suffix of the names: a period's mean.
const MEAN: &str = "_average";

/// The exporters' name between prefix and suffix, our metric, and the factor for values.
/// CloudWatch's balance metrics have a `%` in their names, which the first exporter writes as
/// `_percent` and the second drops.
const NAMES: &[(&str, Metric, f64)] = &[
    ("read_throughput", metrics::aws::READ_THROUGHPUT_BYTES_PER_SECOND, 1.0),
    ("write_throughput", metrics::aws::WRITE_THROUGHPUT_BYTES_PER_SECOND, 1.0),
    ("read_iops", metrics::aws::READ_IOPS, 1.0),
    ("write_iops", metrics::aws::WRITE_IOPS, 1.0),
    ("read_latency", metrics::aws::READ_LATENCY, 1.0),
    ("write_latency", metrics::aws::WRITE_LATENCY, 1.0),
    ("disk_queue_depth", metrics::aws::DISK_QUEUE_DEPTH, 1.0),
    ("cpuutilization", metrics::aws::CPU_UTILIZATION_RATIO, 0.01),
    ("cpu_utilization", metrics::aws::CPU_UTILIZATION_RATIO, 0.01),
    ("burst_balance", metrics::aws::BURST_BALANCE_RATIO, 0.01),
    ("ebsbyte_balance_percent", metrics::aws::EBS_BYTE_BALANCE_RATIO, 0.01),
    ("ebsbyte_balance", metrics::aws::EBS_BYTE_BALANCE_RATIO, 0.01),
    ("ebsiobalance_percent", metrics::aws::EBS_IO_BALANCE_RATIO, 0.01),
    ("ebsiobalance", metrics::aws::EBS_IO_BALANCE_RATIO, 0.01),
];

/// Labels that identify the instance, by exporter and its settings.
const INSTANCE: &[&str] =
    &["dbinstance_identifier", "dimension_DBInstanceIdentifier", "dimension_dbinstance_identifier"];

/// CloudWatch's usual period, nanoseconds: a timestamp is its start.
const PERIOD_NS: i64 = 60_000_000_000;

/// A CloudWatch value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub metric: Metric,
    pub labels: Labels,
    pub value: f64,
    /// Middle of its period, nanoseconds since 1970; none without a timestamp.
    pub at: Option<i64>,
}

/// The classification of a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SeriesClass {
    /// Not a CloudWatch metric.
    Other,
    /// A repetition.
    Repeated,
    /// A new value.
    New(Figure),
}

/// Time, timestamp and value of the last recorded figure.
#[derive(Clone, Copy, Debug)]
struct LastFigure {
    at: i64,
    stamp_ms: Option<i64>,
    value: f64,
}

/// The last recorded figures, by metric and labels.
#[derive(Debug, Default)]
pub(super) struct CloudWatch(HashMap<(&'static str, Labels), LastFigure>);

impl CloudWatch {
    /// Classifies `series`, read at `now`. An unchanged value without a timestamp counts as new
    /// after a period.
    pub(super) fn classify(&mut self, series: &Series, now: i64) -> SeriesClass {
        let word = series.name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(MEAN));
        let named = word.and_then(|word| NAMES.iter().find(|(theirs, ..)| *theirs == word));
        let instance = INSTANCE.iter().find_map(|label| series.labels.get(label));
        let (Some(&(_, metric, factor)), Some(instance)) = (named, instance) else { return SeriesClass::Other };
        let labels = Labels::new([("db_instance", instance)]);
        let (value, stamp_ms) = (series.value * factor, series.stamp_ms);
        let last = self.0.get(&(metric.name, labels.clone()));
        let is_repeated = last.is_some_and(|last| match (last.stamp_ms, stamp_ms) {
            (Some(before), Some(stamp)) => before == stamp,
            _ => last.value == value && now - last.at < PERIOD_NS,
        });
        if is_repeated || !value.is_finite() {
            return SeriesClass::Repeated;
        }
        self.0.insert((metric.name, labels.clone()), LastFigure { at: now, stamp_ms, value });
        let at = stamp_ms.map(|ms| ms.saturating_mul(1_000_000).saturating_add(PERIOD_NS / 2));
        SeriesClass::New(Figure { metric, labels, value, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(line: &str) -> Series {
        holdup_recording::exposition::parse(line.as_bytes()).series.remove(0)
    }

    #[test]
    fn both_exporters_figures_are_cloudwatchs_once_a_period() {
        let mut known = CloudWatch::default();
        let first =
            "aws_rds_read_throughput_average{job=\"aws_rds\",dbinstance_identifier=\"db1\"} 1.5e6 1795000020000\n";
        let SeriesClass::New(figure) = known.classify(&series(first), 0) else { panic!("it is one") };
        assert_eq!((figure.metric.name, figure.value), ("aws_read_throughput_bytes_per_second", 1.5e6));
        assert_eq!((figure.at, figure.labels.get("db_instance")), (Some(1_795_000_050_000_000_000), Some("db1")));
        assert_eq!(known.classify(&series(first), 1_000_000_000), SeriesClass::Repeated);
        let next = first.replace("020000", "080000");
        assert!(matches!(known.classify(&series(&next), 61_000_000_000), SeriesClass::New(_)));

        let yace = "aws_rds_ebsbyte_balance_average{dimension_DBInstanceIdentifier=\"db1\",name=\"arn:x\"} 40\n";
        let SeriesClass::New(figure) = known.classify(&series(yace), 0) else { panic!("it is one") };
        assert_eq!((figure.metric.name, figure.value, figure.at), ("aws_ebs_byte_balance_ratio", 0.4, None));
        assert_eq!(known.classify(&series(yace), PERIOD_NS - 1), SeriesClass::Repeated);
        assert!(matches!(known.classify(&series(yace), PERIOD_NS), SeriesClass::New(_)), "steady is not gone");
        assert!(matches!(known.classify(&series(&yace.replace(" 40", " 39")), PERIOD_NS + 1), SeriesClass::New(_)));
    }

    #[test]
    fn other_cloudwatch_series_keep_their_names() {
        let mut known = CloudWatch::default();
        for line in [
            "aws_rds_read_throughput_maximum{dbinstance_identifier=\"db1\"} 1\n",
            "aws_rds_read_throughput_average{database_class=\"db.r5.large\"} 1\n",
            "aws_rds_free_storage_space_average{dbinstance_identifier=\"db1\"} 1\n",
            "http_requests_total 1\n",
        ] {
            assert_eq!(known.classify(&series(line), 0), SeriesClass::Other, "{line}");
        }
    }
}
