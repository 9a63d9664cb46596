//! Files in the forms that Amazon documents, written here.

use super::*;

fn read(files: &[(&str, &str)]) -> Result<Figures, ImportError> {
    read_as(files, None)
}

fn read_as(files: &[(&str, &str)], db_instance: Option<&str>) -> Result<Figures, ImportError> {
    let mut aws = Aws::default();
    for (name, text) in files {
        aws.read(text.as_bytes(), name)?;
    }
    aws.finish(db_instance)
}

fn one<'a>(figures: &'a Figures, metric: &str, labels: &[(&str, &str)]) -> &'a Series {
    let has = |series: &&Series| {
        series.metric == metric
            && labels.iter().all(|(name, value)| series.labels.get(*name).is_some_and(|v| v == value))
    };
    let mut found = figures.series.iter().filter(has);
    let series = found.next().unwrap_or_else(|| panic!("no {metric} {labels:?} in {:#?}", names(figures)));
    assert!(found.next().is_none(), "several {metric} {labels:?}");
    series
}

fn names(figures: &Figures) -> Vec<(&str, &BTreeMap<String, String>)> {
    figures.series.iter().map(|series| (series.metric.as_str(), &series.labels)).collect()
}

const SECOND: i64 = 1_000_000_000;
/// 2026-11-22T10:00:00Z.
const TEN: i64 = 1_795_341_600 * SECOND;

const DATA: &str = r#"{
    "MetricDataResults": [
        {
            "Id": "m1",
            "Label": "ReadThroughput",
            "Timestamps": ["2026-11-22T10:03:00+00:00", "2026-11-22T11:00:00+01:00", "2026-11-22T10:01:00Z"],
            "Values": [3.5e8, 100000000.0, 2],
            "StatusCode": "Complete"
        },
        {"Id": "read_iops", "Label": "Reads a second", "Timestamps": [1795341600, 1795341660.0], "Values": [10, null], "StatusCode": "Complete"},
        {"Id": "m3", "Label": "AWS/RDS orders-db EBSByteBalance% Minimum", "Timestamps": ["2026-11-22T10:00:00Z"], "Values": [99], "StatusCode": "Complete"}
    ],
    "Messages": []
}"#;

#[test]
fn metric_data_by_label_and_id_in_the_order_of_time() {
    let figures = read(&[("cpu.json", DATA)]).unwrap();
    let read = one(&figures, "aws_read_throughput_bytes_per_second", &[("db_instance", "orders-db")]);
    assert_eq!((read.source.as_str(), read.period_ns), ("cloudwatch:cpu.json", 60 * SECOND));
    // The point at 10:02 is missing: it is no zero. A stamp is the beginning of its period, ours the middle.
    let at = |minute: i64| TEN + minute * 60 * SECOND + 30 * SECOND;
    assert_eq!(read.points, [(at(0), 1e8), (at(1), 2.0), (at(3), 3.5e8)]);
    assert_eq!(one(&figures, "aws_read_iops", &[]).points, [(at(0), 10.0)], "null is a gap");
    let balance = one(&figures, "aws_ebs_byte_balance_ratio", &[("stat", "Minimum")]);
    assert_eq!(balance.points, [(at(0), 0.99)], "a lone point has the period of its neighbours");
    assert!(!figures.is_partial && figures.notes.is_empty(), "{:?}", figures.notes);
}

