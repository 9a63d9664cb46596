//! The ceiling nobody watched: the incident's figures as `aws cloudwatch get-metric-data` prints them, imported and judged. Reads
//! and writes are ragged, their sum stands at 443 and then at 213 MB/s, and operations never come near what is provisioned. With
//! CloudWatch's latencies and without them, and with the burst at night and without it.

use std::f64::consts::TAU;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{finish, holdup};

/// Minutes: quiet, with a burst, at the baseline, and quiet again.
const QUIET: usize = 180;
const BURST: usize = 180;
const BASELINE: usize = 240;
const AFTER: usize = 90;

/// 2026-11-22T00:00:00Z, seconds.
const START: i64 = 1_795_305_600;

/// Metric and its value by the minute of a day.
type Metric = (&'static str, fn(&Day, usize) -> f64);

/// A day of the service.
struct Day {
    /// Minutes at the burst's level.
    burst: usize,
    has_latencies: bool,
    /// The instance class, and bytes a second that it sustains.
    class: &'static str,
    level: f64,
    /// After the fix: nothing waits, and the demand is what it is.
    is_fixed: bool,
}

const INCIDENT: Day = Day { burst: BURST, has_latencies: true, class: "db.r5.2xlarge", level: 213e6, is_fixed: false };
const AFTERWARDS: Day = Day { class: "db.r5.4xlarge", level: 325e6, is_fixed: true, ..INCIDENT };

fn wave(minute: usize, period: f64) -> f64 {
    (TAU * minute as f64 / period).sin()
}

impl Day {
    fn is_slow(&self, minute: usize) -> bool {
        !self.is_fixed && (QUIET..QUIET + self.burst + BASELINE).contains(&minute)
    }

    /// Bytes a second, reads and writes together, a per cent off as a minute's mean is.
    fn moved(&self, minute: usize) -> f64 {
        let level = match minute {
            _ if self.is_fixed => self.level * (1.0 + 0.2 * wave(minute, 9.3)),
            _ if !self.is_slow(minute) => 90e6 * (1.0 + 0.4 * wave(minute, 57.0)),
            _ if minute < QUIET + self.burst => 443e6,
            _ => self.level,
        };
        level * (1.0 + 0.01 * wave(minute, 3.7))
    }

    fn operations(&self, minute: usize) -> f64 {
        (if self.is_slow(minute) || self.is_fixed { 15_000.0 } else { 6_000.0 }) * (1.0 + 0.25 * wave(minute, 11.3))
    }

    /// What the commands print, in a folder; every 41st minute of a metric is missing, each metric's at another time.
    fn write(&self, dir: &Path) {
        let result = |(i, (name, value)): (usize, &Metric)| {
            let all = QUIET + self.burst + BASELINE + AFTER;
            let minutes: Vec<usize> = (0..all).filter(|m| (m + 5 * i) % 41 != 0).collect();
            let at = |m: &usize| json!(START + 60 * *m as i64);
            json!({
                "Id": format!("m{i}"), "Label": name, "StatusCode": "Complete",
                "Timestamps": minutes.iter().map(at).collect::<Vec<_>>(),
                "Values": minutes.iter().map(|m| value(self, *m)).collect::<Vec<_>>(),
            })
        };
        let wanted = METRICS.iter().filter(|(name, _)| self.has_latencies || !name.ends_with("Latency"));
        let data = json!({"MetricDataResults": wanted.enumerate().map(result).collect::<Vec<_>>()});
        let db = json!({"DBInstances": [{
            "DBInstanceIdentifier": "search", "DBInstanceClass": self.class, "Engine": "postgres",
            "EngineVersion": "11.5", "StorageType": "io1", "Iops": 30_000, "AllocatedStorage": 2_000,
            "InstanceCreateTime": "2019-08-14T09:12:33.101000+00:00",
        }]});
        let types = json!({"InstanceTypes": [{
            "InstanceType": "r5.2xlarge", "VCpuInfo": {"DefaultVCpus": 8}, "MemoryInfo": {"SizeInMiB": 65_536},
            "EbsInfo": {"EbsOptimizedInfo": {
                "BaselineBandwidthInMbps": 2_300, "BaselineThroughputInMBps": 287.5, "BaselineIops": 12_000,
                "MaximumBandwidthInMbps": 4_750, "MaximumThroughputInMBps": 593.75, "MaximumIops": 18_750,
            }},
            "NetworkInfo": {"NetworkPerformance": "Up to 10 Gigabit", "NetworkCards": [{"BaselineBandwidthInGbps": 2.5}]},
        }]});
        for (name, file) in [("data.json", data), ("db.json", db), ("types.json", types)] {
            std::fs::write(dir.join(name), file.to_string()).unwrap();
        }
    }

    /// The verdict on it by `holdup import` and `holdup diagnose`.
    fn verdict(&self, dir: &Path) -> Value {
        self.write(dir);
        let done = finish(holdup(["import", "data.json", "db.json", "types.json", "-o", "d"]).current_dir(dir), 60);
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
        finish(holdup(["diagnose", "d", "--json"]).current_dir(dir), 60).json()
    }
}

fn read_share(minute: usize) -> f64 {
    0.5 + 0.3 * wave(minute, 20.3) + 0.1 * wave(minute, 2.9)
}

const METRICS: [Metric; 14] = [
    ("ReadThroughput", |day, m| day.moved(m) * read_share(m)),
    ("WriteThroughput", |day, m| day.moved(m) * (1.0 - read_share(m))),
    ("ReadIOPS", |day, m| day.operations(m) * read_share(m)),
    ("WriteIOPS", |day, m| day.operations(m) * (1.0 - read_share(m))),
    ("DiskQueueDepth", |day, m| if day.is_slow(m) { 75.0 + 25.0 * wave(m, 7.1) } else { 0.6 }),
    ("ReadLatency", |day, m| if day.is_slow(m) { 0.005 } else { 0.001 }),
    ("WriteLatency", |day, m| if day.is_slow(m) { 0.1 } else { 0.015 }),
    ("CPUUtilization", |_, m| 48.0 + 4.0 * wave(m, 31.0)),
    ("FreeableMemory", |_, m| 30e9 + 2e9 * wave(m, 91.0)),
    ("SwapUsage", |_, _| 0.0),
    ("DatabaseConnections", |_, m| 320.0 + (30.0 * wave(m, 17.0)).round()),
    ("NetworkReceiveThroughput", |_, m| 40e6 + 5e6 * wave(m, 13.0)),
    ("NetworkTransmitThroughput", |_, m| 60e6 + 5e6 * wave(m, 23.0)),
    ("FreeStorageSpace", |_, m| 980e9 - 1e6 * m as f64),
];

/// What every variant of the day must give.
fn is_the_incident(verdict: &Value) {
    assert_eq!(
        (&verdict["verdict"], &verdict["culprit"]),
        (&"found".into(), &"throughput_ceiling".into()),
        "{verdict:#}"
    );
    let found = &verdict["findings"][0];
    assert!(found["confidence"].as_f64().unwrap() >= 0.8, "{found:#}");
    let level: f64 = found["evidence"][0]["observed"].as_str().unwrap().trim_end_matches(" MB/s").parse().unwrap();
    assert!((level - 213.0).abs() <= 0.03 * 213.0, "{level}");
    let text = found.to_string();
    assert!(text.contains("It is the baseline of a db.r5.2xlarge started before 3 December 2019 (212 MB/s"), "{text}");
    assert!(text.contains("the volume is not full"), "{text}");
    let fixes = found["fixes"].as_array().unwrap();
    assert!(fixes[0]["text"].as_str().unwrap().starts_with("Stop and start it first (free)"), "{fixes:#?}");
    assert!(fixes[0]["text"].as_str().unwrap().contains("it may do 288 MB/s"), "{fixes:#?}");
    let class = "aws rds modify-db-instance --db-instance-identifier search --db-instance-class db.r5.4xlarge";
    assert_eq!(fixes[1]["command"], class);
    for (cause, why) in [
        ("iops_ceiling", "the limit is 18,750 operations/s (burst of db.r5.2xlarge), 12,000 operations/s sustained"),
        ("cpu_saturated", "CPUs were 48 % busy on average and 52 % in the busiest period"),
        ("memory_pressure", "of 64 GiB of memory were free or could be freed"),
        ("connection_limit", "between 290 and 350 connections were open"),
        ("network_bandwidth", "the instance sent at most 65 MB/s, of 312 MB/s at all times"),
    ] {
        let cleared = verdict["cleared"].as_array().unwrap().iter().find(|c| c["cause"] == cause);
        assert!(cleared.unwrap_or_else(|| panic!("{cause}: {verdict:#}")).to_string().contains(why), "{cleared:#?}");
    }
}

#[test]
fn the_ceiling_is_named_with_its_burst_and_iops_are_cleared() {
    let dir = tempfile::tempdir().unwrap();
    let verdict = INCIDENT.verdict(dir.path());
    is_the_incident(&verdict);
    let burst = &verdict["findings"][0]["evidence"][1];
    assert!(burst["text"].as_str().unwrap().contains("443 MB/s"), "{burst:#}");
    // Within two samples of the minutes in which it began and ended; the recording begins with the first sample.
    for (bound, minute) in [("from_s", QUIET), ("to_s", QUIET + BURST)] {
        let at = burst["window"][bound].as_f64().unwrap();
        assert!((at - 60.0 * minute as f64).abs() <= 150.0, "{bound}: {burst:#}");
    }
}

#[test]
fn the_report_draws_the_sum_of_reads_and_writes_beside_its_limits() {
    let dir = tempfile::tempdir().unwrap();
    INCIDENT.verdict(dir.path());
    let done = finish(holdup(["report", "d"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let report = std::fs::read_to_string(dir.path().join("d/report.html")).unwrap();
    for part in [
        "Volume: bytes read, and written on top",
        "read + write",
        "limit: baseline of a db.r5.2xlarge started before 3 December 2019",
        "limit: burst of a db.r5.2xlarge started before 3 December 2019",
        "Volume: operations in the queue",
    ] {
        assert!(report.contains(part), "{part}");
    }
}

#[test]
fn before_and_after_are_compared_by_the_volumes_figures() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    for (folder, day) in [(&before, &INCIDENT), (&after, &AFTERWARDS)] {
        std::fs::create_dir(folder).unwrap();
        day.verdict(folder);
    }
    let done = finish(holdup(["compare", "before/d", "after/d", "--all"]).current_dir(dir.path()), 60);
    for row in [
        "volume, throughput",
        "volume, operations",
        "volume, queue",
        "volume, wait of a read",
        "volume, wait of a write",
    ] {
        assert!(done.stdout.contains(row), "{row}: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn a_flat_sum_at_a_known_limit_needs_no_latency_and_no_burst() {
    for day in [
        Day { has_latencies: false, ..INCIDENT },
        Day { burst: 0, ..INCIDENT },
        Day { burst: 0, has_latencies: false, ..INCIDENT },
    ] {
        is_the_incident(&day.verdict(tempfile::tempdir().unwrap().path()));
    }
}
