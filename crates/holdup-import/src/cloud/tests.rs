//! Figures of Cloud SQL and of Azure: the same names, units and limits as Amazon's.

use super::*;

/// 2026-11-26 10:00:00 UTC.
const TEN: i64 = 1_795_687_200_000_000_000;
const MINUTE: i64 = 60_000_000_000;

fn value(figures: &Figures, metric: &str) -> Option<(i64, f64)> {
    figures.series.iter().find(|series| series.metric == metric)?.points.first().copied()
}

fn setting<'a>(figures: &'a Figures, name: &str) -> Option<&'a str> {
    figures.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

fn google(name: &str, kind: &str, value: &str) -> String {
    format!(
        r#"{{"metric": {{"type": "cloudsql.googleapis.com/database/{name}"}}, "metricKind": "{kind}",
        "points": [{{"interval": {{"endTime": "2026-11-26T10:01:00Z", "startTime": "2026-11-26T10:00:00Z"}}, "value": {value}}}],
        "resource": {{"labels": {{"database_id": "shop-project:orders-db", "project_id": "shop-project"}}, "type": "cloudsql_database"}}, "valueType": "INT64"}}"#
    )
}

#[test]
fn cloud_sqls_figures_have_amazons_names() {
    let series = [
        google("cpu/utilization", "GAUGE", r#"{"doubleValue": 0.12}"#),
        google("disk/read_ops_count", "DELTA", r#"{"int64Value": "6000"}"#),
        google("disk/write_ops_count", "DELTA", r#"{"int64Value": "600"}"#),
        google("memory/quota", "GAUGE", r#"{"int64Value": "8000000000"}"#),
        google("memory/total_usage", "GAUGE", r#"{"int64Value": "5000000000"}"#),
        google("disk/quota", "GAUGE", r#"{"int64Value": "100000000000"}"#),
        google("disk/bytes_used", "GAUGE", r#"{"int64Value": "40000000000"}"#),
        google("postgresql/num_backends", "GAUGE", r#"{"int64Value": "30"}"#),
        google("postgresql/num_backends", "GAUGE", r#"{"int64Value": "12"}"#),
        google("postgresql/vacuum/oldest_transaction_age", "GAUGE", r#"{"int64Value": "12"}"#),
    ];
    for text in [format!("[{}]", series.join(",")), format!("{{\"timeSeries\": [{}]}}", series.join(","))] {
        assert!(is_one(&text));
        let figures = read(text.as_bytes(), "sql.json").unwrap();
        assert_eq!(value(&figures, "aws_cpu_utilization_ratio"), Some((TEN + MINUTE / 2, 0.12)));
        assert_eq!(value(&figures, "aws_read_iops").map(|(_, v)| v), Some(100.0));
        assert_eq!(value(&figures, "aws_write_iops").map(|(_, v)| v), Some(10.0));
        assert_eq!(value(&figures, "aws_freeable_memory_bytes").map(|(_, v)| v), Some(3e9));
        assert_eq!(value(&figures, "aws_free_storage_space_bytes").map(|(_, v)| v), Some(6e10));
        assert_eq!(value(&figures, "aws_database_connections").map(|(_, v)| v), Some(42.0), "of all its databases");
        assert_eq!(setting(&figures, "volume.size_bytes"), Some("100000000000"));
        let first = &figures.series[0];
        assert_eq!((first.source.as_str(), first.labels["db_instance"].as_str()), ("cloud_sql:sql.json", "orders-db"));
        assert_eq!(first.period_ns, MINUTE);
        assert!(figures.notes[0].contains("oldest_transaction_age"), "{:?}", figures.notes);
    }
}

fn azure(name: &str, data: &str) -> String {
    format!(
        r#"{{"id": "/subscriptions/1/resourceGroups/shop/providers/Microsoft.DBforPostgreSQL/flexibleServers/orders-db/providers/Microsoft.Insights/metrics/{name}",
        "name": {{"localizedValue": "x", "value": "{name}"}}, "timeseries": [{{"data": [{{{data}, "timeStamp": "2026-11-26T10:00:00Z"}}, {{"timeStamp": "2026-11-26T10:01:00Z"}}], "metadatavalues": []}}], "unit": "Percent"}}"#
    )
}

#[test]
fn azures_percentages_tell_the_limit() {
    let metrics = [
        azure("cpu_percent", r#""average": 12.5"#),
        azure("read_iops", r#""average": 4000.0"#),
        azure("write_iops", r#""average": 800.0"#),
        azure("disk_iops_consumed_percentage", r#""average": 96.0"#),
        azure("read_throughput", r#""average": 100000000.0"#),
        azure("disk_queue_depth", r#""average": 31.0"#),
        azure("network_bytes_ingress", r#""total": 6000000.0"#),
        azure("storage_used", r#""average": 30.0"#),
        azure("storage_limit", r#""average": 100.0"#),
    ];
    let text = format!(r#"{{"cost": 0, "interval": "PT1M", "value": [{}]}}"#, metrics.join(","));
    assert!(is_one(&text));
    let figures = read(text.as_bytes(), "az.json").unwrap();
    assert_eq!(value(&figures, "aws_cpu_utilization_ratio"), Some((TEN + MINUTE / 2, 0.125)));
    assert_eq!(value(&figures, "aws_network_receive_throughput_bytes_per_second").map(|(_, v)| v), Some(100_000.0));
    assert_eq!(value(&figures, "aws_disk_queue_depth").map(|(_, v)| v), Some(31.0));
    assert_eq!(value(&figures, "aws_free_storage_space_bytes").map(|(_, v)| v), Some(70.0));
    assert_eq!(setting(&figures, "volume.iops"), Some("5000"));
    assert_eq!(figures.series[0].labels["db_instance"], "orders-db");
    // A minute without a value is a gap.
    assert!(figures.series.iter().all(|series| series.points.len() == 1));
}

#[test]
fn unusable_figures_give_the_reason() {
    let why = |text: &str| read(text.as_bytes(), "x.json").unwrap_err().to_string();
    assert!(why("{").contains("--output json"));
    assert!(why(r#"{"value": [], "localizedValue": 1, "timeseries": 1}"#).contains("no points"));
    let no_length =
        google("disk/read_ops_count", "DELTA", r#"{"int64Value": "6000"}"#).replace("10:00:00Z", "10:01:00Z");
    assert!(why(&format!("[{no_length}]")).contains("no points"));
    let only = azure("backup_storage_used", r#""average": 1.0"#);
    assert!(why(&format!(r#"{{"value": [{only}]}}"#)).contains("backup_storage_used"));
}