#[test]
fn queries_say_what_results_do_not() {
    let queries = r#"[{"Id": "m1", "MetricStat": {"Metric": {"Namespace": "AWS/RDS", "MetricName": "WriteLatency",
        "Dimensions": [{"Name": "DBInstanceIdentifier", "Value": "other"}]}, "Period": 300, "Stat": "p99"}},
        {"Id": "e1", "Expression": "m1 * 2", "Label": "Twice"}]"#;
    for order in [[("q.json", queries), ("d.json", DATA)], [("d.json", DATA), ("q.json", queries)]] {
        let figures = read(&order).unwrap();
        let latency = one(&figures, "aws_write_latency_seconds", &[("db_instance", "other"), ("stat", "p99")]);
        assert_eq!((latency.period_ns, latency.points.len()), (300 * SECOND, 3));
        assert_eq!(latency.points[0], (TEN + 150 * SECOND, 1e8));
    }
    let whole = format!(r#"{{"MetricDataQueries": {queries}, "StartTime": "2026-11-22T10:00:00Z"}}"#);
    one(&read(&[("d", DATA), ("q", &whole)]).unwrap(), "aws_write_latency_seconds", &[]);
}

#[test]
fn metric_statistics_are_a_series_each_and_units_are_converted() {
    let cpu = r#"{"Label": "CPUUtilization", "Datapoints": [
        {"Timestamp": "2026-11-22T10:05:00+00:00", "Average": 50.0, "Maximum": 80.0, "SampleCount": 5.0, "Unit": "Percent"},
        {"Timestamp": "2026-11-22T10:00:00+00:00", "Average": 25.0, "Maximum": 75.0, "SampleCount": 5.0, "Unit": "Percent",
         "ExtendedStatistics": {"p95": 60.0}}]}"#;
    // Keys in another order, and a unit that is not the usual one.
    let lag = r#"{"Datapoints": [{"Timestamp": 1795341600.0, "Sum": 1500.0, "Unit": "Milliseconds"}], "Label": "ReplicaLag"}"#;
    let figures = read_as(&[("cpu.json", cpu), ("lag.json", lag)], Some("db-1")).unwrap();
    let average =
        figures.series.iter().find(|s| s.metric == "aws_cpu_utilization_ratio" && !s.labels.contains_key("stat"));
    let average = average.unwrap();
    assert_eq!(average.points, [(TEN + 150 * SECOND, 0.25), (TEN + 450 * SECOND, 0.5)]);
    assert_eq!((average.period_ns, average.labels["db_instance"].as_str()), (300 * SECOND, "db-1"));
    assert_eq!(one(&figures, "aws_cpu_utilization_ratio", &[("stat", "Maximum")]).points[1].1, 0.8);
    assert_eq!(one(&figures, "aws_cpu_utilization_ratio", &[("stat", "p95")]).points, [(TEN + 150 * SECOND, 0.6)]);
    assert_eq!(one(&figures, "aws_cpu_utilization_samples", &[]).points[0].1, 5.0);
    assert_eq!(one(&figures, "aws_replica_lag_seconds", &[("stat", "Sum")]).points, [(TEN, 1.5)]);
    // What no number can hold in our unit is no point.
    let much = r#"{"Label": "SwapUsage", "Datapoints": [{"Timestamp": 1795341600, "Average": 1e305, "Unit": "Terabytes"},
        {"Timestamp": 1795341660, "Average": 1, "Unit": "Terabytes"}]}"#;
    let figures = read(&[("swap.json", much)]).unwrap();
    assert_eq!(one(&figures, "aws_swap_usage_bytes", &[]).points, [(TEN + 90 * SECOND, 1024_f64.powi(4))]);
}

