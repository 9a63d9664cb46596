//! The test of every load generator: the target stops for a while, and the report must say how long callers waited.

use std::time::{Duration, Instant};

use crate::program::{Running, holdup, send};
use crate::service::Service;

/// Requests due during a freeze of F seconds wait for what is left of it. At a constant rate over D seconds the slowest
/// hundredth are those due in its first 0.01 D seconds, so that the 99th percentile is F - 0.01 D: 1.90 s of 2 in 10.
/// A generator that waits for answers before it sends more would see 20 slow requests of 5,000 and a p99 of milliseconds.
#[test]
#[holdup_witness::judged(SECOND_BY_SECOND)]
fn a_freeze_of_two_seconds_is_seen_by_all_who_waited() {
    let (frozen_ms, load) = freeze();
    check(frozen_ms, &load);
}

/// Length of the freeze in milliseconds, and what the run says of its load.
fn freeze() -> (f64, serde_json::Value) {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = service.url();
    let mut arguments = vec!["run", "--url", &url, "--rate=500", "--duration=10s", "--connections=20"];
    arguments.extend(["--no-collect", "--json", "--quiet", "-o"]);
    let run = Running::start(holdup(arguments).arg(dir.path().join("run")));
    std::thread::sleep(Duration::from_secs(4));
    send(service.pid(), libc::SIGSTOP);
    let frozen = Instant::now();
    std::thread::sleep(Duration::from_millis(2_000));
    send(service.pid(), libc::SIGCONT);
    let frozen_ms = frozen.elapsed().as_secs_f64() * 1e3;
    let done = run.finish(Duration::from_secs(60));
    (frozen_ms, done.json()["load"].clone())
}

fn check(frozen_ms: f64, load: &serde_json::Value) {
    let operation = &load["operations"][0];
    let ms = |kind: &str, percentile: &str| operation[kind][percentile].as_f64().unwrap();
    let p99 = frozen_ms - 0.01 * 10_000.0;
    let off = |measured: f64, expected: f64| (measured / expected - 1.0).abs();
    assert!(off(ms("response_ms", "p99"), p99) < 0.02, "p99 {} is not {p99}: {load:#}", ms("response_ms", "p99"));
    assert!(off(ms("response_ms", "max"), frozen_ms) < 0.02, "max is not {frozen_ms}: {load:#}");
    assert!(off(ms("service_ms", "max"), frozen_ms) < 0.02, "the twenty that were on their way saw it too: {load:#}");
    assert!(ms("service_ms", "p99") < p99 / 4.0, "service time alone does not see it: {load:#}");
    assert!(ms("send_lag_ms", "p99") < p99 / 20.0, "the delay is not the generator's own: {load:#}");
    assert_eq!((operation["completed"].as_u64(), operation["errors"].as_u64()), (Some(5_000), Some(0)));
    assert!(off(operation["offered"].as_f64().unwrap(), 500.0) < 0.001, "{load:#}");
}
