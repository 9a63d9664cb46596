//! What Amazon's command line prints as a person imports it: several files into one recording, which can be opened and judged.

use crate::program::{Finished, finish, holdup, manifest};

const DATA: &str = r#"{"MetricDataResults": [
    {"Id": "r", "Label": "ReadThroughput", "Timestamps": ["2026-11-22T10:02:00+00:00", "2026-11-22T10:00:00+00:00"], "Values": [150e6, 50e6], "StatusCode": "Complete"},
    {"Id": "w", "Label": "WriteThroughput", "Timestamps": ["2026-11-22T10:02:00+00:00", "2026-11-22T10:01:00+00:00", "2026-11-22T10:00:00+00:00"],
     "Values": [63e6, 113e6, 163e6], "StatusCode": "Complete"}]}"#;
const QUEUE: &str = r#"{"Label": "DiskQueueDepth", "Datapoints": [
    {"Timestamp": "2026-11-22T10:01:00Z", "Average": 80.0, "Unit": "Count"}, {"Timestamp": "2026-11-22T10:00:00Z", "Average": 70.0, "Unit": "Count"}]}"#;
const INSTANCE: &str = r#"{"DBInstances": [{"DBInstanceIdentifier": "orders-db", "DBInstanceClass": "db.r5.2xlarge", "Engine": "postgres",
    "EngineVersion": "14.7", "StorageType": "io1", "Iops": 30000, "AllocatedStorage": 2000, "MasterUsername": "boss"}]}"#;

fn import(dir: &std::path::Path, arguments: &[&str]) -> Finished {
    for (name, text) in [("data.json", DATA), ("queue.json", QUEUE), ("db.json", INSTANCE)] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    finish(holdup(["import"]).args(arguments).current_dir(dir), 60)
}