const OS: &str = r#"{"engine": "Postgres", "instanceID": "orders-db", "instanceResourceID": "db-ABC", "timestamp": "2026-11-22T10:00:00Z",
    "version": 1, "uptime": "1 day", "numVCPUs": 8,
    "cpuUtilization": {"guest": 0, "irq": 0.5, "system": 2, "wait": 40, "idle": 47.5, "user": 10, "total": 52.5, "steal": 0, "nice": 0},
    "loadAverageMinute": {"one": 9, "five": 8, "fifteen": 7},
    "memory": {"total": 64000, "free": 1000, "dirty": 10, "hugePagesFree": 3, "hugePagesSize": 2048},
    "tasks": {"total": 300, "running": 2, "blocked": 40}, "swap": {"total": 0, "free": 0, "cached": 0, "in": 0, "out": 0},
    "network": [{"interface": "eth0", "rx": 1000.5, "tx": 2000}],
    "diskIO": [{"device": "rdsdev", "readKbPS": 100, "writeKbPS": 200, "readIOsPS": 10, "writeIOsPS": 20, "await": 95,
        "avgQueueLen": 70.5, "util": 100, "avgReqSz": 16, "tps": 30, "readKb": 6000, "writeKb": 12000, "rrqmPS": 0, "wrqmPS": 1}],
    "fileSys": [{"name": "rdsfilesys", "mountPoint": "/rdsdbdata", "used": 500, "total": 1000, "usedPercent": 50, "usedFiles": 7, "maxFiles": 70, "usedFilePercent": 10}],
    "processList": [{"id": 7, "tgid": 7, "parentID": 1, "name": "postgres: app orders 10.0.0.7(50412) SELECT", "cpuUsedPc": 3, "rss": 100},
        {"id": 8, "tgid": 8, "parentID": 1, "name": "postgres: app orders 10.0.0.8(50413) idle", "cpuUsedPc": 1, "rss": 50},
        {"id": 9, "tgid": 9, "parentID": 1, "name": "postgres: autovacuum worker orders", "cpuUsedPc": 12.5, "rss": 10}]}"#;

#[test]
fn enhanced_monitoring_alone_in_lines_and_in_log_events() {
    let later = OS.replace("10:00:00Z", "10:01:00Z").replace('\n', " ");
    let events = serde_json::json!({
        "events": [
            {"timestamp": 1_795_341_600_000_i64, "message": OS, "ingestionTime": 1_795_341_601_000_i64},
            {"timestamp": 1_795_341_660_000_i64, "message": later, "ingestionTime": 1_795_341_661_000_i64},
        ],
        "nextForwardToken": "f/1", "nextBackwardToken": "b/1",
    });
    for text in [format!("{OS}\n{later}\n"), format!("[{OS}, {later}]"), events.to_string()] {
        let figures = read(&[("os.json", &text)]).unwrap();
        assert!(!figures.is_partial, "a way to the next events is no sign that there are some");
        let figure = |metric: &str, labels: &[(&str, &str)]| one(&figures, metric, labels).points[0].1;
        assert_eq!(
            figure("aws_os_cpu_utilization_ratio", &[("cpu_mode", "iowait"), ("db_instance", "orders-db")]),
            0.4
        );
        assert_eq!(figure("aws_os_cpu_busy_ratio", &[]), 0.525);
        assert_eq!(figure("aws_os_load_average", &[("minutes", "5")]), 8.0);
        assert_eq!(figure("aws_os_memory_total_bytes", &[]), 64_000.0 * 1024.0);
        assert_eq!(figure("aws_os_memory_huge_pages_free", &[]), 3.0);
        assert_eq!(figure("aws_os_disk_write_bytes_per_second", &[("device", "rdsdev")]), 200.0 * 1024.0);
        assert_eq!(figure("aws_os_disk_wait_seconds", &[]), 0.095);
        assert_eq!(figure("aws_os_disk_queue_depth", &[]), 70.5);
        assert_eq!(figure("aws_os_disk_io_time_ratio", &[]), 1.0);
        assert_eq!(figure("aws_os_network_receive_bytes_per_second", &[("interface", "eth0")]), 1000.5);
        assert_eq!(figure("aws_os_filesystem_used_ratio", &[("mountpoint", "/rdsdbdata")]), 0.5);
        assert_eq!(figure("aws_os_tasks", &[("state", "blocked")]), 40.0);
        assert_eq!(figure("aws_os_process_cpu_ratio", &[("process", "postgres: autovacuum worker")]), 0.125);
        assert_eq!(figure("aws_os_process_count", &[("process", "postgres: backend")]), 2.0);
        assert_eq!(figure("aws_os_process_rss_bytes", &[("process", "postgres: backend")]), 150.0 * 1024.0);
        assert!(!format!("{figures:?}").contains("10.0.0"), "addresses of clients are nobody's business");
        let load = one(&figures, "aws_os_load_average", &[("minutes", "1")]);
        // A sample is of the time before it.
        assert_eq!((load.period_ns, load.points[0].0), (60 * SECOND, TEN - 30 * SECOND));
        assert_eq!(load.source, "enhanced_monitoring:os.json");
    }
}

