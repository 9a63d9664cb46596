//! Events, parameters, keys of Performance Insights, and what dashboards save.

use super::*;

const SECOND: i64 = 1_000_000_000;
/// 2026-11-22T10:00:00Z.
const TEN: i64 = 1_795_341_600 * SECOND;

fn read(files: &[(&str, &str)]) -> Figures {
    let mut aws = Aws::default();
    for (name, text) in files {
        match is_panel(text.as_bytes()) {
            true => aws.read_panel(text.as_bytes(), name).unwrap(),
            false => aws.read(text.as_bytes(), name).unwrap(),
        }
    }
    aws.finish(None).unwrap()
}

fn one<'a>(figures: &'a Figures, metric: &str, labels: &[(&str, &str)]) -> &'a Series {
    let has = |series: &&Series| {
        let is = |(name, value): &(&str, &str)| series.labels.get(*name).is_some_and(|v| v == value);
        series.metric == metric && labels.iter().all(is)
    };
    let names: Vec<_> = figures.series.iter().map(|series| (&series.metric, &series.labels)).collect();
    figures.series.iter().find(has).unwrap_or_else(|| panic!("no {metric} {labels:?} in {names:#?}"))
}

#[test]
fn keys_of_a_dimension_are_mean_load_over_the_time_of_the_answer() {
    let text = r#"{"AlignedStartTime": 1795341600.0, "AlignedEndTime": "2026-11-22T11:00:00+00:00",
      "PartitionKeys": [{"Dimensions": {"db.wait_event.name": "io/table/sql/handler"}}, {"Dimensions": {"db.wait_event.name": "CPU"}}],
      "Keys": [{"Dimensions": {"db.sql_tokenized.id": "7F", "db.sql_tokenized.statement": "SELECT * FROM parcels WHERE label = 'kept secret' AND st"},
                "Total": 12.5, "Partitions": [10.5, 2.0]},
               {"Dimensions": {"db.sql_tokenized.id": "8A", "db.sql_tokenized.statement": "COMMIT"}, "Total": 0.25}]}"#;
    let figures = read(&[("keys.json", text)]);
    let load = one(&figures, "aws_pi_db_load_by_sql_tokenized", &[("sql_tokenized_id", "7F")]);
    assert_eq!((load.points.as_slice(), load.period_ns), (&[(TEN + 1800 * SECOND, 12.5)][..], 3600 * SECOND));
    assert!(load.labels["statement"].starts_with("SELECT * FROM parcels WHERE label = ?"), "{:?}", load.labels);
    assert!(!format!("{figures:?}").contains("secret"));
    let part = one(
        &figures,
        "aws_pi_db_load_by_sql_tokenized_and_wait_event",
        &[("sql_tokenized_id", "7F"), ("wait_event", "io/table/sql/handler")],
    );
    assert_eq!(part.points[0].1, 10.5);
    // Another list of that name is not this answer.
    let mut aws = Aws::default();
    let error = aws.read(&br#"{"Keys": [{"Key": "a.txt"}]}"#[..], "x").unwrap_err();
    assert!(is_unknown(&error), "{error}");
}

#[test]
fn events_parameters_and_pending_maintenance_are_facts_of_the_instance() {
    let events = r#"{"Events": [
      {"SourceIdentifier": "orders-db", "SourceType": "db-instance", "Message": "Multi-AZ instance failover completed", "EventCategories": ["failover"], "Date": "2026-11-22T10:02:00+00:00"},
      {"SourceIdentifier": "orders-db", "SourceType": "db-instance", "Message": "Multi-AZ instance failover started.", "EventCategories": ["failover"], "Date": "2026-11-22T10:00:00+00:00"},
      {"SourceIdentifier": "orders-db", "SourceType": "db-instance", "Message": "DB instance restarted", "EventCategories": ["availability"], "Date": "2026-11-22T10:01:00+00:00"},
      {"SourceIdentifier": "orders-db", "SourceType": "db-instance", "Message": "Finished DB Instance backup", "EventCategories": ["backup"], "Date": "2026-11-22T09:00:00+00:00"}]}"#;
    let parameters = r#"{"Parameters": [
      {"ParameterName": "max_connections", "ParameterValue": "LEAST({DBInstanceClassMemory/9531392},5000)", "Source": "engine-default"},
      {"ParameterName": "work_mem", "ParameterValue": "65536", "Source": "user"},
      {"ParameterName": "zero_damaged_pages", "Source": "engine-default"},
      {"ParameterName": "wal_sync_method", "ParameterValue": "fsync", "Source": "engine-default"}]}"#;
    let pending = r#"{"PendingMaintenanceActions": [{"ResourceIdentifier": "arn:aws:rds:eu-west-1:000:db:orders-db",
      "PendingMaintenanceActionDetails": [{"Action": "system-update", "CurrentApplyDate": "2026-11-22T10:00:00Z", "Description": "New Operating System update is available"}]}]}"#;
    let figures = read(&[("events.json", events), ("parameters.json", parameters), ("pending.json", pending)]);
    let kinds: Vec<(&str, Option<&str>)> =
        figures.events.iter().map(|event| (event.kind.as_str(), event.labels.get("why"))).collect();
    let failover = ("restart", Some("failover"));
    assert_eq!(kinds, [("backup", None), ("failover_started", None), ("restart", Some("unknown")), failover]);
    assert_eq!(figures.events[1].observed_at, TEN);
    assert_eq!(figures.events[1].labels.get("db_instance"), Some("orders-db"));
    let settings: Vec<(&str, &str)> = figures.settings.iter().map(|s| (s.name.as_str(), s.value.as_str())).collect();
    assert_eq!(settings[1], ("max_connections", "LEAST({DBInstanceClassMemory/9531392},5000)"));
    assert_eq!(settings[2], ("parameter.work_mem", "65536"));
    assert_eq!(settings[0].0, "maintenance.orders-db.system-update");
    assert!(settings[0].1.contains("due 2026-11-22T10:00:00Z"), "{settings:?}");
    assert_eq!(settings.len(), 3, "what is as the engine comes is left out: {settings:?}");
}

