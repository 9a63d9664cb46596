//! A course as Amazon's command line prints it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cases::Case;
use super::instance::{Course, MINUTES, Minute, Random, START_S};

#[derive(Clone)]
pub struct File {
    pub name: &'static str,
    pub text: String,
}

const NAME: &str = "orders-db";

/// A figure of CloudWatch's, in its unit.
type Figure = (&'static str, fn(&Minute) -> f64);

const FIGURES: [Figure; 22] = [
    ("CPUUtilization", |m| 100.0 * m.cpu),
    ("DatabaseConnections", |m| m.connections),
    ("ReadIOPS", |m| m.read_iops),
    ("WriteIOPS", |m| m.write_iops),
    ("ReadThroughput", |m| m.read_iops * m.read_size),
    ("WriteThroughput", |m| m.write_iops * m.write_size),
    ("ReadLatency", |m| m.read_latency),
    ("WriteLatency", |m| m.write_latency),
    ("DiskQueueDepth", |m| m.queue),
    ("FreeableMemory", |m| m.free_memory),
    ("SwapUsage", |m| m.swap),
    ("FreeStorageSpace", |m| m.free_storage),
    ("NetworkReceiveThroughput", |m| m.received),
    ("NetworkTransmitThroughput", |m| m.sent),
    ("EBSByteBalance%", |m| 100.0 * m.byte_balance),
    ("EBSIOBalance%", |m| 100.0 * m.io_balance),
    ("ReplicaLag", |m| m.replica_lag),
    ("OldestReplicationSlotLag", |m| m.slot_lag),
    ("TransactionLogsDiskUsage", |m| 1.0e9 + m.slot_lag),
    ("EngineUptime", |m| m.uptime),
    ("Deadlocks", |m| m.deadlocks),
    ("BurstBalance", |m| 100.0 * m.burst_balance),
];

/// The files that a person would save, in three shapes of figures.
pub fn files(course: &Course, case: &Case) -> Vec<File> {
    let is_gp2 = case.storage.contains("gp2");
    let has = |(name, _): &&Figure| *name != "BurstBalance" || is_gp2;
    let figures: Vec<&Figure> = FIGURES.iter().filter(has).collect();
    let (first, rest) = figures.split_at(9);
    let (second, third) = rest.split_at(5);
    vec![
        File { name: "data.json", text: metric_data(course, first) },
        File { name: "more.csv", text: console(course, second) },
        File { name: "rest.csv", text: panel(course, third) },
        File { name: "pi-waits.json", text: insights(course) },
        File { name: "pi-sql.json", text: keys(course) },
        File { name: "events.json", text: events(course, case) },
        File { name: "instance.json", text: instance(case) },
        File { name: "instance-parameters.json", text: parameters(case) },
    ]
}

fn at(minute: usize) -> i64 {
    START_S + 60 * minute as i64
}

fn rfc(minute: usize) -> String {
    holdup_recording::clock::rfc3339(at(minute) * 1_000_000_000)
}

/// `get-metric-data`: the newest first, and some minutes are missing.
fn metric_data(course: &Course, figures: &[&Figure]) -> String {
    let mut random = Random::new(course.seed ^ 0xA5);
    let result = |(n, (name, of)): (usize, &&Figure)| {
        let kept: Vec<usize> = (0..MINUTES).rev().filter(|_| random.unit() > 0.004).collect();
        let values: Vec<f64> = kept.iter().map(|minute| of(&course.minutes[*minute])).collect();
        let times: Vec<String> = kept.iter().map(|minute| rfc(*minute)).collect();
        json!({"Id": format!("m{n}"), "Label": format!("AWS/RDS {NAME} {name}"), "Timestamps": times, "Values": values, "StatusCode": "Complete"})
    };
    let results: Vec<Value> = figures.iter().enumerate().map(result).collect();
    json!({"MetricDataResults": results, "Messages": []}).to_string()
}

/// CSV of CloudWatch's console.
fn console(course: &Course, figures: &[&Figure]) -> String {
    let mut text = String::from("Label");
    figures.iter().for_each(|(name, _)| text += &format!(",AWS/RDS {NAME} {name}"));
    text += "\nPeriod";
    figures.iter().for_each(|_| text += ",60");
    for (n, minute) in course.minutes.iter().enumerate() {
        text += &format!("\n{}", rfc(n).get(..19).unwrap().replace('T', " ").replace('-', "/"));
        figures.iter().for_each(|(_, of)| text += &format!(",{}", of(minute)));
    }
    text + "\n"
}

/// CSV of a panel of Grafana.
fn panel(course: &Course, figures: &[&Figure]) -> String {
    let mut text = String::from("\"Time\"");
    figures.iter().for_each(|(name, _)| text += &format!(",\"{name} {{DBInstanceIdentifier=\"\"{NAME}\"\"}}\""));
    for (n, minute) in course.minutes.iter().enumerate() {
        text += &format!("\n{}", 1000 * at(n));
        figures.iter().for_each(|(_, of)| text += &format!(",{}", of(minute)));
    }
    text + "\n"
}

/// `get-resource-metrics`: the load and its parts; an event without sessions has no point.
fn insights(course: &Course) -> String {
    let mut random = Random::new(course.seed ^ 0x77);
    let mut total = Vec::new();
    let mut by_event: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut checkpoints = Vec::new();
    for (n, minute) in course.minutes.iter().enumerate() {
        let mut load = 0.0;
        for (event, mean) in &minute.waits {
            let sampled = random.sampled(*mean);
            load += sampled;
            if sampled > 0.0 {
                by_event.entry(event).or_default().push(json!({"Timestamp": at(n + 1), "Value": sampled}));
            }
        }
        total.push(json!({"Timestamp": at(n + 1), "Value": load}));
        checkpoints.push(json!({"Timestamp": at(n + 1), "Value": minute.requested_checkpoints}));
    }
    let mut list = vec![json!({"Key": {"Metric": "db.load.avg"}, "DataPoints": total})];
    for (event, points) in by_event {
        let kind = event.split_once(':').map_or(event, |(kind, _)| kind);
        let dimensions = json!({"db.wait_event.name": event, "db.wait_event.type": kind});
        list.push(json!({"Key": {"Metric": "db.load.avg", "Dimensions": dimensions}, "DataPoints": points}));
    }
    list.push(json!({"Key": {"Metric": "db.Checkpoint.checkpoints_req.avg"}, "DataPoints": checkpoints}));
    json!({"AlignedStartTime": at(0), "AlignedEndTime": at(MINUTES), "Identifier": "db-ABC", "MetricList": list})
        .to_string()
}

/// `describe-dimension-keys` of the statements while it was slow.
fn keys(course: &Course) -> String {
    let slow = &course.minutes[course.from..course.to];
    let mean = slow.iter().map(Minute::load).sum::<f64>() / slow.len() as f64;
    let first = slow.iter().map(|minute| minute.heaviest).sum::<f64>() / slow.len() as f64;
    let rest = (1.0 - first) / 4.0;
    let statements = [
        ("SELECT o.* FROM orders o JOIN parcels p ON p.order_id = o.id WHERE p.label LIKE ?", first),
        ("UPDATE stock SET amount = amount - ? WHERE article = ?", 1.6 * rest),
        ("INSERT INTO events (kind, body) VALUES (?, ?)", 1.2 * rest),
        ("COMMIT", 0.8 * rest),
    ];
    let key = |(n, (statement, share)): (usize, (&str, f64))| json!({"Dimensions": {"db.sql_tokenized.id": format!("A{n}"), "db.sql_tokenized.statement": statement}, "Total": share * mean});
    let all: Vec<Value> = statements.into_iter().enumerate().map(key).collect();
    json!({"AlignedStartTime": at(course.from), "AlignedEndTime": at(course.to), "Keys": all}).to_string()
}

fn events(course: &Course, case: &Case) -> String {
    let event = |minute: usize, category: &str, text: &str| json!({"SourceIdentifier": NAME, "SourceType": "db-instance", "Message": text, "EventCategories": [category], "Date": rfc(minute)});
    let mut all =
        vec![event(20, "backup", "Backing up DB instance"), event(26, "backup", "Finished DB Instance backup")];
    match case.name {
        "failover" => all.extend([
            event(course.from, "failover", "Multi-AZ instance failover started."),
            event(course.from + 1, "availability", "DB instance restarted"),
            event(course.from + 1, "failover", "Multi-AZ instance failover completed"),
        ]),
        "storage" => {
            let text = "The free storage capacity for DB Instance: orders-db is low at 4% of the provisioned storage [Provisioned Storage: 981.12 GB, Free Storage: 39.20 GB]. You may want to increase the provisioned storage to address this issue.";
            all.push(event(course.to - 4, "low storage", text));
        }
        _ => {}
    }
    json!({"Events": all}).to_string()
}

fn instance(case: &Case) -> String {
    format!(
        r#"{{"DBInstances": [{{"DBInstanceIdentifier": "{NAME}", "DbiResourceId": "db-ABC", "DBInstanceClass": "db.r5.2xlarge",
        "Engine": "postgres", "EngineVersion": "16.3", "InstanceCreateTime": "2025-03-01T09:00:00Z", "MultiAZ": true, {}}}]}}"#,
        case.storage
    )
}

fn parameters(case: &Case) -> String {
    json!({"Parameters": [
        {"ParameterName": "max_connections", "ParameterValue": case.max_connections, "Source": if case.max_connections.len() < 9 { "user" } else { "system" }},
        {"ParameterName": "work_mem", "ParameterValue": "16384", "Source": "user"},
    ]})
    .to_string()
}