const INSIGHTS: &str = r#"{"AlignedEndTime": 1795341900.0, "AlignedStartTime": 1795341600.0, "MetricList": [
    {"Key": {"Metric": "db.load.avg"}, "DataPoints": [{"Timestamp": 1795341660.0, "Value": 70.5}, {"Timestamp": 1795341720.0}, {"Timestamp": 1795341780.0, "Value": 4}]},
    {"Key": {"Metric": "db.load.avg", "Dimensions": {"db.wait_event.name": "DataFileRead", "db.wait_event.type": "IO"}},
     "DataPoints": [{"Timestamp": "2026-11-22T10:01:00+00:00", "Value": 60}]},
    {"Key": {"Metric": "db.load.max", "Dimensions": {"db.sql.id": "A1", "db.sql.statement": "SELECT 'secret'"}},
     "DataPoints": [{"Timestamp": 1795341660.0, "Value": 2}]}],
    "Identifier": "db-ABC"}"#;

#[test]
fn performance_insights_by_wait_event() {
    let described = r#"{"DBInstances": [{"DBInstanceIdentifier": "orders-db", "DbiResourceId": "db-ABC", "DBInstanceClass": "db.r5.2xlarge"}]}"#;
    let figures = read(&[("pi.json", INSIGHTS), ("db.json", described)]).unwrap();
    let total = one(&figures, "aws_pi_db_load", &[("db_instance", "orders-db")]);
    assert_eq!(total.points, [(TEN + 30 * SECOND, 70.5), (TEN + 150 * SECOND, 4.0)], "no value is no point");
    let read_waits =
        one(&figures, "aws_pi_db_load_by_wait_event", &[("wait_event", "DataFileRead"), ("wait_event_type", "IO")]);
    assert_eq!(read_waits.points[0].1, 60.0);
    one(&figures, "aws_pi_db_load_by_sql", &[("sql_id", "A1"), ("stat", "max")]);
    assert!(!format!("{figures:?}").contains("secret"), "statements have literals");
    // Its own name for the instance is what there is without a description.
    let figures = read(&[("pi.json", INSIGHTS)]).unwrap();
    assert_eq!(figures.series[0].labels["db_resource"], "db-ABC");
    assert!(figures.notes[0].contains("--db-instance NAME"), "{:?}", figures.notes);
}

