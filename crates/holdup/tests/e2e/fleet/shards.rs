//! Shards of one load: two processes at half the rate each are one at the full rate.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use holdup_recording::rows::Request;
use holdup_recording::{Recording, clock};

use super::judged;
use crate::program::{Running, finish, holdup};
use crate::service::Service;

/// A run that has begun.
fn start(service: &Service, dir: &Path, more: &[&str]) -> Running {
    let output = dir.display().to_string();
    let mut arguments = vec!["run", "--url"];
    let url = service.url();
    arguments.extend([url.as_str(), "--rate", "400", "--duration", "4s", "--no-collect", "-q", "-o", &output]);
    Running::start(&mut holdup(arguments.iter().chain(more)))
}

/// When each request was due, from the start of the load, and its response time, nanoseconds.
fn requests(dir: &Path) -> Vec<(i64, i64)> {
    let recording = Recording::open(dir).unwrap();
    let start = recording.manifest.phases[0].from;
    let rows = recording.tables.requests.rows;
    assert!(rows.iter().all(|row| row.weight == 1));
    let one = |row: Request| (row.intended_at - start, row.done_at - row.intended_at);
    rows.into_iter().map(one).collect()
}

#[test]
fn two_shards_at_half_the_rate_are_one_load() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let [whole, one, two] = ["whole", "one", "two"].map(|name| dir.path().join(name));
    assert_eq!(start(&service, &whole, &[]).finish(Duration::from_secs(60)).code(), Some(0));
    let at = clock::rfc3339(clock::now_ns() + 3_000_000_000);
    let both =
        [(&one, "1/2"), (&two, "2/2")].map(|(dir, shard)| start(&service, dir, &["--shard", shard, "--start-at", &at]));
    for run in both {
        let run = run.finish(Duration::from_secs(60));
        assert_eq!(run.code(), Some(0), "{}", run.stderr);
    }
    let due = |all: &[(i64, i64)]| all.iter().map(|(due, _)| *due).collect::<BTreeSet<i64>>();
    let (all, first, second) = (requests(&whole), requests(&one), requests(&two));
    assert_eq!((all.len(), first.len(), second.len()), (1_600, 800, 800));
    assert!(due(&first).is_disjoint(&due(&second)));
    assert_eq!(due(&all), due(&[first.clone(), second.clone()].concat()));

    let [one, two] = [&one, &two].map(|dir| dir.display().to_string());
    let together = judged(&[&one, &two]);
    let operation = &together["load"]["operations"][0];
    assert_eq!((&operation["due"], &operation["completed"]), (&1_600.into(), &1_600.into()));
    assert!((operation["offered"].as_f64().unwrap() - 400.0).abs() < 4.0, "{operation}");
    let mut times: Vec<i64> = [first, second].concat().into_iter().map(|(_, ns)| ns).collect();
    times.sort_unstable();
    // What the warm-up leaves out is unknown here, so a run without one.
    let warm_up = together["load"]["warm_up"]["seconds"].as_f64().unwrap();
    let p99 = operation["response_ms"]["p99"].as_f64().unwrap();
    let exact = times[times.len() * 99 / 100 - 1] as f64 / 1e6;
    println!("p99 {p99} ms, of rows {exact} ms, warm-up {warm_up} s");
    assert!(warm_up > 0.0 || (p99 / exact - 1.0).abs() < 0.002, "{p99} ms, of rows {exact} ms");
    assert_eq!(together["fleet"]["shards"], serde_json::json!({ "of": 2, "missing": [], "notes": [] }));
    assert_eq!(together["load"]["shard"], serde_json::Value::Null);
    // Each second of the load is judged, whether or not this machine made it well.
    let validity = &together["load"]["validity"];
    let of = ["valid_s", "capped_s", "generator_limited_s", "not_judged_s"].map(|key| validity[key].as_f64().unwrap());
    assert!((of.iter().sum::<f64>() - 4.0).abs() < 0.5, "{validity}");

    // One alone is half of a load, and says so.
    let alone = finish(holdup(["diagnose", &one]), 60).stdout;
    assert!(!alone.contains("Hosts:"), "{alone}");
}

#[test]
fn a_shard_that_is_missing_or_ended_early_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
    let at = clock::rfc3339(clock::now_ns() + 2_000_000_000);
    let first = start(&service, &one, &["--shard", "1/3", "--start-at", &at]);
    let second = start(&service, &two, &["--shard", "3/3", "--start-at", &at]);
    std::thread::sleep(Duration::from_secs(4));
    second.signal(libc::SIGINT);
    assert_eq!(second.finish(Duration::from_secs(60)).code(), Some(130));
    assert_eq!(first.finish(Duration::from_secs(60)).code(), Some(0));
    let [one, two] = [&one, &two].map(|dir| dir.display().to_string());
    let together = judged(&[&one, &two]);
    let shards = &together["fleet"]["shards"];
    assert_eq!((&shards["of"], &shards["missing"]), (&3.into(), &serde_json::json!([2])));
    let notes = shards["notes"].to_string();
    assert!(notes.contains("shard 3/3 on two") && notes.contains("before its schedule ended"), "{notes}");
    assert_eq!(together["load"]["shard"], "1+3/3");
    let text = finish(holdup(["diagnose", &one, &two]), 60).stdout;
    assert!(text.contains("Shard 2 of 3 is not among the recordings"), "{text}");
}