#[test]
fn several_files_are_one_recording_of_the_figures_and_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let done = import(dir.path(), &["data.json", "queue.json", "db.json", "-o", "aws"]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("3 series, 7 points from 2026-11-22T10:00:00"), "{}", done.stdout);
    assert!(done.stderr.contains("next: holdup diagnose aws"), "{}", done.stderr);
    let out = dir.path().join("aws");
    let recording = holdup_recording::Recording::open(&out).unwrap();
    let of = |metric: &str| -> Vec<(i64, f64)> {
        let rows = recording.tables.samples.rows.iter().filter(|row| row.metric == metric);
        rows.inspect(|row| {
            assert_eq!(row.labels.get("db_instance"), Some("orders-db"), "{metric}");
            assert_eq!(row.window_ns, 60_000_000_000, "{metric}");
        })
        .map(|row| (row.observed_at / 1_000_000_000 - 1_795_341_600, row.value))
        .collect()
    };
    // What is missing at 10:01 is not there: no zero.
    assert_eq!(of("aws_read_throughput_bytes_per_second"), [(30, 50e6), (150, 150e6)]);
    assert_eq!(of("aws_write_throughput_bytes_per_second"), [(30, 163e6), (90, 113e6), (150, 63e6)]);
    assert_eq!(of("aws_disk_queue_depth"), [(30, 70.0), (90, 80.0)]);
    let sources: Vec<&str> = recording.manifest.coverage.iter().map(|coverage| coverage.source.as_str()).collect();
    assert_eq!(sources, ["cloudwatch:queue.json", "cloudwatch:data.json"]);
    let settings = &recording.tables.settings.rows;
    for (name, value) in [("instance.class", "db.r5.2xlarge"), ("volume.iops", "30000"), ("volume.type", "io1")] {
        assert!(settings.iter().any(|row| row.source == "aws" && row.name == name && row.value == value), "{name}");
    }
    assert!(settings.iter().all(|row| row.value != "boss"));
    assert_eq!(manifest(&out)["state"], "complete");
    // Of response time nothing is known: that is said, and what of it there is.
    let done = finish(holdup(["diagnose", "aws"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("measure response time, and since when requests are slow"), "{}", done.stdout);
}

#[test]
fn a_page_a_pipe_and_json() {
    let dir = tempfile::tempdir().unwrap();
    let page = DATA.replacen("{", "{\"NextToken\": \"x\", ", 1);
    std::fs::write(dir.path().join("page.json"), page).unwrap();
    let done = import(dir.path(), &["page.json", "--db-instance", "db-1", "--json", "-o", "page"]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let found = done.json();
    assert_eq!((&found["points"], &found["series"][0]["labels"]), (&5.into(), &"db_instance=db-1".into()), "{found:#}");
    assert!(found["notes"][0].as_str().unwrap().contains("(NextToken)"), "{found:#}");
    let coverage = &manifest(&dir.path().join("page"))["coverage"][0];
    assert_eq!((&coverage["state"], &coverage["source"]), (&"partial".into(), &"cloudwatch:page.json".into()));
    let pipe = std::fs::File::open(dir.path().join("queue.json")).unwrap();
    let done = finish(holdup(["import", "-", "-o", "pipe"]).stdin(pipe).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(
        done.stdout.contains("aws_disk_queue_depth") && done.stdout.contains("--db-instance NAME"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_broken_file_beside_others_is_left_out_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let uneven = DATA.replace("[150e6, 50e6]", "[150e6]");
    for (n, (text, why, code)) in
        [(uneven.as_str(), "bad.json:2: result r (ReadThroughput) has 2 Timestamps and 1 Values", 2)]
            .into_iter()
            .enumerate()
    {
        std::fs::write(dir.path().join("bad.json"), text).unwrap();
        let out = format!("out{n}");
        let done = import(dir.path(), &["queue.json", "bad.json", "-o", &out]);
        assert_eq!(done.code(), Some(code), "{}", done.stderr);
        assert!(done.stdout.contains(why), "{}", done.stdout);
        let coverage = manifest(&dir.path().join(&out))["coverage"].clone();
        let sources: Vec<_> = coverage.as_array().unwrap().iter().map(|one| (&one["source"], &one["state"])).collect();
        assert!(sources.contains(&(&"bad.json".into(), &"failed".into())), "{sources:?}");
        assert!(sources.contains(&(&"cloudwatch:queue.json".into(), &"complete".into())), "{sources:?}");
        // Alone it leaves no recording.
        let done = import(dir.path(), &["bad.json", "-o", "alone"]);
        assert_eq!(done.code(), Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(why) && !dir.path().join("alone").exists(), "{}", done.stderr);
    }
}

#[test]
fn an_unknown_file_is_a_line_of_the_coverage() {
    let dir = tempfile::tempdir().unwrap();
    for (number, text) in ["{\n\"log\": {}}", "{", "\u{1f}\u{0}\u{0}\u{1}", "It is slow.\n"].into_iter().enumerate() {
        std::fs::write(dir.path().join("odd.json"), text).unwrap();
        let place = format!("out{number}");
        let done = import(dir.path(), &["data.json", "odd.json", "-o", &place]);
        assert_eq!(done.code(), Some(0), "{text}: {}", done.stderr);
        assert!(done.stdout.contains("left out: odd.json: "), "{text}: {}", done.stdout);
        let manifest = manifest(&dir.path().join(place));
        let coverage = manifest["coverage"].as_array().unwrap().iter().find(|part| part["source"] == "odd.json");
        assert_eq!(coverage.unwrap()["state"], "absent", "{text}: {manifest:#}");
        // Alone it is an error that says what it looks like.
        let done = import(dir.path(), &["odd.json", "-o", "alone"]);
        assert_eq!(done.code(), Some(2), "{text}: {}", done.stdout);
        assert!(done.stderr.contains("odd.json: "), "{text}: {}", done.stderr);
        assert!(!dir.path().join("alone").exists());
    }
}