#[test]
fn settings_of_the_instance_that_is_measured() {
    let instances = r#"{"DBInstances": [
        {"DBInstanceIdentifier": "orders-db", "DBInstanceClass": "db.r5.2xlarge", "Engine": "postgres", "EngineVersion": "14.7", "MasterUsername": "boss",
         "StorageType": "io1", "Iops": 30000, "AllocatedStorage": 2000, "StorageThroughput": 0, "MultiAZ": true, "Endpoint": {"Address": "x.rds"}},
        {"DBInstanceIdentifier": "other-db", "DBInstanceClass": "db.m5.large", "StorageType": "gp3", "StorageThroughput": 500}]}"#;
    let types = r#"{"InstanceTypes": [
        {"InstanceType": "r5.2xlarge", "VCpuInfo": {"DefaultVCpus": 8}, "MemoryInfo": {"SizeInMiB": 65536}, "EbsInfo": {"EbsOptimizedInfo":
         {"BaselineBandwidthInMbps": 2300, "BaselineThroughputInMBps": 287.5, "BaselineIops": 12000, "MaximumBandwidthInMbps": 4750,
          "MaximumThroughputInMBps": 593.75, "MaximumIops": 18750}}},
        {"InstanceType": "x1.32xlarge"}]}"#;
    let figures = read(&[("data.json", DATA), ("db.json", instances), ("types.json", types)]).unwrap();
    let setting = |source: &str, name: &str| {
        figures.settings.iter().find(|s| s.source == source && s.name == name).map(|s| s.value.as_str())
    };
    for (name, value) in [
        ("instance.class", "db.r5.2xlarge"),
        ("instance.name", "orders-db"),
        ("engine", "postgres"),
        ("engine_version", "14.7"),
        ("volume.type", "io1"),
        ("volume.iops", "30000"),
        ("volume.size_bytes", "2147483648000"),
        ("instance.ebs_baseline_throughput_bytes_per_second", "287500000"),
        ("instance.ebs_burst_iops", "18750"),
        ("instance.memory_bytes", "68719476736"),
    ] {
        assert_eq!(setting("aws", name), Some(value), "{name}");
    }
    assert_eq!(setting("aws", "volume.throughput_bytes_per_second"), None, "0 is: not provisioned");
    assert_eq!(setting("aws:other-db", "volume.throughput_bytes_per_second"), Some("524288000"));
    assert!(!format!("{:?}", figures.settings).contains("boss"));
    assert!(figures.notes.iter().any(|note| note.contains("1 instance types")), "{:?}", figures.notes);
    let volumes =
        r#"{"Volumes": [{"VolumeId": "vol-1", "VolumeType": "gp3", "Size": 100, "Iops": 3000, "Throughput": 125}]}"#;
    let figures = read(&[
        ("v.json", volumes),
        (
            "t.json",
            &types.replace(
                r#",
        {"InstanceType": "x1.32xlarge"}"#,
                "",
            ),
        ),
    ])
    .unwrap();
    assert!(
        figures
            .settings
            .iter()
            .any(|s| s.source == "aws" && s.name == "volume.throughput_bytes_per_second" && s.value == "131072000")
    );
    assert!(
        figures.settings.iter().any(|s| s.source == "aws" && s.name == "instance.class" && s.value == "r5.2xlarge")
    );
}