#[test]
fn csv_of_cloudwatchs_console_has_any_header_lines() {
    let plain = "Timestamp,CPUUtilization,FreeableMemory\n2026/11/22 10:00:00,25,1000\n2026/11/22 10:01:00,,2000\n";
    let labelled = "Id,m1,m2\nLabel,CPUUtilization,FreeableMemory\nStatistic,Average,Average\nPeriod,60,60\n\
        2026-11-22T10:00:00Z,25,1000\n2026-11-22T10:01:00Z,,2000\n";
    let quoted = "\"Full label\",\"AWS/RDS orders-db CPUUtilization Average\",\"AWS/RDS orders-db FreeableMemory Average\"\r\n\
        \"2026-11-22 10:00:00\",\"25\",\"1000\"\r\n\"2026-11-22 10:01:00\",\"\",\"2000\"\r\n";
    for text in [plain, labelled, quoted] {
        let figures = read(&[("metrics.csv", text)]);
        let cpu = one(&figures, "aws_cpu_utilization_ratio", &[]);
        assert_eq!(cpu.points, [(TEN + 30 * SECOND, 0.25)], "a gap is not a zero: {text}");
        let memory = one(&figures, "aws_freeable_memory_bytes", &[]);
        assert_eq!((memory.points.len(), memory.period_ns, memory.points[1].1), (2, 60 * SECOND, 2000.0), "{text}");
    }
    let named = read(&[("metrics.csv", quoted)]);
    assert_eq!(named.series[0].labels["db_instance"], "orders-db");
    assert!(named.notes.iter().any(|note| note.contains("no time zone")), "{:?}", named.notes);
}

#[test]
fn panels_of_grafana_in_all_their_shapes() {
    let joined = "\"Time\",\"{__name__=\"\"aws_rds_cpuutilization_average\"\", dbinstance_identifier=\"\"orders-db\"\"}\",\"Nobody knows\"\n\
        1795341600000,25.3%,1\n1795341660000,30.0%,2\n";
    let rows = "\"Series\";\"Time\";\"Value\"\r\n\"CPUUtilization_Average\";\"2026-11-22T10:00:00+00:00\";25.3\r\n\
        \"CPUUtilization_Average\";\"2026-11-22T10:01:00+00:00\";null\r\n\"CPUUtilization_Average\";\"2026-11-22T10:02:00+00:00\";30\r\n\
        \"Nobody knows\";\"2026-11-22T10:00:00+00:00\";1\r\n";
    let frames = r#"[{"schema": {"refId": "A", "name": "CPUUtilization", "fields": [{"name": "Time", "type": "time"},
        {"name": "Value", "type": "number", "labels": {"DBInstanceIdentifier": "orders-db"}, "config": {"unit": "percent"}}]},
        "data": {"values": [[1795341600000, 1795341660000, 1795341720000], [25.3, null, 30]]}},
        {"fields": [{"name": "time", "type": "time", "values": [1795341600000]}, {"name": "Nobody knows", "type": "number", "values": [1]}]}]"#;
    for (name, text) in [("panel.csv", joined), ("rows.csv", rows), ("panel.json", frames)] {
        let figures = read(&[(name, text)]);
        let cpu = one(&figures, "aws_cpu_utilization_ratio", &[]);
        assert!((cpu.points[0].1 - 0.253).abs() < 1e-9 && cpu.points.len() == 2, "{name}: {:?}", cpu.points);
        assert_eq!(cpu.points[0].0, TEN + 30 * SECOND, "{name}");
        one(&figures, "aws_nobody_knows", &[]);
        assert!(figures.notes.iter().any(|note| note.contains("Nobody knows names no known metric")), "{name}");
        if name != "rows.csv" {
            assert_eq!(cpu.labels["db_instance"], "orders-db", "{name}");
        }
    }
}

#[test]
fn other_documents_are_not_taken_for_a_panel() {
    for text in [
        "id,name\n1,x\n",
        "time,method,path\n2026-11-22T10:00:00Z,GET,/a\n",
        "2026-11-22T10:00:00Z,1\n2026-11-22T10:01:00Z,2\n",
        "{\"MetricDataResults\": []}",
        "traceID,spanID,start,duration\na,b,1795341600000,3\n",
        "",
        "Time\n",
    ] {
        assert!(!is_panel(text.as_bytes()), "{text}");
    }
    let mut aws = Aws::default();
    assert!(aws.read_panel(b"Time,a\n", "x.csv").unwrap_err().message.contains("no series with times"));
    assert!(aws.read_panel(b"{", "x.json").unwrap_err().message.contains("not the JSON of a panel"));
}
