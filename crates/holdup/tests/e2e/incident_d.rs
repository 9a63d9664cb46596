//! The ceiling nobody watched: the incident's figures as `aws cloudwatch get-metric-data` prints them, imported and judged. Reads
//! and writes are ragged, their sum stands at 443 and then at 213 MB/s, and operations never come near what is provisioned.

use std::f64::consts::TAU;

use serde_json::{Value, json};

use crate::program::{finish, holdup};

/// Minutes: quiet, with a burst, at the baseline.
const QUIET: usize = 180;
const BURST: usize = 180;
const BASELINE: usize = 240;

/// 2026-11-22T00:00:00Z, seconds.
const START: i64 = 1_795_305_600;

/// Metric and its value by the minute.
type Metric = (&'static str, fn(usize) -> f64);

fn wave(minute: usize, period: f64) -> f64 {
    (TAU * minute as f64 / period).sin()
}

/// Bytes a second, reads and writes together, a per cent off as a minute's mean is.
fn moved(minute: usize) -> f64 {
    let level = match minute {
        _ if minute < QUIET => 90e6 * (1.0 + 0.4 * wave(minute, 57.0)),
        _ if minute < QUIET + BURST => 443e6,
        _ => 213e6,
    };
    level * (1.0 + 0.01 * wave(minute, 3.7))
}

fn read_share(minute: usize) -> f64 {
    0.5 + 0.3 * wave(minute, 20.3) + 0.1 * wave(minute, 2.9)
}

fn operations(minute: usize) -> f64 {
    (if minute < QUIET { 6_000.0 } else { 15_000.0 }) * (1.0 + 0.25 * wave(minute, 11.3))
}

const METRICS: [Metric; 8] = [
    ("ReadThroughput", |m| moved(m) * read_share(m)),
    ("WriteThroughput", |m| moved(m) * (1.0 - read_share(m))),
    ("ReadIOPS", |m| operations(m) * read_share(m)),
    ("WriteIOPS", |m| operations(m) * (1.0 - read_share(m))),
    ("DiskQueueDepth", |m| if m < QUIET { 0.6 } else { 75.0 + 25.0 * wave(m, 7.1) }),
    ("ReadLatency", |m| if m < QUIET { 0.001 } else { 0.005 }),
    ("WriteLatency", |m| if m < QUIET { 0.015 } else { 0.1 }),
    ("CPUUtilization", |m| 48.0 + 4.0 * wave(m, 31.0)),
];

/// What the command prints; every 41st minute of a metric is missing, each metric's at another time.
fn figures() -> Value {
    let result = |(i, (name, value)): (usize, &Metric)| {
        let minutes: Vec<usize> = (0..QUIET + BURST + BASELINE).filter(|m| (m + 5 * i) % 41 != 0).collect();
        let at = |m: &usize| json!(START + 60 * *m as i64);
        json!({
            "Id": format!("m{i}"), "Label": name, "StatusCode": "Complete",
            "Timestamps": minutes.iter().map(at).collect::<Vec<_>>(),
            "Values": minutes.iter().map(|m| value(*m)).collect::<Vec<_>>(),
        })
    };
    json!({"MetricDataResults": METRICS.iter().enumerate().map(result).collect::<Vec<_>>()})
}

#[test]
fn the_ceiling_is_named_with_its_burst_and_iops_are_cleared() {
    let dir = tempfile::tempdir().unwrap();
    let instance = json!({"DBInstances": [{
        "DBInstanceIdentifier": "search", "DBInstanceClass": "db.r5.2xlarge", "Engine": "postgres",
        "EngineVersion": "13.4", "StorageType": "io1", "Iops": 30_000, "AllocatedStorage": 2_000,
    }]});
    for (name, file) in [("data.json", figures()), ("db.json", instance)] {
        std::fs::write(dir.path().join(name), file.to_string()).unwrap();
    }
    let done = finish(holdup(["import", "data.json", "db.json", "-o", "d"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let done = finish(holdup(["diagnose", "d", "--json"]).current_dir(dir.path()), 60);
    let verdict = done.json();
    assert_eq!(
        (&verdict["verdict"], &verdict["culprit"]),
        (&"found".into(), &"throughput_ceiling".into()),
        "{verdict:#}"
    );

    let found = &verdict["findings"][0];
    let level: f64 = found["evidence"][0]["observed"].as_str().unwrap().trim_end_matches(" MB/s").parse().unwrap();
    assert!((level - 213.0).abs() <= 0.03 * 213.0, "{level}");
    let burst = &found["evidence"][1];
    assert!(burst["text"].as_str().unwrap().contains("443 MB/s"), "{burst:#}");
    // Within two samples of the minutes in which it began and ended; the recording begins with the first sample.
    for (bound, minute) in [("from_s", QUIET), ("to_s", QUIET + BURST)] {
        let at = burst["window"][bound].as_f64().unwrap();
        assert!((at - 60.0 * minute as f64).abs() <= 150.0, "{bound}: {burst:#}");
    }
    let text = found.to_string();
    assert!(text.contains("It matches no documented limit (baseline of db.r5.2xlarge 288 MB/s"), "{text}");
    assert!(text.contains("its origin is unknown") && text.contains("r5.4xlarge"), "{text}");
    let cleared = verdict["cleared"].as_array().unwrap();
    let iops = cleared.iter().find(|c| c["cause"] == "iops_ceiling").unwrap();
    assert!(iops.to_string().contains("is 30,000 operations/s"), "{iops:#}");
}