#[test]
fn pages_are_put_together_and_a_missing_one_is_said() {
    let page = |minute: u32, value: f64, token: &str| {
        format!(
            r#"{{"MetricDataResults": [{{"Id": "m1", "Label": "WriteIOPS", "Timestamps": ["2026-11-22T10:{minute:02}:00Z", "2026-11-22T10:09:00Z"], "Values": [{value}, 9], "StatusCode": "Complete"}}]{token}}}"#
        )
    };
    let figures = read(&[("1.json", &page(1, 1.0, r#", "NextToken": "abc""#)), ("2.json", &page(0, 2.0, ""))]).unwrap();
    let writes = one(&figures, "aws_write_iops", &[]);
    assert_eq!(writes.points.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [2.0, 1.0, 9.0]);
    assert_eq!(writes.source, "cloudwatch:1.json", "one series, whichever file a point is from");
    assert!(figures.is_partial && figures.notes[0].starts_with("1.json: it is one page"), "{:?}", figures.notes);
    let partial = DATA.replacen("Complete", "PartialData", 1);
    assert!(read(&[("x", &partial)]).unwrap().notes[0].contains("PartialData"));
    let clash = [("1", page(1, 1.0, "")), ("2", page(1, 7.0, ""))];
    let figures = read(&[(clash[0].0, &clash[0].1), (clash[1].0, &clash[1].1)]).unwrap();
    assert_eq!(one(&figures, "aws_write_iops", &[]).points[0].1, 1.0);
    assert!(figures.notes.iter().any(|note| note.contains("occur twice")), "{:?}", figures.notes);
}

#[test]
fn mistakes_are_said_with_their_place_and_a_way_out() {
    let uneven = DATA.replace("100000000.0, 2]", "100000000.0]");
    let cases: [(&str, usize, &str); 11] = [
        (&uneven, 9, "result m1 (ReadThroughput) has 3 Timestamps and 2 Values"),
        ("{\n \"a\": 1}", 2, "its keys: a; expected: MetricDataResults (aws cloudwatch get-metric-data)"),
        ("{}", 1, "its keys: none"),
        ("", 0, "the file is empty"),
        ("{\"MetricDataResults\":\n [", 2, "this is not the JSON that aws prints: EOF"),
        ("{\"MetricDataResults\": []}", 0, "it contains no point"),
        ("{\"Datapoints\": [{\"Timestamp\": \"yesterday\", \"Average\": 1}], \"Label\": \"x\"}", 1, "yesterday"),
        ("{\"Datapoints\": [{\"Timestamp\": 1795341600, \"Average\": 1}]}", 1, "without a Label"),
        ("{\"events\": [{\"message\": \"GET / 200\"}]}", 1, "is the log group RDSOSMetrics?"),
        ("7", 1, "expected keys: MetricDataResults"),
        ("{\"MetricList\": [{\"DataPoints\": []}]}", 1, "without Key.Metric"),
    ];
    for (text, line, message) in cases {
        let error = read(&[("f.json", text)]).unwrap_err();
        assert!(error.message.contains(message), "{text}: {error}");
        assert_eq!((error.line, error.file.as_str()), (line, "f.json"), "{text}: {error}");
    }
}

#[test]
fn bombs_do_not_go_off() {
    let deep = "[".repeat(100_000);
    assert!(read(&[("f", &deep)]).unwrap_err().message.contains("deeper than"));
    let deep = format!("{{\"x\": {}", "[".repeat(100_000));
    assert!(read(&[("f", &deep)]).unwrap_err().message.contains("deeper than"));
    let long = format!("{{\"{}\": 1}}", "x".repeat(5 << 20));
    assert!(read(&[("f", &long)]).unwrap_err().message.contains("a text is longer"));
    let wide = format!("{{\"cpuUtilization\": [{}0]}}", "0,".repeat(1_000_000));
    assert!(read(&[("f", &wide)]).unwrap_err().message.contains("one element is larger"));
    let mut many = String::from("{\"MetricDataResults\": [");
    for n in 0..MOST_SERIES + 1 {
        many += &format!("{{\"Id\": \"m{n}\", \"Label\": \"x\", \"Timestamps\": [], \"Values\": []}},");
    }
    assert!(read(&[("f", &many)]).unwrap_err().message.contains("more than 20000 series"));
}

#[test]
fn figures_without_an_instance_belong_to_one_unnamed() {
    let figures = read(&[("d", &DATA.replace("orders-db ", ""))]).unwrap();
    assert!(figures.series.iter().all(|series| series.labels["db_instance"] == "unnamed"), "{:?}", names(&figures));
    assert!(figures.notes[0].contains("instance of 3 series") && figures.notes[0].contains("--db-instance NAME"));
}

#[test]
fn unknown_metrics_are_named_by_rule_with_a_note() {
    let text = r#"{"MetricDataResults": [{"Id": "e1", "Label": "Total work done", "Timestamps": [1795341600], "Values": [1], "StatusCode": "Complete"}]}"#;
    let figures = read(&[("f", text)]).unwrap();
    assert_eq!(figures.series[0].metric, "aws_total_work_done");
    assert!(figures.notes.iter().any(|note| note.contains("names no known metric")), "{:?}", figures.notes);
    // A mark of UTF-8 at the beginning, as Windows' shell writes it.
    assert!(read(&[("f", &format!("\u{feff}{text}"))]).is_ok());
}
